#include "worker/text/special_tokens.hpp"

#include <gmock/gmock.h>

#include "tests/worker/text/support.hpp"
#include "worker/text/tokenizer.hpp"

namespace kvsweep::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The ids 0-268 of data/tiny; 267 is "</s>", the eos_token of its tokenizer_config.json.
class EosIds : public ::testing::Test {
 protected:
  EosIds() { dir_.copy_tiny(); }
  Result<Tokenizer> load() { return Tokenizer::load(dir_.path()); }
  void expect_refused(const std::string& file) {
    const auto tokenizer = load();
    ASSERT_FALSE(tokenizer.ok());
    EXPECT_EQ(tokenizer.error().code, ErrorCode::bad_input);
    EXPECT_THAT(tokenizer.error().message, HasSubstr(dir_.path() + "/" + file));
  }

  TempDir dir_;
};

TEST_F(EosIds, ComeFromTheFirstFileThatNamesThem) {
  EXPECT_THAT(load()->eos_ids(), ElementsAre(267));
  EXPECT_EQ(load()->eos_text(), "</s>");

  dir_.write("config.json", R"({"eos_token_id": 5})");
  EXPECT_THAT(load()->eos_ids(), ElementsAre(5));
  dir_.write("generation_config.json", R"({"eos_token_id": null})");
  EXPECT_THAT(load()->eos_ids(), ElementsAre(5));
  dir_.write("generation_config.json", R"({"bos_token_id": 1})");
  EXPECT_THAT(load()->eos_ids(), ElementsAre(5));

  dir_.write("generation_config.json", R"({"eos_token_id": [268, 267]})");
  EXPECT_THAT(load()->eos_ids(), ElementsAre(268, 267));
  EXPECT_EQ(load()->eos_text(), "<|im_end|>");
  dir_.write("generation_config.json", R"({"eos_token_id": 266})");
  EXPECT_THAT(load()->eos_ids(), ElementsAre(266));
}

TEST_F(EosIds, AreEmptyWhenNoFileNamesThem) {
  dir_.write("tokenizer_config.json", R"({"eos_token": null})");
  EXPECT_THAT(load()->eos_ids(), IsEmpty());
  EXPECT_EQ(load()->eos_text(), "");
  std::filesystem::remove(dir_.path() + "/tokenizer_config.json");
  EXPECT_THAT(load()->eos_ids(), IsEmpty());
}

TEST_F(EosIds, OutsideTheVocabularyAreRefused) {
  for (const char* value : {"269", "-1", "4294967301", "18446744073709551615", "1.5", "\"2\"",
                            "[2, 300]", "[[2]]", "true", "{}"}) {
    dir_.write("generation_config.json", std::string("{\"eos_token_id\": ") + value + "}");
    SCOPED_TRACE(value);
    expect_refused("generation_config.json");
  }
}

TEST_F(EosIds, OfAnotherTokenizerAreRefused) {
  dir_.write("tokenizer_config.json", R"({"eos_token": "<|endoftext|>"})");
  expect_refused("tokenizer_config.json");
  dir_.write("tokenizer_config.json", R"({"eos_token": 7})");
  expect_refused("tokenizer_config.json");
}

TEST_F(EosIds, InBrokenFilesNameTheFile) {
  for (const char* name : {"generation_config.json", "config.json", "tokenizer_config.json"}) {
    for (const char* bytes : {"{", "[1]", "\xff"}) {
      dir_.write(name, bytes);
      expect_refused(name);
    }
    std::filesystem::remove(dir_.path() + "/" + name);
  }
}

}  // namespace
}  // namespace kvsweep::text
