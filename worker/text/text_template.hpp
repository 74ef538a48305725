// Jinja templates over the members of a JSON object, with the semantics and bounds of chat
// templates.
#pragma once

#include <memory>
#include <string>

#include "core/json.hpp"
#include "core/result.hpp"

namespace kvsweep::text {

// Immutable after compiling; thread-safe.
class TextTemplate {
 public:
  // `where` begins error messages. bad_input when the source is no template.
  static Result<TextTemplate> compile(const std::string& source, std::string where);
  TextTemplate(TextTemplate&&) noexcept;
  TextTemplate& operator=(TextTemplate&&) noexcept;
  ~TextTemplate();

  // The members of `values` are the template's variables. bad_input for what the template cannot do
  // with them, and for one that takes too many steps.
  Result<std::string> render(const Json& values) const;

 private:
  struct State;
  explicit TextTemplate(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kvsweep::text
