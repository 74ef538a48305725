#include "worker/task/task.hpp"

#include <algorithm>
#include <stdexcept>

#include "core/hash.hpp"
#include "core/spec_limits.hpp"
#include "core/text.hpp"
#include "worker/task/row_halves.hpp"

namespace kvsweep::task {

#define KVSWEEP_TASK(id, ...) \
  Result<std::unique_ptr<Task>> open_##id(const TaskProtocol& protocol, const TaskInputs& inputs);
#include "core/catalog/tasks.def"
#undef KVSWEEP_TASK

namespace {

Status check_listed(const TaskProtocol& protocol, const char* what, std::string_view value,
                    std::string_view list) {
  const std::vector<std::string> known = split(list, ',');
  if (std::find(known.begin(), known.end(), value) != known.end()) return {};
  return bad_input("task " + protocol.name + " has no " + what + " \"" + std::string(value) +
                   "\"; allowed are " + join(known, ", "));
}

Status check_numbers(const TaskProtocol& protocol, const TaskInfo& info) {
  if (protocol.shots < 0 || protocol.shots > kMaxShots) {
    return bad_input("task " + protocol.name + ": shots is " + std::to_string(protocol.shots) +
                     "; allowed are 0 to " + std::to_string(kMaxShots));
  }
  if (info.length == 0 && protocol.length != 0) {
    return bad_input("task " + protocol.name + " has prompts of its own length, but length is " +
                     std::to_string(protocol.length) + "; leave it out");
  }
  if (protocol.context < 0) {
    return bad_input("task " + protocol.name + ": context is " + std::to_string(protocol.context) +
                     "; it must be 0 (as the model) or more");
  }
  if (info.kind == RunMode::generate && protocol.max_new_tokens < 1) {
    return bad_input("task " + protocol.name + ": max_new_tokens is " +
                     std::to_string(protocol.max_new_tokens) + "; it must be at least 1");
  }
  return {};
}

Status check_protocol(const TaskProtocol& protocol, const TaskInfo& info) {
  if (protocol.version != info.version) {
    return bad_input("task " + protocol.name + " version " + protocol.version +
                     " was asked for, but this program has version " + std::string(info.version) +
                     "; use the kvsweep that matches the other side");
  }
  KVSWEEP_TRY(check_listed(protocol, "split", protocol.split, info.splits));
  KVSWEEP_TRY(check_listed(protocol, "form", to_string(protocol.form), info.forms));
  const std::vector<std::string>& halves = row_halves();
  if (!protocol.rows.empty() &&
      std::find(halves.begin(), halves.end(), protocol.rows) == halves.end()) {
    return bad_input("task " + protocol.name + ": rows is \"" + protocol.rows + "\"; allowed are " +
                     join(halves, ", "));
  }
  return check_numbers(protocol, info);
}

Status check_inputs(const TaskProtocol& protocol, const TaskInfo& info, const TaskInputs& inputs) {
  if (!info.data.empty() && inputs.data_dir.empty()) {
    return bad_input("task " + protocol.name +
                     " needs its data set: give the folder of data sets with --data-dir or "
                     "KVSWEEP_DATA_DIR");
  }
  if (info.needs_tokenizer && !inputs.tokenizer) {
    return bad_input("task " + protocol.name +
                     " makes its prompts with a model's tokenizer; give one with --model");
  }
  return {};
}

Result<std::unique_ptr<Task>> open_whole(const TaskProtocol& protocol, const TaskInfo& info,
                                         const TaskInputs& inputs) {
#define KVSWEEP_TASK(id, name_, ...) \
  if (info.name == name_) return open_##id(protocol, inputs);
#include "core/catalog/tasks.def"
#undef KVSWEEP_TASK
  return not_found("task " + protocol.name + " is in the catalog but not in this program");
}

// Text with its length, so that no two lists of texts are the same bytes.
void add_field(Sha256& hash, std::string_view text) {
  hash.update(std::to_string(text.size()) + ":");
  hash.update(std::string(text));
}

void add_member(Sha256& hash, std::string_view name, const std::vector<std::string>& values) {
  add_field(hash, name);
  hash.update(std::to_string(values.size()) + ";");
  for (const std::string& value : values) add_field(hash, value);
}

void add_number(Sha256& hash, std::string_view name, int64_t value) {
  if (value != 0) add_member(hash, name, {std::to_string(value)});
}

void add_texts(Sha256& hash, std::string_view name, const std::vector<std::string>& values) {
  if (!values.empty()) add_member(hash, name, values);
}

}  // namespace

Score Task::score(const Example& /*example*/, const std::string& /*output*/) const {
  throw std::logic_error("a task that does not generate was asked to score an output");
}

Result<std::unique_ptr<Task>> open_task(const TaskProtocol& protocol, const TaskInputs& inputs) {
  KVSWEEP_ASSIGN(const TaskInfo info, task_info(protocol.name));
  KVSWEEP_TRY(check_protocol(protocol, info));
  KVSWEEP_TRY(check_inputs(protocol, info, inputs));
  KVSWEEP_ASSIGN(auto task, open_whole(protocol, info, inputs));
  if (protocol.rows.empty()) return task;
  return half_of(std::move(task), protocol);
}

std::string cut_at_stops(const std::string& text, const std::vector<std::string>& stops) {
  size_t end = text.size();
  for (const std::string& stop : stops) {
    if (!stop.empty()) end = std::min(end, text.find(stop));
  }
  return text.substr(0, end);
}

std::string example_hash(const Example& example) {
  Sha256 hash;
  hash.update(std::to_string(example.stops.size()) + ";");
  add_field(hash, example.prompt);
  for (const std::string& stop : example.stops) add_field(hash, stop);
  const bool one = example.golds.size() == 1;
  add_field(hash, one ? example.golds.front() : "");
  if (!one) add_member(hash, "golds", example.golds);
  for (const text::ChatMessage& turn : example.turns) {
    add_member(hash, "turn", {turn.role, turn.content});
  }
  if (!example.answer_prefix.empty()) add_member(hash, "answer_prefix", {example.answer_prefix});
  add_number(hash, "as_text", example.as_text ? 1 : 0);
  add_number(hash, "newline_ends", example.newline_ends ? 1 : 0);
  add_texts(hash, "choices", example.choices);
  std::vector<std::string> tokens;
  for (const int32_t token : example.tokens) tokens.push_back(std::to_string(token));
  add_texts(hash, "tokens", tokens);
  add_number(hash, "unscored", example.unscored);
  add_number(hash, "words", example.words);
  add_texts(hash, "classes", example.classes);
  if (!example.scored_by.empty()) add_member(hash, "scored_by", {example.scored_by});
  return hash.hex();
}

Error no_example(const TaskProtocol& protocol, int64_t index, int64_t size) {
  return bad_input(protocol.name + "/" + protocol.split + " has no example " +
                   std::to_string(index) + "; it has " + std::to_string(size) + ", counted from 0");
}

}  // namespace kvsweep::task
