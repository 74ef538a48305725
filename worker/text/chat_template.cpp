#include "worker/text/chat_template.hpp"

#include <filesystem>
#include <map>
#include <utility>

#include "core/file.hpp"
#include "core/json.hpp"
#include "core/text.hpp"
#include "worker/text/model_document.hpp"
#include "worker/text/rust_string.hpp"
#include "worker/text/special_tokens.hpp"

namespace kvsweep::text {
namespace {

// Instructions of one rendering. A real template needs fewer than 100 per message; this many take
// well under a second.
constexpr uint64_t kMaxSteps = 2'000'000;

struct TemplateFree {
  void operator()(KvsTemplate* compiled) const { kvs_template_free(compiled); }
};
using Handle = std::unique_ptr<KvsTemplate, TemplateFree>;

Error no_template(const std::string& model_dir) {
  return not_found(model_dir + " has no chat template: neither chat_template.jinja nor a " +
                   "chat_template in tokenizer_config.json (or in a GGUF file)");
}

// "chat_template" is the text, or a list of {"name": ..., "template": ...} with one "default".
Result<std::string> source_in(const Json& config, const std::string& path,
                              const std::string& model_dir) {
  const auto member = config.find("chat_template");
  if (member == config.end() || member->is_null()) return no_template(model_dir);
  if (member->is_string()) return member->get<std::string>();
  if (!member->is_array()) return bad_input(path + ": chat_template is neither text nor a list");
  for (const Json& entry : *member) {
    const bool named = entry.is_object() && entry.value("name", Json()) == "default";
    if (named && entry.value("template", Json()).is_string()) {
      return entry["template"].get<std::string>();
    }
  }
  return bad_input(path + ": chat_template is a list without an entry named 'default'");
}

Result<std::string> read_source(const std::string& model_dir) {
  std::error_code ignored;
  const std::string jinja = model_dir + "/chat_template.jinja";
  if (std::filesystem::exists(jinja, ignored)) return read_file(jinja);
  KVSWEEP_ASSIGN(const auto config, read_model_document(model_dir, "tokenizer_config.json"));
  if (!config) return no_template(model_dir);
  return source_in(*config, model_dir + "/tokenizer_config.json", model_dir);
}

}  // namespace

struct ChatTemplate::State {
  Handle handle;
  std::string model_dir;
  std::string now;
  std::map<std::string, std::string> special_tokens;
};

ChatTemplate::ChatTemplate(std::unique_ptr<State> state) : state_(std::move(state)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::load(const std::string& model_dir, std::string now) {
  KVSWEEP_ASSIGN(const std::string source, read_source(model_dir));
  auto state = std::make_unique<State>();
  KVSWEEP_ASSIGN(state->special_tokens, read_special_tokens(model_dir));
  RustError error;
  state->handle.reset(kvs_template_compile(source.data(), source.size(), error.slot()));
  if (!state->handle) return bad_input(model_dir + ": " + error.text());
  state->model_dir = model_dir;
  state->now = std::move(now);
  return ChatTemplate(std::move(state));
}

Result<std::string> ChatTemplate::render(const std::vector<ChatMessage>& messages,
                                         bool add_generation_prompt) const {
  // Ordered: a template may print a whole message, whose role comes first.
  nlohmann::ordered_json context;
  context["messages"] = nlohmann::ordered_json::array();
  for (const ChatMessage& message : messages) {
    if (!valid_utf8(message.role) || !valid_utf8(message.content)) {
      return bad_input("message " + std::to_string(context["messages"].size() + 1) +
                       " of the conversation is not valid UTF-8");
    }
    context["messages"].push_back({{"role", message.role}, {"content", message.content}});
  }
  context["add_generation_prompt"] = add_generation_prompt;
  context["tools"] = nullptr;  // transformers defines both, empty
  context["documents"] = nullptr;
  for (const auto& [name, token] : state_->special_tokens) context[name] = token;

  const std::string values = context.dump();
  size_t length = 0;
  RustError error;
  RustString text(kvs_template_render(state_->handle.get(), values.data(), values.size(),
                                      state_->now.c_str(), kMaxSteps, &length, error.slot()));
  if (!text) return bad_input(state_->model_dir + ": " + error.text());
  return take_string(std::move(text), length);
}

}  // namespace kvsweep::text
