// Chat templates as Hugging Face renders them (minijinja with Python's semantics).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace kvsweep::text {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};

// What strftime_now tells every template: the date that templates of Llama 3.1 fall back to. The
// real date would give the same example another prompt, and another measurement, every day.
inline constexpr const char* kTemplateDate = "2024-07-26";

// Immutable after loading; thread-safe.
class ChatTemplate {
 public:
  // Reads DIR/chat_template.jinja, else "chat_template" of DIR/tokenizer_config.json, or
  // tokenizer.chat_template of a GGUF file.
  // not_found when the model has none; bad_input, naming the folder, when it cannot be compiled.
  // `now` is "2024-07-26" or "2024-07-26T12:34:56".
  static Result<ChatTemplate> load(const std::string& model_dir, std::string now = kTemplateDate);
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // The prompt. Bounded in steps and output, so that an endless template is bad_input and not a
  // hang; so is a conversation that the template refuses (raise_exception), and invalid UTF-8.
  Result<std::string> render(const std::vector<ChatMessage>& messages,
                             bool add_generation_prompt) const;

 private:
  struct State;
  explicit ChatTemplate(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kvsweep::text
