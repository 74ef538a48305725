#include "worker/task/task.hpp"

#include <algorithm>

#include "core/hash.hpp"
#include "core/spec_limits.hpp"
#include "core/text.hpp"

namespace kvsweep::task {

#define KVSWEEP_TASK(id, name, version, shots, max_new_tokens, length, needs_data, splits, \
                     summary)                                                              \
  Result<std::unique_ptr<Task>> open_##id(const TaskProtocol& protocol,                    \
                                          const std::string& data_dir);
#include "core/catalog/tasks.def"
#undef KVSWEEP_TASK

namespace {

Status check_protocol(const TaskProtocol& protocol) {
  KVSWEEP_ASSIGN(const TaskInfo info, task_info(protocol.name));
  if (protocol.version != info.version) {
    return bad_input("task " + protocol.name + " version " + protocol.version +
                     " was asked for, but this program has version " + std::string(info.version) +
                     "; use the kvsweep that matches the other side");
  }
  const std::vector<std::string> splits = split(info.splits, ',');
  if (std::find(splits.begin(), splits.end(), protocol.split) == splits.end()) {
    return bad_input("task " + protocol.name + " has no split \"" + protocol.split +
                     "\"; allowed are " + join(splits, ", "));
  }
  if (protocol.shots < 0 || protocol.shots > kMaxShots) {
    return bad_input("task " + protocol.name + ": shots is " + std::to_string(protocol.shots) +
                     "; allowed are 0 to " + std::to_string(kMaxShots));
  }
  if (info.length == 0 && protocol.length != 0) {
    return bad_input("task " + protocol.name + " has prompts of its own length, but length is " +
                     std::to_string(protocol.length) + "; leave it out");
  }
  if (protocol.max_new_tokens < 1) {
    return bad_input("task " + protocol.name + ": max_new_tokens is " +
                     std::to_string(protocol.max_new_tokens) + "; it must be at least 1");
  }
  return {};
}

void add_field(Sha256& hash, const std::string& text) {
  hash.update(std::to_string(text.size()) + ":");
  hash.update(text);
}

}  // namespace

Result<std::unique_ptr<Task>> open_task(const TaskProtocol& protocol, const std::string& data_dir) {
  KVSWEEP_TRY(check_protocol(protocol));
#define KVSWEEP_TASK(id, name_, version, shots, max_new_tokens, length, needs_data, splits, \
                     summary)                                                               \
  if (protocol.name == name_) return open_##id(protocol, data_dir);
#include "core/catalog/tasks.def"
#undef KVSWEEP_TASK
  return not_found("task " + protocol.name + " is in the catalog but not in this program");
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
  add_field(hash, example.gold);
  return hash.hex();
}

}  // namespace kvsweep::task
