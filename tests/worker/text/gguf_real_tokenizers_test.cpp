// Tokenizers from GGUF metadata: real vocabularies written as GGUF here must cut texts as their own
// tokenizer.json does, which is compared with transformers elsewhere (real_tokenizers_test.cpp),
// and Mistral's tekken as its own code.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "core/gguf.hpp"
#include "tests/worker/text/gguf_support.hpp"
#include "tests/worker/text/support.hpp"
#include "worker/text/gguf_tokenizer.hpp"
#include "worker/text/tokenizer.hpp"

namespace kvsweep::text {
namespace {

using test::GgufWriter;
using Ids = std::vector<int32_t>;

const Json& goldens() {
  static const Json kGoldens = golden("tokenizers_golden.json");
  return kGoldens;
}

std::string downloaded(const std::string& name) {
  return std::string(KVSWEEP_SOURCE_DIR) + "/.deps/tokenizers/" + name;
}

#define SKIP_WITHOUT(path)                                                                 \
  if (!std::filesystem::exists(path)) {                                                    \
    GTEST_SKIP() << path << " is absent; scripts/setup fetches it where npm is installed"; \
  }

struct Vocabulary {
  std::vector<std::string> tokens;
  std::vector<int32_t> kinds;

  void put(size_t id, const std::string& text, int32_t kind) {
    for (size_t i = tokens.size(); i <= id; ++i) {
      tokens.push_back("[PAD" + std::to_string(i) + "]");  // as the converter fills gaps
      kinds.push_back(kUnused);
    }
    tokens[id] = text;
    kinds[id] = kind;
  }
};

// As llama.cpp's converter lists them: all ids, added tokens among them.
Vocabulary vocabulary_of(const Json& document) {
  Vocabulary out;
  for (const auto& [text, id] : document.at("model").at("vocab").items()) {
    const bool byte = text.size() == 6 && text.starts_with("<0x");
    out.put(id.get<size_t>(), text, byte ? kByte : kNormal);
  }
  for (const Json& added : document.at("added_tokens")) {
    const bool unknown = added.at("content") == "<unk>";
    out.put(added.at("id").get<size_t>(), added.at("content"),
            unknown ? kUnknown : (added.at("special").get<bool>() ? kControl : kUser));
  }
  return out;
}

GgufWriter with_tokens(GgufWriter writer, const Vocabulary& vocabulary) {
  writer.list("tokenizer.ggml.tokens", vocabulary.tokens)
      .list("tokenizer.ggml.token_type", 5, vocabulary.kinds)
      .flag("tokenizer.ggml.add_bos_token", false);
  return writer;
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
  const std::string folder = downloaded(GetParam().folder);
  SKIP_WITHOUT(folder + "/tokenizer.json");
  const auto document = read_json_file(folder + "/tokenizer.json");
  ASSERT_TRUE(document.ok());
  const Vocabulary vocabulary = vocabulary_of(*document);
  GgufWriter writer = with_tokens(head(GetParam().model, GetParam().pre), vocabulary);
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

  EXPECT_GE(found->vocab_size(), expected->vocab_size());
  int compared = 0;
  for (const Json& row : goldens().at("texts")) {
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

// smaug-bpe is Llama 3's vocabulary; DBRX, OLMo 2 and Phi-4 have that of GPT-3.5 with other added
// tokens, Phi-4-mini that of GPT-4o.
INSTANTIATE_TEST_SUITE_P(Families, RealVocabulary,
                         ::testing::Values(RealCase{"llama3_1", "gpt2", "llama-bpe"},
                                           RealCase{"llama3_1", "gpt2", "smaug-bpe"},
                                           RealCase{"qwen3", "gpt2", "qwen2"},
                                           RealCase{"gpt4o", "gpt2", "gpt-4o"},
                                           RealCase{"gpt35turbo", "gpt2", "dbrx"},
                                           RealCase{"llama2", "llama", "default"}),
                         [](const auto& about) {
                           std::string name = about.param.pre;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return about.param.folder + ("_" + name);
                         });

// Merges from scores are those that the converter of transformers wrote for a real vocabulary.
TEST(GgufRealTokenizer, MergesFollowFromScores) {
  const std::string path = downloaded("llama2/tokenizer.json");
  SKIP_WITHOUT(path);
  const auto document = read_json_file(path);
  ASSERT_TRUE(document.ok());
  const Vocabulary vocabulary = vocabulary_of(*document);
  const GgufWriter writer =
      with_tokens(head("llama", "default"), vocabulary)
          .list("tokenizer.ggml.scores", 6, scores_of(vocabulary, merges_of(*document)));
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

// Phi-3 is Llama 2's vocabulary and markers that swallow the white space behind them
// (make_tokenizer_goldens.py). </s> is no special token there, so the converter calls it
// user-defined.
TEST(GgufRealTokenizer, Phi3EqualsTransformers) {
  const std::string path = downloaded("llama2/tokenizer.json");
  SKIP_WITHOUT(path);
  const auto document = read_json_file(path);
  ASSERT_TRUE(document.ok());
  Vocabulary vocabulary = vocabulary_of(*document);
  const std::vector<float> scores = scores_of(vocabulary, merges_of(*document));
  vocabulary.kinds[2] = kUser;
  for (const char* name : {"<|endoftext|>", "<|assistant|>", "<|placeholder1|>", "<|placeholder2|>",
                           "<|placeholder3|>", "<|placeholder4|>", "<|system|>", "<|end|>",
                           "<|placeholder5|>", "<|placeholder6|>", "<|user|>"}) {
    vocabulary.put(vocabulary.tokens.size(), name, kControl);
  }
  std::vector<float> all = scores;
  all.resize(vocabulary.tokens.size(), -1000.0f);
  GgufWriter writer = with_tokens(head("llama", "default", "phi3"), vocabulary);
  writer.list("tokenizer.ggml.scores", 6, all);
  const TempDir dir;
  const auto tokenizer = Tokenizer::load(dir.write("model.gguf", writer.bytes()));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  ASSERT_GE(goldens()["phi3"].size(), 50u);
  for (const auto& [text, row] : goldens()["phi3"].items()) {
    SCOPED_TRACE(text);
    const Ids ids = row["ids"].get<Ids>();
    EXPECT_EQ(*tokenizer->encode(text, false), ids);
    const std::string decoded = row.value("decoded", text);
    EXPECT_EQ(*tokenizer->decode(ids, false), decoded);
    EXPECT_EQ(*tokenizer->decode(ids, true), row.value("plain", decoded));
  }
}

std::string from_base64(const std::string& text) {
  static const std::string kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<uint32_t>(kDigits.find(c));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out.push_back(static_cast<char>(bits >> count & 255u));
  }
  return out;
}

// GPT-2's spelling of bytes: printable ones stand for themselves, the others for U+0100 and up.
std::string spelled(const std::string& bytes) {
  static const std::vector<std::string> kSpelling = [] {
    std::vector<std::string> spelling;
    int next = 256;
    for (int byte = 0; byte < 256; ++byte) {
      const bool prints = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
      const int code = prints ? byte : next++;
      spelling.push_back(code < 128 ? std::string(1, static_cast<char>(code))
                                    : std::string{static_cast<char>(0xc0 | code >> 6),
                                                  static_cast<char>(0x80 | (code & 63))});
    }
    return spelling;
  }();
  std::string out;
  for (const char byte : bytes) out += kSpelling[static_cast<uint8_t>(byte)];
  return out;
}

// Every way to make a token of two, by the rank of the token, then of its parts.
std::vector<std::string> merges_by_rank(const std::vector<std::string>& ranked) {
  std::unordered_map<std::string_view, size_t> ranks;
  for (size_t rank = 0; rank < ranked.size(); ++rank) ranks.emplace(ranked[rank], rank);
  std::vector<std::string> merges;
  for (const std::string& whole : ranked) {
    std::vector<std::tuple<size_t, size_t>> ways;
    for (size_t cut = 1; cut < whole.size(); ++cut) {
      const auto left = ranks.find(std::string_view(whole).substr(0, cut));
      const auto right = ranks.find(std::string_view(whole).substr(cut));
      if (left != ranks.end() && right != ranks.end()) {
        ways.emplace_back(left->second, right->second);
      }
    }
    std::sort(ways.begin(), ways.end());
    for (const auto& [left, right] : ways) {
      merges.push_back(spelled(ranked[left]) + " " + spelled(ranked[right]));
    }
  }
  return merges;
}

TEST(GgufRealTokenizer, TekkenEqualsItsOwnCode) {
  const std::string path = downloaded("tekken/tekken.json");
  SKIP_WITHOUT(path);
  const auto document = read_json_file(path);
  ASSERT_TRUE(document.ok());
  const Json& config = document->at("config");
  const auto special = config.at("default_num_special_tokens").get<size_t>();
  Vocabulary vocabulary;
  for (size_t id = 0; id < special; ++id) {
    vocabulary.put(id, "<SPECIAL_" + std::to_string(id) + ">", kControl);
  }
  std::vector<std::string> ranked;
  const size_t count = config.at("default_vocab_size").get<size_t>() - special;
  for (size_t rank = 0; rank < count; ++rank) {
    ranked.push_back(from_base64(document->at("vocab").at(rank).at("token_bytes")));
    vocabulary.put(special + rank, spelled(ranked.back()), kNormal);
  }
  GgufWriter writer = with_tokens(head("gpt2", "tekken"), vocabulary);
  writer.list("tokenizer.ggml.merges", merges_by_rank(ranked));
  const TempDir dir;
  const auto tokenizer = Tokenizer::load(dir.write("model.gguf", writer.bytes()));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  ASSERT_GE(goldens()["tekken"].size(), 40u);
  for (const Json& row : goldens()["tekken"]) {
    const auto text = goldens()["texts"][row[0].get<size_t>()].get<std::string>();
    SCOPED_TRACE(text);
    const Ids ids = row[1].get<Ids>();
    EXPECT_EQ(*tokenizer->encode(text, false), ids);
    EXPECT_EQ(*tokenizer->decode(ids, false), text);
  }
}

}  // namespace
}  // namespace kvsweep::text
