#include "worker/text/tokenizer_settings.hpp"

#include "core/json_reader.hpp"
#include "worker/text/model_document.hpp"
#include "worker/text/special_tokens.hpp"

namespace kvsweep::text {
namespace {

// nullopt when the member is absent or null.
Result<std::optional<bool>> flag(const Json& config, const char* name, const std::string& path) {
  const auto member = config.find(name);
  if (member == config.end() || member->is_null()) return std::optional<bool>();
  if (member->is_boolean()) return std::optional<bool>(member->get<bool>());
  return bad_input(path + ": " + name + " is " + shown(*member) + ", not true or false");
}

std::string text_of(const Json& config, const char* name) {
  const auto member = config.find(name);
  return member != config.end() && member->is_string() ? member->get<std::string>() : "";
}

bool is_llama_class(const Json& tokenizer_config, const Json& config) {
  std::string name = text_of(tokenizer_config, "tokenizer_class");
  if (name.empty()) name = text_of(config, "tokenizer_class");
  const std::string type = text_of(config, "model_type");
  return (name == "LlamaTokenizer" || name == "LlamaTokenizerFast") &&
         (type.empty() || type == "llama");
}

}  // namespace

Result<Json> read_tokenizer_settings(const std::string& model_dir) {
  const std::string path = model_dir + "/tokenizer_config.json";
  KVSWEEP_ASSIGN(const auto tokenizer_config,
                 read_model_document(model_dir, "tokenizer_config.json"));
  KVSWEEP_ASSIGN(const auto config, read_model_document(model_dir, "config.json"));
  Json settings = Json::object();
  if (!tokenizer_config) return settings;
  KVSWEEP_ASSIGN(const auto tokens, read_special_tokens(model_dir));
  for (const std::string name : {"bos_token", "eos_token"}) {
    KVSWEEP_ASSIGN(const auto add, flag(*tokenizer_config, ("add_" + name).c_str(), path));
    if (add) settings["add_" + name] = *add;
    if (const auto token = tokens.find(name); token != tokens.end()) settings[name] = token->second;
  }
  if (is_llama_class(*tokenizer_config, config.value_or(Json::object()))) {
    KVSWEEP_ASSIGN(const auto legacy, flag(*tokenizer_config, "legacy", path));
    KVSWEEP_ASSIGN(const auto prefix, flag(*tokenizer_config, "add_prefix_space", path));
    const char* scheme = legacy.value_or(false) ? "always" : "first";
    settings["prepend_scheme"] = prefix.value_or(true) ? scheme : "never";
  }
  return settings;
}

}  // namespace kvsweep::text
