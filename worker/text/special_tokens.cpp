#include "worker/text/special_tokens.hpp"

#include <filesystem>

#include "core/json_reader.hpp"
#include "worker/text/model_document.hpp"

namespace kvsweep::text {
namespace {

Result<int32_t> eos_id(const Json& value, int64_t vocab_size, const std::string& path) {
  const bool fits =
      value.is_number_integer() && value >= 0 && value < Json(vocab_size) && value <= INT32_MAX;
  if (fits) return value.get<int32_t>();
  return bad_input(path + ": eos_token_id " + shown(value) + " is not a token of tokenizer.json, " +
                   "whose ids are 0 to " + std::to_string(vocab_size - 1) +
                   "; the two files belong to different models");
}

// Empty when the file or the member is missing.
Result<std::vector<int32_t>> eos_ids_of(const std::string& model, const std::string& name,
                                        int64_t vocab_size) {
  const std::string path = model + "/" + name;
  KVSWEEP_ASSIGN(const auto json, read_model_document(model, name));
  std::vector<int32_t> ids;
  if (!json || !json->contains("eos_token_id") || (*json)["eos_token_id"].is_null()) return ids;
  const Json& member = (*json)["eos_token_id"];
  for (const Json& value : member.is_array() ? member : Json::array({member})) {
    KVSWEEP_ASSIGN(const int32_t id, eos_id(value, vocab_size, path));
    ids.push_back(id);
  }
  return ids;
}

// A special token is written as "text" or as {"content": "text", ...}.
std::optional<std::string> token_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object() && value.contains("content") && value["content"].is_string()) {
    return value["content"].get<std::string>();
  }
  return std::nullopt;
}

}  // namespace

Result<std::optional<Json>> read_optional_json(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::optional<Json>();
  auto json = read_json_file(path);
  if (!json.ok()) return json.error();
  if (!json->is_object()) return bad_input(path + " is not a JSON object");
  return std::optional<Json>(std::move(json).value());
}

Result<std::map<std::string, std::string>> read_special_tokens(const std::string& model_dir) {
  const std::string path = model_dir + "/tokenizer_config.json";
  KVSWEEP_ASSIGN(const auto json, read_model_document(model_dir, "tokenizer_config.json"));
  std::map<std::string, std::string> tokens;
  if (!json) return tokens;
  for (const auto& [key, value] : json->items()) {
    if (!key.ends_with("_token") || value.is_null() || value.is_boolean()) continue;
    const auto text = token_text(value);
    if (!text) return bad_input(path + ": " + key + " is " + shown(value) + ", not a token");
    tokens[key] = *text;
  }
  return tokens;
}

Result<std::vector<int32_t>> read_eos_ids(const std::string& model_dir, int64_t vocab_size,
                                          const TokenLookup& lookup) {
  for (const char* name : {"generation_config.json", "config.json"}) {
    auto ids = eos_ids_of(model_dir, name, vocab_size);
    if (!ids.ok() || !ids->empty()) return ids;
  }
  KVSWEEP_ASSIGN(const auto tokens, read_special_tokens(model_dir));
  const auto eos = tokens.find("eos_token");
  if (eos == tokens.end()) return std::vector<int32_t>();
  const int64_t id = lookup(eos->second);
  if (id < 0 || id > INT32_MAX) {
    return bad_input(
        model_dir + "/tokenizer_config.json: eos_token '" + eos->second +
        "' is not a token of tokenizer.json; the two files belong to different models");
  }
  return std::vector<int32_t>{static_cast<int32_t>(id)};
}

}  // namespace kvsweep::text
