#include "worker/text/model_document.hpp"

#include "core/gguf.hpp"
#include "worker/text/gguf_tokenizer.hpp"
#include "worker/text/special_tokens.hpp"

namespace kvsweep::text {
namespace {

Result<std::optional<Json>> some(Result<Json> document) {
  if (!document.ok()) return document.error();
  return std::optional<Json>(std::move(document).value());
}

}  // namespace

Result<std::optional<Json>> read_model_document(const std::string& model, const std::string& name) {
  if (!is_gguf_path(model)) return read_optional_json(model + "/" + name);
  KVSWEEP_ASSIGN(const GgufFile file, GgufFile::open(model));
  if (name == "tokenizer_config.json") return some(gguf_tokenizer_config(file));
  if (name == "generation_config.json") return some(gguf_generation_config(file));
  return std::optional<Json>();
}

}  // namespace kvsweep::text
