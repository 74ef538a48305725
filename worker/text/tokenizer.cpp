#include "worker/text/tokenizer.hpp"

#include <filesystem>
#include <limits>
#include <utility>

#include "core/gguf.hpp"
#include "core/text.hpp"
#include "worker/text/gguf_tokenizer.hpp"
#include "worker/text/rust_string.hpp"
#include "worker/text/special_tokens.hpp"
#include "worker/text/tokenizer_settings.hpp"

namespace kvsweep::text {
namespace {

struct TokenizerFree {
  void operator()(KvsTokenizer* tokenizer) const { kvs_tokenizer_free(tokenizer); }
};
using Handle = std::unique_ptr<KvsTokenizer, TokenizerFree>;

// What one call of kvs_tokenizer_encode allocates.
struct Encoding {
  uint32_t* ids = nullptr;
  uint64_t* offsets = nullptr;
  int64_t count = 0;
  Encoding() = default;
  Encoding(const Encoding&) = delete;
  Encoding& operator=(const Encoding&) = delete;
  ~Encoding() { kvs_ids_free(ids, offsets, count); }
};

Result<Handle> load_gguf(const std::string& path) {
  KVSWEEP_ASSIGN(const GgufFile file, GgufFile::open(path));
  KVSWEEP_ASSIGN(const Json document, gguf_tokenizer(file));
  const std::string text = document.dump();
  RustError error;
  Handle handle(kvs_tokenizer_from_json(text.data(), text.size(), path.c_str(), error.slot()));
  if (!handle) return bad_input(error.text());
  return handle;
}

Result<Handle> load_folder(const std::string& model_dir) {
  const std::string path = model_dir + "/tokenizer.json";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    return bad_input(path + " is missing: a model folder needs config.json, tokenizer.json and " +
                     "*.safetensors");
  }
  RustError error;
  Handle handle(kvs_tokenizer_load(path.c_str(), error.slot()));
  if (!handle) return bad_input(error.text());
  return handle;
}

// The parts of tokenizer_config.json that change what tokenizer.json does.
Status configure(const Handle& handle, const std::string& model_dir) {
  KVSWEEP_ASSIGN(const Json settings, read_tokenizer_settings(model_dir));
  const std::string text = settings.dump();
  RustError error;
  if (kvs_tokenizer_configure(handle.get(), text.data(), text.size(), error.slot()) == 0) return {};
  return bad_input(model_dir + "/tokenizer_config.json: " + error.text());
}

}  // namespace

struct Tokenizer::State {
  Handle handle;
  int64_t vocab_size = 0;
  std::vector<int32_t> eos_ids;
  std::string eos_text;
  std::optional<int32_t> text_start;
};

Tokenizer::Tokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::load(const std::string& model_dir) {
  auto state = std::make_unique<State>();
  KVSWEEP_ASSIGN(state->handle,
                 is_gguf_path(model_dir) ? load_gguf(model_dir) : load_folder(model_dir));
  KVSWEEP_TRY(configure(state->handle, model_dir));
  state->vocab_size = kvs_tokenizer_vocab_size(state->handle.get());
  // encode() hands ids out as int32.
  if (state->vocab_size < 1 || state->vocab_size > std::numeric_limits<int32_t>::max()) {
    return bad_input(model_dir + "/tokenizer.json: its ids end at " +
                     std::to_string(state->vocab_size - 1) + ", which no model can have");
  }
  const auto lookup = [&](const std::string& token) {
    return kvs_tokenizer_token_id(state->handle.get(), token.data(), token.size());
  };
  KVSWEEP_ASSIGN(state->eos_ids, read_eos_ids(model_dir, state->vocab_size, lookup));
  KVSWEEP_ASSIGN(const auto special, read_special_tokens(model_dir));
  const auto bos = special.find("bos_token");
  const int64_t bos_id = bos == special.end() ? -1 : lookup(bos->second);
  if (bos_id >= 0) {
    state->text_start = static_cast<int32_t>(bos_id);
  } else if (!state->eos_ids.empty()) {
    state->text_start = state->eos_ids.front();
  }
  Tokenizer tokenizer(std::move(state));
  if (!tokenizer.eos_ids().empty()) {
    KVSWEEP_ASSIGN(tokenizer.state_->eos_text, tokenizer.decode({tokenizer.eos_ids()[0]}, false));
  }
  return tokenizer;
}

namespace {

Status check_text(const std::string& text) {
  if (valid_utf8(text)) return {};
  return bad_input("the text to be tokenized is not valid UTF-8");
}

}  // namespace

Result<std::vector<int32_t>> Tokenizer::encode(const std::string& text,
                                               bool add_special_tokens) const {
  KVSWEEP_TRY(check_text(text));
  Encoding encoding;
  RustError error;
  encoding.count =
      kvs_tokenizer_encode(state_->handle.get(), text.data(), text.size(), add_special_tokens,
                           &encoding.ids, &encoding.offsets, error.slot());
  if (encoding.count < 0) return bad_input(error.text());
  return std::vector<int32_t>(encoding.ids, encoding.ids + encoding.count);
}

Result<int64_t> Tokenizer::count(const std::string& text, bool add_special_tokens) const {
  KVSWEEP_TRY(check_text(text));
  RustError error;
  const int64_t count = kvs_tokenizer_count(state_->handle.get(), text.data(), text.size(),
                                            add_special_tokens, error.slot());
  if (count < 0) return bad_input(error.text());
  return count;
}

Result<std::string> Tokenizer::decode(const std::vector<int32_t>& ids,
                                      bool skip_special_tokens) const {
  std::vector<uint32_t> wire;
  wire.reserve(ids.size());
  for (const int32_t id : ids) {
    if (id < 0) return bad_input("token id " + std::to_string(id) + " is negative");
    wire.push_back(static_cast<uint32_t>(id));
  }
  size_t length = 0;
  RustError error;
  RustString text(kvs_tokenizer_decode(state_->handle.get(), wire.data(), wire.size(),
                                       skip_special_tokens, &length, error.slot()));
  if (!text) return bad_input(error.text());
  return take_string(std::move(text), length);
}

std::string Tokenizer::kind() const {
  const RustString kind(kvs_tokenizer_kind(state_->handle.get(), nullptr));
  return kind ? kind.get() : "unknown";
}

int64_t Tokenizer::vocab_size() const {
  return state_->vocab_size;
}
const std::vector<int32_t>& Tokenizer::eos_ids() const {
  return state_->eos_ids;
}
std::optional<int32_t> Tokenizer::text_start() const {
  return state_->text_start;
}

std::string Tokenizer::eos_text() const {
  return state_->eos_text;
}

}  // namespace kvsweep::text
