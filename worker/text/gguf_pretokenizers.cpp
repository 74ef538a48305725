#include "worker/text/gguf_pretokenizers.hpp"

#include <vector>

#include "core/text.hpp"

namespace kvsweep::text {
namespace {

// Words of the tokenizers' own expressions (published in their tokenizer.json or tiktoken files):
// contractions; letters with one sign before them; numbers; signs; line ends; other white space.
constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// Upper-case and lower-case runs apart.
constexpr const char* kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct Row {
  const char* name;
  const char* expression;  // nullptr: GPT-2's, which the library has
  bool single_digits;      // cut before the expression
  bool nfc;
  bool ignore_merges;
  bool add_bos;
};
constexpr Row kTable[] = {
    {"gpt-2", nullptr, false, false, false, false},
    {"olmo", nullptr, false, true, false, false},
    {"smollm", nullptr, true, false, false, false},
    {"starcoder", nullptr, true, false, false, false},
    {"refact", nullptr, true, false, false, false},
    {"llama-bpe", kLlama3, false, false, true, true},
    {"llama3", kLlama3, false, false, true, true},
    {"llama-v3", kLlama3, false, false, true, true},
    {"falcon3", kLlama3, false, false, true, true},
    {"smaug-bpe", kLlama3, false, false, false, false},
    {"dbrx", kLlama3, false, false, false, false},
    {"qwen2", kQwen2, false, true, false, false},
    {"deepseek-r1-qwen", kQwen2, false, false, false, false},
    {"gpt-4o", kGpt4o, false, false, false, false},
    {"tekken", kTekken, false, false, true, true},
};

Json byte_level(bool with_expression) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", with_expression}};
}

Json split_by(const char* expression) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", expression}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

Json steps_of(const Row& row) {
  Json steps = Json::array();
  if (row.single_digits) steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
  if (row.expression != nullptr) steps.push_back(split_by(row.expression));
  steps.push_back(byte_level(row.expression == nullptr));
  return {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
}

}  // namespace

Result<Pretokenizer> find_pretokenizer(const std::string& name) {
  std::vector<std::string> known;
  for (const Row& row : kTable) {
    if (row.name == name) {
      return Pretokenizer{row.nfc ? Json{{"type", "NFC"}} : Json(), steps_of(row),
                          row.ignore_merges, row.add_bos};
    }
    known.emplace_back(row.name);
  }
  return bad_input("is \"" + name + "\"; supported are " + join(known, ", "));
}

}  // namespace kvsweep::text
