#include "worker/text/tokenizer_settings.hpp"

#include <gmock/gmock.h>

#include "tests/worker/text/support.hpp"
#include "worker/text/tokenizer.hpp"

namespace kvsweep::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Ids of "a" (64 in data/tiny, <s> = 266, </s> = 267) under this tokenizer_config.json.
Result<std::vector<int32_t>> ids_under(const Json& config) {
  const TempDir dir;
  dir.copy_tiny();
  dir.write("tokenizer_config.json", config.dump());
  KVSWEEP_ASSIGN(const Tokenizer tokenizer, Tokenizer::load(dir.path()));
  return tokenizer.encode("a", true);
}

TEST(TokenizerSettings, SayWhichSpecialTokensATextGets) {
  const Json names = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  const auto with = [&](const Json& more) {
    Json config = names;
    config.update(more);
    return *ids_under(config);
  };
  EXPECT_THAT(with(Json::object()), ElementsAre(266, 64));  // as tokenizer.json says
  EXPECT_THAT(with({{"add_bos_token", nullptr}}), ElementsAre(266, 64));
  EXPECT_THAT(with({{"add_bos_token", true}}), ElementsAre(266, 64));
  EXPECT_THAT(with({{"add_bos_token", false}}), ElementsAre(64));
  EXPECT_THAT(with({{"add_eos_token", true}}), ElementsAre(64, 267));
  EXPECT_THAT(with({{"add_bos_token", true}, {"add_eos_token", true}}), ElementsAre(266, 64, 267));
  EXPECT_THAT(*ids_under({{"add_bos_token", true}}), ElementsAre(64));  // no bos_token to add
}

TEST(TokenizerSettings, RefuseWhatTheyCannotMean) {
  const auto unknown = ids_under({{"add_bos_token", true}, {"bos_token", "<none>"}});
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().message, HasSubstr("tokenizer_config.json: add_bos_token"));
  const auto mistyped = ids_under({{"add_bos_token", "yes"}});
  ASSERT_FALSE(mistyped.ok());
  EXPECT_THAT(mistyped.error().message, HasSubstr("add_bos_token is \"yes\", not true or false"));
}

Json scheme(const Json& tokenizer_config, const Json& config) {
  const TempDir dir;
  dir.write("tokenizer_config.json", tokenizer_config.dump());
  dir.write("config.json", config.dump());
  return read_tokenizer_settings(dir.path())->value("prepend_scheme", Json());
}

TEST(TokenizerSettings, KnowTheSpacesOfLlamaTokenizer) {
  const Json llama = {{"tokenizer_class", "LlamaTokenizer"}};
  const Json fast = {{"tokenizer_class", "LlamaTokenizerFast"}, {"legacy", true}};
  EXPECT_EQ(scheme(llama, {{"model_type", "llama"}}), "first");
  EXPECT_EQ(scheme(fast, {{"model_type", "llama"}}), "always");
  EXPECT_EQ(scheme(fast, Json::object()), "always");
  EXPECT_EQ(scheme(Json::object(), {{"tokenizer_class", "LlamaTokenizer"}}), "first");
  EXPECT_EQ(
      scheme({{"tokenizer_class", "LlamaTokenizer"}, {"add_prefix_space", false}}, Json::object()),
      "never");
  // transformers takes tokenizer.json as it is for these.
  EXPECT_EQ(scheme(fast, {{"model_type", "mistral"}}), Json());
  EXPECT_EQ(scheme({{"tokenizer_class", "PreTrainedTokenizerFast"}}, Json::object()), Json());
}

}  // namespace
}  // namespace kvsweep::text
