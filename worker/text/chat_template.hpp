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

// Immutable after loading; thread-safe.
class ChatTemplate {
 public:
  // Reads DIR/chat_template.jinja, else "chat_template" of DIR/tokenizer_config.json.
  // not_found when the model has none.
  static Result<ChatTemplate> load(const std::string& model_dir);
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // Bounded in steps, so that an endless template is bad_input and not a hang.
  Result<std::string> render(const std::vector<ChatMessage>& messages,
                             bool add_generation_prompt) const;

 private:
  struct State;
  explicit ChatTemplate(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kvsweep::text
