// Tokenizers and chat templates of six models against transformers, on odd texts
// (make_tokenizer_goldens.py). scripts/setup fetches their files where npm is there.
#include <gmock/gmock.h>

#include "core/hash.hpp"
#include "tests/worker/text/support.hpp"
#include "worker/text/chat_template.hpp"
#include "worker/text/tokenizer.hpp"

namespace kvsweep::text {
namespace {

using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;

const Json& goldens() {
  static const Json kGoldens = golden("tokenizers_golden.json");
  return kGoldens;
}

std::string hash_of(const Ids& ids) {
  std::string text;
  for (const int32_t id : ids) text += (text.empty() ? "" : ",") + std::to_string(id);
  return sha256_hex(text);
}

class RealTokenizer : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    golden_ = goldens()["tokenizers"][GetParam()];
    dir_ = std::string(KVSWEEP_SOURCE_DIR) + "/.deps/" + golden_["folder"].get<std::string>();
    if (!std::filesystem::exists(dir_)) {
      GTEST_SKIP() << dir_ << " is absent; scripts/setup fetches it (some need npm)";
    }
  }

  Tokenizer load() const {
    auto tokenizer = Tokenizer::load(dir_);
    if (!tokenizer.ok()) throw std::runtime_error(tokenizer.error().message);
    return std::move(tokenizer).value();
  }

  Json golden_;
  std::string dir_;
};

TEST_P(RealTokenizer, EqualsTransformersOnOddTexts) {
  const Tokenizer tokenizer = load();
  const Json& texts = goldens()["texts"];
  ASSERT_GE(texts.size(), 45u);
  ASSERT_EQ(golden_["texts"].size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto text = texts[i].get<std::string>();
    SCOPED_TRACE(texts[i].dump());
    const Json& row = golden_["texts"][i];
    const Ids ids = row["ids"].get<Ids>();
    EXPECT_EQ(*tokenizer.encode(text, false), ids);
    EXPECT_EQ(*tokenizer.encode(text, true), row.value("special", ids));
    const std::string decoded = row.value("decoded", text);
    EXPECT_EQ(*tokenizer.decode(ids, false), decoded);
    EXPECT_EQ(*tokenizer.decode(ids, true), row.value("plain", decoded));
  }
}

TEST_P(RealTokenizer, EqualsTransformersOnLongTexts) {
  const Tokenizer tokenizer = load();
  const Json& texts = goldens()["long"];
  for (size_t i = 0; i < texts.size(); ++i) {
    SCOPED_TRACE(texts[i].dump());
    std::string text;
    for (int n = 0; n < texts[i]["count"].get<int>(); ++n) text += texts[i]["unit"];
    const Json& row = golden_["long"][i];
    const auto ids = tokenizer.encode(text, false);
    ASSERT_TRUE(ids.ok()) << ids.error().message;
    EXPECT_EQ(ids->size(), row["count"].get<size_t>());
    EXPECT_EQ(hash_of(*ids), row["sha256"].get<std::string>());
    EXPECT_EQ(sha256_hex(*tokenizer.decode(*ids, false)), row["decoded_sha256"].get<std::string>());
  }
}

TEST_P(RealTokenizer, RefusesInvalidUtf8) {
  const auto ids = load().encode("ok \xf0\x9f\x98", true);
  ASSERT_FALSE(ids.ok());
  EXPECT_EQ(ids.error().code, ErrorCode::bad_input);
}

TEST_P(RealTokenizer, RendersConversationsAsTransformers) {
  const auto compiled = ChatTemplate::load(dir_, goldens()["now"]);
  if (golden_["prompts"].empty()) {
    ASSERT_FALSE(compiled.ok());
    EXPECT_EQ(compiled.error().code, ErrorCode::not_found);
    return;
  }
  ASSERT_TRUE(compiled.ok()) << compiled.error().message;
  for (const auto& [name, messages] : goldens()["conversations"].items()) {
    std::vector<ChatMessage> conversation;
    for (const Json& message : messages) {
      conversation.push_back({message["role"], message["content"]});
    }
    for (const Json& row : golden_["prompts"][name]) {
      SCOPED_TRACE(name);
      const auto prompt = compiled->render(conversation, row["add_generation_prompt"].get<bool>());
      if (row.contains("error")) {
        ASSERT_FALSE(prompt.ok());
        EXPECT_THAT(prompt.error().message, HasSubstr(row["error"].get<std::string>()));
        continue;
      }
      ASSERT_TRUE(prompt.ok()) << prompt.error().message;
      EXPECT_EQ(prompt->size(), row["bytes"].get<size_t>()) << *prompt;
      EXPECT_EQ(sha256_hex(*prompt), row["sha256"].get<std::string>()) << *prompt;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, RealTokenizer,
                         ::testing::Values("llama3_1", "qwen3", "llama2", "gpt4o", "gpt35turbo",
                                           "smollm2"),
                         [](const auto& about) { return std::string(about.param); });

}  // namespace
}  // namespace kvsweep::text
