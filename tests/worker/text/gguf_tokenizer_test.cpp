// Tokenizers from GGUF metadata: real vocabularies written as GGUF here must cut texts as their own
// tokenizer.json does, which is compared with transformers elsewhere (real_tokenizers_test.cpp).
#include "worker/text/gguf_tokenizer.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "tests/support/gguf_writer.hpp"
#include "tests/worker/text/support.hpp"
#include "worker/text/chat_template.hpp"
#include "worker/text/gguf_pretokenizers.hpp"
#include "worker/text/tokenizer.hpp"

namespace kvsweep::text {
namespace {

using test::GgufWriter;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int32_t kNormal = 1, kUnknown = 2, kControl = 3, kUser = 4, kUnused = 5, kByte = 6;

GgufWriter head(const std::string& model, const std::string& pre) {
  GgufWriter writer;
  writer.words("general.architecture", "llama").words("tokenizer.ggml.model", model);
  if (!pre.empty()) writer.words("tokenizer.ggml.pre", pre);
  return writer;
}

struct Vocabulary {
  std::vector<std::string> tokens;
  std::vector<int32_t> kinds;
};

// As llama.cpp's converter lists them: all ids, added tokens among them.
Vocabulary vocabulary_of(const Json& document) {
  Vocabulary out;
  const auto put = [&](size_t id, const std::string& text, int32_t kind) {
    if (id >= out.tokens.size()) {
      out.tokens.resize(id + 1);
      out.kinds.resize(id + 1, kUnused);
    }
    out.tokens[id] = text;
    out.kinds[id] = kind;
  };
  const Json& vocab = document.at("model").at("vocab");
  for (const auto& [text, id] : vocab.items()) {
    const bool byte = text.size() == 6 && text.starts_with("<0x");
    put(id.get<size_t>(), text, byte ? kByte : kNormal);
  }
  for (const Json& added : document.at("added_tokens")) {
    const bool unknown = added.at("content") == "<unk>";
    put(added.at("id").get<size_t>(), added.at("content"),
        unknown ? kUnknown : (added.at("special").get<bool>() ? kControl : kUser));
  }
  return out;
}

std::vector<std::string> merges_of(const Json& document) {
  std::vector<std::string> out;
  for (const Json& merge : document.at("model").at("merges")) {
    out.push_back(merge.is_string()
                      ? merge.get<std::string>()
                      : merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  }
  return out;
}

// Scores in the order in which merges make tokens; what no merge makes comes last.
std::vector<float> scores_of(const Vocabulary& vocabulary, const std::vector<std::string>& merges) {
  std::map<std::string, float> made;
  for (const std::string& merge : merges) {
    const size_t space = merge.find(' ');
    const auto next = -static_cast<float>(made.size());
    made.emplace(merge.substr(0, space) + merge.substr(space + 1), next);
  }
  std::vector<float> scores;
  for (const std::string& token : vocabulary.tokens) {
    scores.push_back(made.count(token) != 0 ? made.at(token) : -1e9f);
  }
  return scores;
}

struct RealCase {
  const char* folder;
  const char* model;
  const char* pre;
};

class RealVocabulary : public ::testing::TestWithParam<RealCase> {};

TEST_P(RealVocabulary, CutsAsItsOwnTokenizerJson) {
  const std::string folder =
      std::string(KVSWEEP_SOURCE_DIR) + "/.deps/tokenizers/" + GetParam().folder;
  if (!std::filesystem::exists(folder + "/tokenizer.json")) {
    GTEST_SKIP() << folder << " is absent; scripts/setup fetches it where npm is installed";
  }
  const auto document = read_json_file(folder + "/tokenizer.json");
  ASSERT_TRUE(document.ok());
  const Vocabulary vocabulary = vocabulary_of(*document);
  GgufWriter writer = head(GetParam().model, GetParam().pre);
  writer.list("tokenizer.ggml.tokens", vocabulary.tokens)
      .list("tokenizer.ggml.token_type", 5, vocabulary.kinds)
      .flag("tokenizer.ggml.add_bos_token", false);
  if (std::string(GetParam().model) == "llama") {
    writer.list("tokenizer.ggml.scores", 6, scores_of(vocabulary, merges_of(*document)));
  } else {
    writer.list("tokenizer.ggml.merges", merges_of(*document));
  }
  const TempDir dir;
  std::filesystem::copy_file(folder + "/tokenizer.json", dir.path() + "/tokenizer.json");
  const auto expected = Tokenizer::load(dir.path());
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  const auto found = Tokenizer::load(dir.write("model.gguf", writer.bytes()));
  ASSERT_TRUE(found.ok()) << found.error().message;

  EXPECT_EQ(found->vocab_size(), expected->vocab_size());
  const Json goldens = golden("tokenizers_golden.json");
  int compared = 0;
  for (const Json& row : goldens.at("texts")) {
    SCOPED_TRACE(row.dump());
    const auto text = row.get<std::string>();
    const auto ids = expected->encode(text, false);
    EXPECT_EQ(*found->encode(text, false), *ids);
    EXPECT_EQ(*found->decode(*ids, false), *expected->decode(*ids, false));
    EXPECT_EQ(*found->decode(*ids, true), *expected->decode(*ids, true));
    ++compared;
  }
  EXPECT_GE(compared, 45);
}

INSTANTIATE_TEST_SUITE_P(Families, RealVocabulary,
                         ::testing::Values(RealCase{"llama3_1", "gpt2", "llama-bpe"},
                                           RealCase{"qwen3", "gpt2", "qwen2"},
                                           RealCase{"llama2", "llama", "default"}),
                         [](const auto& about) { return std::string(about.param.folder); });

// Merges from scores are those that the converter of transformers wrote for a real vocabulary.
TEST(GgufTokenizer, MergesFollowFromScores) {
  const std::string path =
      std::string(KVSWEEP_SOURCE_DIR) + "/.deps/tokenizers/llama2/tokenizer.json";
  if (!std::filesystem::exists(path)) {
    GTEST_SKIP() << path << " is absent; scripts/setup fetches it where npm is installed";
  }
  const auto document = read_json_file(path);
  const Vocabulary vocabulary = vocabulary_of(*document);
  GgufWriter writer = head("llama", "default");
  writer.list("tokenizer.ggml.tokens", vocabulary.tokens)
      .list("tokenizer.ggml.token_type", 5, vocabulary.kinds)
      .list("tokenizer.ggml.scores", 6, scores_of(vocabulary, merges_of(*document)))
      .number("tokenizer.ggml.bos_token_id", 1);
  const TempDir dir;
  const auto file = GgufFile::open(dir.write("model.gguf", writer.bytes()));
  ASSERT_TRUE(file.ok());
  const auto made = gguf_tokenizer(*file);
  ASSERT_TRUE(made.ok()) << made.error().message;
  std::vector<std::string> expected = merges_of(*document);
  std::vector<std::string> found = merges_of(*made);
  ASSERT_EQ(found.size(), expected.size());
  // The tokens that are made come in one order; the ways to make one token do not: this vocabulary
  // was converted before transformers sorted them by length.
  const auto made_by = [](std::vector<std::string> merges) {
    for (std::string& merge : merges) merge.erase(merge.find(' '), 1);
    return merges;
  };
  EXPECT_TRUE(made_by(found) == made_by(expected));
  std::sort(found.begin(), found.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_TRUE(found == expected);
}

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
