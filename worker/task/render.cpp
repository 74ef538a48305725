#include "worker/task/render.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "worker/task/middle_cut.hpp"

namespace kvsweep::task {
namespace {

using Ids = std::vector<int32_t>;

// One example on its way to tokens.
class Rendering {
 public:
  Rendering(const Example& example, const TaskProtocol& protocol, const ModelText& model)
      : example_(example),
        protocol_(protocol),
        model_(model),
        chat_(protocol.form != TaskForm::text && !example.as_text) {}

  Result<std::vector<Sequence>> generate() const;
  Result<std::vector<Sequence>> choices() const;
  Result<std::vector<Sequence>> rolling() const;

 private:
  const text::Tokenizer& tokenizer() const { return *model_.tokenizer; }
  // The text around `prompt` that the model reads.
  Result<std::string> framed(const std::string& prompt) const;
  Result<Ids> encode(const std::string& text) const { return tokenizer().encode(text, !chat_); }
  // Tokens that a prompt may have when `after` follow it.
  int64_t room(int64_t after) const;
  Result<std::string> shortened(const std::string& prompt, int64_t most) const;
  Result<Ids> prompt_ids(int64_t after) const;
  Error too_long(int64_t tokens, int64_t most) const;
  Result<Sequence> continued(const std::string& context, const std::string& choice) const;

