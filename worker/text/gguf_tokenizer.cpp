#include "worker/text/gguf_tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>

#include "worker/text/gguf_pretokenizers.hpp"
#include "worker/text/gguf_vocabulary.hpp"

namespace kvsweep::text {
namespace {

constexpr const char* kSpace = "\xe2\x96\x81";  // U+2581, a space inside SentencePiece

Json replace(const char* from, const char* to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

Json sequence(const char* list, Json steps) {
  return {{"type", "Sequence"}, {list, std::move(steps)}};
}

// Whether the white space behind a token belongs to it, which GGUF cannot say: so Microsoft
// published the tokenizer of Phi-3, for all but three tokens, and that of Phi-4-mini for the
// markers of turns.
enum class SpaceRule { none, phi3, phi4_mini };

bool swallows_space(const std::string& text, SpaceRule rule) {
  const auto is_one_of = [&](std::initializer_list<const char*> names) {
    return std::find(names.begin(), names.end(), text) != names.end();
  };
  if (rule == SpaceRule::phi3) return !is_one_of({"<unk>", "<s>", "<|endoftext|>"});
  if (rule == SpaceRule::none) return false;
  return is_one_of({"<|system|>", "<|user|>", "<|assistant|>", "<|end|>"});
}

// Tokens that are cut out of the text before anything else.
Json added_tokens(const GgufVocabulary& vocabulary, SpaceRule rule) {
  Json added = Json::array();
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (!vocabulary.is_added(id)) continue;
    const std::string& text = vocabulary.tokens[id];
    added.push_back({{"id", id},
                     {"content", text},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", swallows_space(text, rule)},
                     {"normalized", false},
                     {"special", vocabulary.kind(id) != TokenKind::user_defined}});
  }
  return added;
}

Json special_piece(const std::string& token) {
  return {{"SpecialToken", {{"id", token}, {"type_id", 0}}}};
}

// Begin and end around the text, where the file (or else its kind) says so.
Result<Json> post_processor(const GgufFile& file, const GgufVocabulary& vocabulary, bool add_bos) {
  KVSWEEP_ASSIGN(const bool bos, file.boolean("tokenizer.ggml.add_bos_token", add_bos));
  KVSWEEP_ASSIGN(const bool eos, file.boolean("tokenizer.ggml.add_eos_token", false));
  if (!bos && !eos) return Json();
  Json single = Json::array(), pair = Json::array(), tokens = Json::object();
  const auto add = [&](const char* key) -> Status {
    KVSWEEP_ASSIGN(const size_t id, vocabulary.id_of(file, key));
    const std::string& text = vocabulary.tokens[id];
    tokens[text] = {{"id", text}, {"ids", {id}}, {"tokens", {text}}};
    single.push_back(special_piece(text));
    pair.push_back(special_piece(text));
    return {};
  };
  if (bos) KVSWEEP_TRY(add("tokenizer.ggml.bos_token_id"));
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  pair.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  pair.push_back({{"Sequence", {{"id", "B"}, {"type_id", 1}}}});
  if (eos) KVSWEEP_TRY(add("tokenizer.ggml.eos_token_id"));
  return Json{{"type", "TemplateProcessing"},
              {"single", std::move(single)},
              {"pair", std::move(pair)},
              {"special_tokens", std::move(tokens)}};
}

Json bpe(const GgufVocabulary& vocabulary, Json merges) {
  Json ids = Json::object();
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) ids[vocabulary.tokens[id]] = id;
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", false},
          {"vocab", std::move(ids)},
          {"merges", std::move(merges)}};
}

Json document(Json added, Json model) {
  return {{"version", "1.0"},         {"truncation", nullptr},
          {"padding", nullptr},       {"added_tokens", std::move(added)},
          {"normalizer", nullptr},    {"pre_tokenizer", nullptr},
          {"decoder", nullptr},       {"post_processor", nullptr},
          {"model", std::move(model)}};
}

// Phi-3 and 3.5 (SentencePiece), Phi-4-mini and Phi-4 (byte-level).
Result<bool> is_phi3(const GgufFile& file) {
  KVSWEEP_ASSIGN(const std::string architecture, file.text("general.architecture", ""));
  return architecture == "phi3";
}

