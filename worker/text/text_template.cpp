#include "worker/text/text_template.hpp"

#include <utility>

#include "worker/text/chat_template.hpp"
#include "worker/text/rust_string.hpp"

namespace kvsweep::text {
namespace {

constexpr uint64_t kMaxSteps = 2'000'000;  // as of a chat template

struct TemplateFree {
  void operator()(KvsTemplate* compiled) const { kvs_template_free(compiled); }
};

}  // namespace

struct TextTemplate::State {
  std::unique_ptr<KvsTemplate, TemplateFree> handle;
  std::string where;
};

TextTemplate::TextTemplate(std::unique_ptr<State> state) : state_(std::move(state)) {}
TextTemplate::TextTemplate(TextTemplate&&) noexcept = default;
TextTemplate& TextTemplate::operator=(TextTemplate&&) noexcept = default;
TextTemplate::~TextTemplate() = default;

Result<TextTemplate> TextTemplate::compile(const std::string& source, std::string where) {
  auto state = std::make_unique<State>();
  RustError error;
  state->handle.reset(kvs_template_compile(source.data(), source.size(), error.slot()));
  if (!state->handle) return bad_input(where + ": " + error.text());
  state->where = std::move(where);
  return TextTemplate(std::move(state));
}

Result<std::string> TextTemplate::render(const Json& values) const {
  const std::string context = values.dump(-1, ' ', false, Json::error_handler_t::replace);
  size_t length = 0;
  RustError error;
  RustString text(kvs_template_render(state_->handle.get(), context.data(), context.size(),
                                      kTemplateDate, kMaxSteps, &length, error.slot()));
  if (!text) return bad_input(state_->where + ": " + error.text());
  return take_string(std::move(text), length);
}

}  // namespace kvsweep::text