  const Example& example_;
  const TaskProtocol& protocol_;
  const ModelText& model_;
  bool chat_;
};

Result<std::string> Rendering::framed(const std::string& prompt) const {
  if (!chat_) return prompt + example_.answer_prefix;
  if (model_.chat == nullptr) {
    return bad_input(fmt::format(
        "task {} is to be put to the model as a chat (form {}), but the model has no chat "
        "template; use form text",
        protocol_.name, to_string(protocol_.form)));
  }
  std::vector<text::ChatMessage> messages = example_.turns;
  messages.push_back({"user", prompt});
  KVSWEEP_ASSIGN(const std::string text, model_.chat->render(messages, true));
  return text + example_.answer_prefix;
}

// The last new token is never read, so it needs no room.
int64_t Rendering::room(int64_t after) const {
  const int64_t most = model_.max_context - std::max<int64_t>(0, after - 1);
  return protocol_.context > 0 ? std::min<int64_t>(protocol_.context, most) : most;
}

Error Rendering::too_long(int64_t tokens, int64_t most) const {
  return bad_input(fmt::format(
      "task {}: a prompt has {} tokens, but only {} fit (context {}, the model's {}); use fewer "
      "shots, a shorter length or answer, or a model with a longer context",
      protocol_.name, tokens, most, protocol_.context, model_.max_context));
}

// LongBench cuts the prompt before the template goes around it, which then must fit as well when
// the limit is the model's.
Result<std::string> Rendering::shortened(const std::string& prompt, int64_t most) const {
  int64_t frame = 0;
  if (protocol_.context == 0) {
    KVSWEEP_ASSIGN(const std::string around, framed(""));
    KVSWEEP_ASSIGN(frame, tokenizer().count(around, !chat_));
  }
  return cut_middle(prompt, most - frame, tokenizer());
}

Result<Ids> Rendering::prompt_ids(int64_t after) const {
  const int64_t most = room(after);
  std::string prompt = example_.prompt;
  if (example_.truncation == Truncation::middle) {
    KVSWEEP_ASSIGN(prompt, shortened(prompt, most));
  }
  KVSWEEP_ASSIGN(const std::string text, framed(prompt));
  KVSWEEP_ASSIGN(Ids ids, encode(text));
  const auto count = static_cast<int64_t>(ids.size());
  // A text cut in the middle may have a few tokens more when it is tokenized again.
  const int64_t limit = example_.truncation == Truncation::middle
                            ? model_.max_context - std::max<int64_t>(0, after - 1)
                            : most;
  if (count <= limit) return ids;
  if (example_.truncation != Truncation::left || most < 1) return too_long(count, most);
  ids.erase(ids.begin(), ids.end() - most);
  return ids;
}

Result<std::vector<Sequence>> Rendering::generate() const {
  Sequence sequence;
  KVSWEEP_ASSIGN(sequence.prompt, prompt_ids(protocol_.max_new_tokens));
  return std::vector<Sequence>{std::move(sequence)};
}

Result<Sequence> Rendering::continued(const std::string& context, const std::string& choice) const {
  const size_t end = context.find_last_not_of(" \t\n\r") + 1;  // 0 when there is nothing else
  KVSWEEP_ASSIGN(const Ids before, encode(context.substr(0, end)));
  const std::string blank = chat_ && example_.answer_prefix.empty() ? "" : " ";
  KVSWEEP_ASSIGN(Ids whole, encode(context + blank + choice));
  if (before.empty() || whole.size() <= before.size()) {
    return bad_input(
        fmt::format("task {}: choice \"{}\" adds no tokens to its prompt", protocol_.name, choice));
  }
  Sequence sequence;
  const auto cut = static_cast<std::ptrdiff_t>(before.size());
  sequence.reference.assign(whole.begin() + cut, whole.end());
  sequence.prompt.assign(whole.begin(), whole.begin() + cut);
  const int64_t most = room(static_cast<int64_t>(sequence.reference.size()));
  const auto count = static_cast<int64_t>(sequence.prompt.size());
  if (count <= most) return sequence;
  if (example_.truncation != Truncation::left || most < 1) return too_long(count, most);
  sequence.prompt.erase(sequence.prompt.begin(), sequence.prompt.end() - most);
  return sequence;
}

Result<std::vector<Sequence>> Rendering::choices() const {
  KVSWEEP_ASSIGN(const std::string context, framed(example_.prompt));
  std::vector<Sequence> sequences;
  for (const std::string& choice : example_.choices) {
    KVSWEEP_ASSIGN(Sequence sequence, continued(context, choice));
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

// Windows of at most `most` tokens that follow one token of context each; all but the last are
// full, and the last reads the tokens before it as far as they fit (lm-eval's
// get_rolling_token_windows with context_len 1, and make_disjoint_window).
std::vector<Sequence> rolling_windows(const Ids& ids, int32_t before, int64_t most) {
  std::vector<Sequence> windows;
  const auto count = static_cast<int64_t>(ids.size());
  for (int64_t begin = 0; begin < count; begin += most) {
    const int64_t end = std::min(begin + most, count);
    // The last window is as long as the others where the text allows.
    const int64_t from = std::max<int64_t>(0, end - most);
    Sequence window;
    window.prompt.assign(1, from == 0 ? before : ids[static_cast<size_t>(from - 1)]);
    window.reference.assign(ids.begin() + from, ids.begin() + end);
    window.unscored = begin - from;
    windows.push_back(std::move(window));
  }
  return windows;
}

Result<std::vector<Sequence>> Rendering::rolling() const {
  if (!example_.tokens.empty()) {
    Sequence window;
    window.prompt.assign(1, example_.tokens.front());
    window.reference.assign(example_.tokens.begin() + 1, example_.tokens.end());
    window.unscored = example_.unscored;
    return std::vector<Sequence>{std::move(window)};
  }
  const std::optional<int32_t> before = tokenizer().text_start();
  if (!before) {
    return bad_input("task " + protocol_.name +
                     ": the model has neither a token for the beginning of a text nor one for its "
                     "end, so its first token cannot be scored; use another task");
  }
  KVSWEEP_ASSIGN(const Ids ids, tokenizer().encode(example_.prompt, false));
  if (ids.empty()) return bad_input("task " + protocol_.name + ": a text has no tokens");
  return rolling_windows(ids, *before, std::min<int64_t>(protocol_.length, model_.max_context));
}

}  // namespace

Result<std::vector<Sequence>> render(const Example& example, const TaskProtocol& protocol,
                                     const ModelText& model) {
  KVSWEEP_ASSIGN(const TaskInfo info, task_info(protocol.name));
  const Rendering rendering(example, protocol, model);
  if (info.kind == RunMode::choices) return rendering.choices();
  if (info.kind == RunMode::rolling) return rendering.rolling();
  return rendering.generate();
}

}  // namespace kvsweep::task