Result<Json> byte_level_tokenizer(const GgufFile& file, const GgufVocabulary& vocabulary) {
  const char* key = "tokenizer.ggml.pre";
  KVSWEEP_ASSIGN(const std::string name, file.text(key));
  const auto found = find_pretokenizer(name);
  if (!found.ok()) return file.error(key, found.error().message);
  KVSWEEP_ASSIGN(Json merges, read_merges(file, vocabulary));
  KVSWEEP_ASSIGN(const bool phi3, is_phi3(file));
  const SpaceRule rule = phi3 ? SpaceRule::phi4_mini : SpaceRule::none;
  Json out = document(added_tokens(vocabulary, rule), bpe(vocabulary, std::move(merges)));
  out["model"]["ignore_merges"] = found->ignore_merges;
  out["normalizer"] = found->normalizer;
  out["pre_tokenizer"] = found->pre_tokenizer;
  out["decoder"] = {{"type", "ByteLevel"},
                    {"add_prefix_space", false},
                    {"trim_offsets", true},
                    {"use_regex", true}};
  KVSWEEP_ASSIGN(out["post_processor"], post_processor(file, vocabulary, found->add_bos));
  return out;
}

Result<Json> sentencepiece_tokenizer(const GgufFile& file, const GgufVocabulary& vocabulary) {
  KVSWEEP_ASSIGN(const bool prefix, file.boolean("tokenizer.ggml.add_space_prefix", true));
  KVSWEEP_ASSIGN(const bool phi3, is_phi3(file));
  KVSWEEP_ASSIGN(Json merges, merges_by_score(file, vocabulary));
  const SpaceRule rule = phi3 ? SpaceRule::phi3 : SpaceRule::none;
  Json out = document(added_tokens(vocabulary, rule), bpe(vocabulary, std::move(merges)));
  out["model"]["byte_fallback"] = true;
  out["model"]["fuse_unk"] = true;
  KVSWEEP_ASSIGN(const size_t unknown, vocabulary.unknown_id(file));
  out["model"]["unk_token"] = vocabulary.tokens[unknown];
  Json spaces = replace(" ", kSpace);
  Json decoders =
      Json::array({replace(kSpace, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}});
  if (prefix) {
    spaces = sequence("normalizers",
                      Json::array({{{"type", "Prepend"}, {"prepend", kSpace}}, std::move(spaces)}));
    decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  out["normalizer"] = std::move(spaces);
  out["decoder"] = sequence("decoders", std::move(decoders));
  KVSWEEP_ASSIGN(out["post_processor"], post_processor(file, vocabulary, true));
  return out;
}

}  // namespace

Result<Json> gguf_tokenizer(const GgufFile& file) {
  const char* key = "tokenizer.ggml.model";
  KVSWEEP_ASSIGN(const std::string model, file.text(key));
  if (model != "gpt2" && model != "llama") {
    return file.error(key, fmt::format("is \"{}\"; supported are \"gpt2\" and \"llama\"", model));
  }
  KVSWEEP_ASSIGN(const GgufVocabulary vocabulary, GgufVocabulary::read(file));
  if (model == "gpt2") return byte_level_tokenizer(file, vocabulary);
  return sentencepiece_tokenizer(file, vocabulary);
}

Result<Json> gguf_tokenizer_config(const GgufFile& file) {
  KVSWEEP_ASSIGN(const GgufVocabulary vocabulary, GgufVocabulary::read(file));
  const std::pair<const char*, const char*> kTokens[] = {
      {"bos_token", "tokenizer.ggml.bos_token_id"},
      {"eos_token", "tokenizer.ggml.eos_token_id"},
      {"unk_token", "tokenizer.ggml.unknown_token_id"},
      {"pad_token", "tokenizer.ggml.padding_token_id"},
  };
  Json config = Json::object();
  for (const auto& [name, key] : kTokens) {
    if (!file.has(key)) continue;
    KVSWEEP_ASSIGN(const size_t id, vocabulary.id_of(file, key));
    config[name] = vocabulary.tokens[id];
  }
  if (file.has("tokenizer.chat_template")) {
    KVSWEEP_ASSIGN(config["chat_template"], file.text("tokenizer.chat_template"));
  }
  return config;
}

Result<Json> gguf_generation_config(const GgufFile& file) {
  KVSWEEP_ASSIGN(const GgufVocabulary vocabulary, GgufVocabulary::read(file));
  std::vector<size_t> ends;
  const auto add = [&](size_t id) {
    if (std::find(ends.begin(), ends.end(), id) == ends.end()) ends.push_back(id);
  };
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                          "tokenizer.ggml.eom_token_id"}) {
    if (!file.has(key)) continue;
    KVSWEEP_ASSIGN(const size_t id, vocabulary.id_of(file, key));
    add(id);
  }
  const char* const kTurnEnds[] = {"<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>",
                                   "<end_of_turn>"};
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (!vocabulary.is_added(id)) continue;
    for (const char* text : kTurnEnds) {
      if (vocabulary.tokens[id] == text) add(id);
    }
  }
  return Json{{"eos_token_id", ends}};
}

}  // namespace kvsweep::text
