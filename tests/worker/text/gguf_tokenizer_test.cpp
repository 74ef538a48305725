// Tokenizers from GGUF metadata, with vocabularies small enough to check by hand. Real ones:
// gguf_real_tokenizers_test.cpp.
#include "worker/text/gguf_tokenizer.hpp"

#include <gmock/gmock.h>

#include "tests/worker/text/gguf_support.hpp"
#include "tests/worker/text/support.hpp"
#include "worker/text/chat_template.hpp"
#include "worker/text/gguf_pretokenizers.hpp"
#include "worker/text/tokenizer.hpp"

namespace kvsweep::text {
namespace {

using test::GgufWriter;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Ten pieces by hand: with scores a b = -1, b c = -2, "ab" + "c" = -3: "abc" is a b c -> ab c ->
// abc.
GgufWriter small_sentencepiece() {
  GgufWriter writer = head("llama", "");
  writer
      .list("tokenizer.ggml.tokens",
            {"<unk>", "<s>", "</s>", "\xe2\x96\x81", "a", "b", "c", "ab", "bc", "abc", "<0xC3>",
             "<0xA9>", "<|end|>", "[PAD]", "[", "PAD]"})
      .list<int32_t>("tokenizer.ggml.token_type", 5,
                     {kUnknown, kControl, kControl, kNormal, kNormal, kNormal, kNormal, kNormal,
                      kNormal, kNormal, kByte, kByte, kUser, kUnused, kNormal, kNormal})
      .list<float>("tokenizer.ggml.scores", 6,
                   {0, 0, 0, -9, -10, -11, -12, -1, -2, -3, 0, 0, -1000, 0, -4, -5})
      .number("tokenizer.ggml.bos_token_id", 1)
      .number("tokenizer.ggml.eos_token_id", 2);
  return writer;
}

TEST(GgufTokenizer, SentencePieceByHand) {
  const TempDir dir;
  const auto tokenizer = Tokenizer::load(dir.write("model.gguf", small_sentencepiece().bytes()));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  const auto file = GgufFile::open(dir.path() + "/model.gguf");
  ASSERT_TRUE(file.ok());
  EXPECT_THAT(merges_of(*gguf_tokenizer(*file)), ElementsAre("a b", "b c", "ab c", "a bc"));
  EXPECT_THAT(*tokenizer->encode("abc", false), ElementsAre(3, 9));
  EXPECT_THAT(*tokenizer->encode("bcb", false), ElementsAre(3, 8, 5));
  EXPECT_THAT(*tokenizer->encode("abc", true),
              ElementsAre(1, 3, 9));  // BOS unless the file says no
  EXPECT_THAT(*tokenizer->encode("a b", false), ElementsAre(3, 4, 3, 5));
  EXPECT_THAT(*tokenizer->encode("\xc3\xa9", false), ElementsAre(3, 10, 11));  // é as two bytes
  EXPECT_THAT(*tokenizer->encode("a<|end|>b", false), ElementsAre(3, 4, 12, 3, 5));
  EXPECT_THAT(*tokenizer->encode("[PAD]", false), ElementsAre(3, 14, 0));  // unused: never made
  EXPECT_EQ(*tokenizer->decode({3, 9, 3, 10, 11, 2}, true), "abc \xc3\xa9");
  EXPECT_THAT(tokenizer->eos_ids(), ElementsAre(2, 12));
  EXPECT_EQ(tokenizer->eos_text(), "</s>");
}

TEST(GgufTokenizer, SpacePrefixAndEndOfText) {
  const TempDir dir;
  GgufWriter writer = small_sentencepiece();
  writer.flag("tokenizer.ggml.add_space_prefix", false)
      .flag("tokenizer.ggml.add_bos_token", false)
      .flag("tokenizer.ggml.add_eos_token", true);
  const auto tokenizer = Tokenizer::load(dir.write("model.gguf", writer.bytes()));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  EXPECT_THAT(*tokenizer->encode("abc", false), ElementsAre(9));
  EXPECT_THAT(*tokenizer->encode("abc", true), ElementsAre(9, 2));
  EXPECT_EQ(*tokenizer->decode({3, 9}, true), " abc");
}

GgufWriter small_bytes(const std::string& pre) {
  GgufWriter writer = head("gpt2", pre);
  writer.list("tokenizer.ggml.tokens", {"a", "b", "ab", "1", "11", "<bos>", "<eos>", "<|eot_id|>"})
      .list<int32_t>("tokenizer.ggml.token_type", 5,
                     {kNormal, kNormal, kNormal, kNormal, kNormal, kControl, kControl, kControl})
      .list("tokenizer.ggml.merges", {"a b", "1 1"})
      .number("tokenizer.ggml.bos_token_id", 5)
      .number("tokenizer.ggml.eos_token_id", 6)
      .number("tokenizer.ggml.padding_token_id", 6)
      .words("tokenizer.chat_template", "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}");
  return writer;
}

TEST(GgufTokenizer, PretokenizersDecideOnDigitsAndBegin) {
  const TempDir dir;
  const auto ids = [&](const std::string& pre) {
    const auto tokenizer = Tokenizer::load(dir.write(pre + ".gguf", small_bytes(pre).bytes()));
    if (!tokenizer.ok()) throw std::runtime_error(tokenizer.error().message);
    return *tokenizer->encode("ab11", true);
  };
  for (const char* pre : {"gpt-2", "olmo", "dbrx", "smaug-bpe", "gpt-4o"}) {
    EXPECT_THAT(ids(pre), ElementsAre(2, 4)) << pre;
  }
  for (const char* pre : {"smollm", "starcoder", "qwen2", "deepseek-r1-qwen"}) {
    EXPECT_THAT(ids(pre), ElementsAre(2, 3, 3)) << pre;
  }
  EXPECT_THAT(ids("llama-bpe"), ElementsAre(5, 2, 4));
  EXPECT_THAT(ids("tekken"), ElementsAre(5, 2, 3, 3));
}

// The tokenizers of OLMo compose what is decomposed; GPT-2's do not. The letter is no token, so it
// falls out of the text; its parts, "e" among them, would stay.
TEST(GgufTokenizer, OlmoComposes) {
  const TempDir dir;
  const auto ids = [&](const std::string& pre) {
    const GgufWriter writer = head("gpt2", pre)
                                  .list("tokenizer.ggml.tokens", {"e", "\xc3\x83", "\xc2\xa9"})
                                  .list("tokenizer.ggml.merges", {});
    const auto tokenizer = Tokenizer::load(dir.write(pre + ".gguf", writer.bytes()));
    if (!tokenizer.ok()) throw std::runtime_error(tokenizer.error().message);
    return *tokenizer->encode("e\xcc\x81", false);
  };
  EXPECT_THAT(ids("olmo"), ElementsAre(1, 2));  // U+00E9: the bytes c3 a9
  EXPECT_THAT(ids("gpt-2"), ElementsAre(0));
}

// Phi-4-mini: the white space behind the markers of turns belongs to them.
TEST(GgufTokenizer, MarkersOfTurnsSwallowWhiteSpaceInPhi) {
  const TempDir dir;
  const auto ids = [&](const std::string& architecture) {
    const GgufWriter writer =
        head("gpt2", "gpt-4o", architecture)
            .list("tokenizer.ggml.tokens", {"a", "\xc4\xa0", "<|user|>", "<|tool|>"})
            .list<int32_t>("tokenizer.ggml.token_type", 5, {kNormal, kNormal, kControl, kControl})
            .list("tokenizer.ggml.merges", {});
    const auto tokenizer = Tokenizer::load(dir.write(architecture + ".gguf", writer.bytes()));
    if (!tokenizer.ok()) throw std::runtime_error(tokenizer.error().message);
    return *tokenizer->encode("<|user|> a<|tool|> a", false);
  };
  EXPECT_THAT(ids("phi3"), ElementsAre(2, 0, 3, 1, 0));
  EXPECT_THAT(ids("llama"), ElementsAre(2, 1, 0, 3, 1, 0));
}

TEST(GgufTokenizer, EndsAndTemplate) {
  const TempDir dir;
  const std::string path = dir.write("model.gguf", small_bytes("gpt-2").bytes());
  const auto tokenizer = Tokenizer::load(path);
  ASSERT_TRUE(tokenizer.ok());
  EXPECT_THAT(tokenizer->eos_ids(), ElementsAre(6, 7));
  const auto chat = ChatTemplate::load(path);
  ASSERT_TRUE(chat.ok()) << chat.error().message;
  EXPECT_EQ(*chat->render({{"user", "hi"}}, true), "<bos>hi<eos>");

  const auto none = ChatTemplate::load(dir.write("none.gguf", small_sentencepiece().bytes()));
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::not_found);
}

struct BadCase {
  std::string name;
  GgufWriter writer;
  std::vector<std::string> parts;
};

std::vector<BadCase> bad_cases() {
  const std::vector<int32_t> kinds(2, kNormal);
  const auto tokens = [](const std::string& model) {
    return head(model, "gpt-2").list("tokenizer.ggml.tokens", {"a", "b"});
  };
  return {
      {"model", head("bert", "gpt-2"), {"tokenizer.ggml.model is \"bert\"", "gpt2", "llama"}},
      {"no_tokens", head("gpt2", "gpt-2"), {"tokenizer.ggml.tokens is missing"}},
      {"empty", head("gpt2", "gpt-2").list("tokenizer.ggml.tokens", {}), {"tokens is empty"}},
      {"twice", head("gpt2", "gpt-2").list("tokenizer.ggml.tokens", {"a", "a"}), {"0 and 1"}},
      {"pre", small_bytes("chameleon"), {"tokenizer.ggml.pre is \"chameleon\"", "llama-bpe"}},
      {"no_pre", small_bytes(""), {"tokenizer.ggml.pre is missing"}},
      {"kinds",
       tokens("gpt2").list<int32_t>("tokenizer.ggml.token_type", 5, {1}),
       {"tokenizer.ggml.token_type has 1 elements", "2 tokens"}},
      {"kind",
       tokens("gpt2").list<int32_t>("tokenizer.ggml.token_type", 5, {1, 9}),
       {"tokenizer.ggml.token_type is 9 for token 1"}},
      {"merge",
       tokens("gpt2").list("tokenizer.ggml.merges", {"a b"}),
       {"tokenizer.ggml.merges", "\"a b\" at rank 0"}},
      {"merge_of_one", tokens("gpt2").list("tokenizer.ggml.merges", {"a"}), {"merges", "\"a\""}},
      {"merge_of_none", tokens("gpt2").list("tokenizer.ggml.merges", {""}), {"merges", "\"\""}},
      {"no_merges", tokens("gpt2"), {"tokenizer.ggml.merges is missing"}},
      {"no_scores", tokens("llama"), {"tokenizer.ggml.scores is missing"}},
      {"scores",
       tokens("llama").list<float>("tokenizer.ggml.scores", 6, {1}),
       {"tokenizer.ggml.scores has 1 elements"}},
      {"no_unknown",
       tokens("llama").list<float>("tokenizer.ggml.scores", 6, {1, 2}),
       {"tokenizer.ggml.unknown_token_id is missing"}},
      {"unknown",
       tokens("llama")
           .list<float>("tokenizer.ggml.scores", 6, {1, 2})
           .number("tokenizer.ggml.unknown_token_id", 2),
       {"tokenizer.ggml.unknown_token_id is 2", "0 to 1"}},
      {"bos",
       tokens("gpt2")
           .list("tokenizer.ggml.merges", {})
           .flag("tokenizer.ggml.add_bos_token", true)
           .number("tokenizer.ggml.bos_token_id", 7),
       {"tokenizer.ggml.bos_token_id is 7"}},
      {"no_bos",
       tokens("gpt2").list("tokenizer.ggml.merges", {}).flag("tokenizer.ggml.add_bos_token", true),
       {"tokenizer.ggml.bos_token_id is missing"}},
      {"eos",
       tokens("gpt2").list("tokenizer.ggml.merges", {}).number("tokenizer.ggml.eos_token_id", 2),
       {"tokenizer.ggml.eos_token_id is 2"}},
  };
}

TEST(GgufTokenizer, RefusedByName) {
  const TempDir dir;
  for (const BadCase& one : bad_cases()) {
    SCOPED_TRACE(one.name);
    const std::string path = dir.write(one.name + ".gguf", one.writer.bytes());
    const auto tokenizer = Tokenizer::load(path);
    ASSERT_FALSE(tokenizer.ok());
    EXPECT_EQ(tokenizer.error().code, ErrorCode::bad_input);
    EXPECT_THAT(tokenizer.error().message, HasSubstr(path));
    for (const std::string& part : one.parts) {
      EXPECT_THAT(tokenizer.error().message, HasSubstr(part));
    }
  }
}

}  // namespace
}  // namespace kvsweep::text
