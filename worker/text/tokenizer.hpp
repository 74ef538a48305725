// Tokenizer: a Hugging Face tokenizer.json, or the same made from a GGUF file, through the
// `tokenizers` library.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace kvsweep::text {

// Immutable after loading; all methods are const and thread-safe.
class Tokenizer {
 public:
  // Reads DIR/tokenizer.json, and from tokenizer_config.json, generation_config.json and
  // config.json the end-of-sequence ids (special_tokens.hpp) and settings (tokenizer_settings.hpp).
  // Truncation and padding that the file may ask for are off: a prompt is never cut. Bounded in
  // time and memory, also for hostile files. Error (bad_input) names the file and the field.
  static Result<Tokenizer> load(const std::string& model_dir);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // `add_special_tokens` applies the post-processor (BOS where the model has one). Invalid UTF-8
  // is bad_input.
  Result<std::vector<int32_t>> encode(const std::string& text, bool add_special_tokens) const;
  // How many tokens `encode` gives, in about two thirds of its time.
  Result<int64_t> count(const std::string& text, bool add_special_tokens) const;
  // A negative id is bad_input; an id past the vocabulary gives no text (a model may have more rows
  // than its tokenizer has tokens). Bytes that are no whole character become U+FFFD.
  Result<std::string> decode(const std::vector<int32_t>& ids, bool skip_special_tokens) const;

  std::string kind() const;    // "BPE, byte-level"
  int64_t vocab_size() const;  // highest id + 1, added tokens included
  const std::vector<int32_t>& eos_ids() const;
  // What stands before the first token of a text that is scored: BOS, whether or not `encode` adds
  // it, else the first end-of-sequence id; nullopt when there is neither (lm-eval's prefix token).
  std::optional<int32_t> text_start() const;
  std::string eos_text() const;  // of the first end-of-sequence id; "" when there is none

 private:
  struct State;
  explicit Tokenizer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kvsweep::text
