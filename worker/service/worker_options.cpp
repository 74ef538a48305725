#include "worker/service/worker_options.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <functional>
#include <map>

#include "core/text.hpp"

namespace kvsweep::service {

namespace {

struct Option {
  std::string placeholder;  // "" = takes no value
  std::string meaning;
  std::function<Status(const std::string&, WorkerOptions&)> apply;
};

Result<int64_t> number(const std::string& name, const std::string& text, int64_t low,
                       int64_t high) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high) {
    return bad_input(
        fmt::format("{} takes a whole number from {} to {}, not '{}'", name, low, high, text));
  }
  return value;
}

template <typename T>
std::function<Status(const std::string&, WorkerOptions&)> numeric(const std::string& name,
                                                                  T WorkerOptions::*member,
                                                                  int64_t low, int64_t high) {
  return [=](const std::string& text, WorkerOptions& options) -> Status {
    KVSWEEP_ASSIGN(const int64_t value, number(name, text, low, high));
    options.*member = static_cast<T>(value);
    return {};
  };
}

template <typename T>  // std::string, or an optional one
std::function<Status(const std::string&, WorkerOptions&)> words(T WorkerOptions::*member) {
  return [=](const std::string& text, WorkerOptions& options) -> Status {
    options.*member = text;
    return {};
  };
}

std::function<Status(const std::string&, WorkerOptions&)> action(WorkerOptions::Action value) {
  return [=](const std::string&, WorkerOptions& options) -> Status {
    options.action = value;
    return {};
  };
}

std::function<Status(const std::string&, WorkerOptions&)> write_texts(WorkerOptions::Action value) {
  return [=](const std::string& text, WorkerOptions& options) -> Status {
    options.action = value;
    options.text_kind = text;
    return {};
  };
}

Status set_inspect(const std::string& text, WorkerOptions& options) {
  options.action = WorkerOptions::Action::inspect;
  options.model = text;
  return {};
}

Status set_check_data(const std::string& text, WorkerOptions& options) {
  options.action = WorkerOptions::Action::check_data;
  options.data_dir = text;
  return {};
}

Status set_calibrate(const std::string& text, WorkerOptions& options) {
  options.action = WorkerOptions::Action::calibrate;
  options.model = text;
  return {};
}

Status set_once(const std::string&, WorkerOptions& options) {
  options.once = true;
  return {};
}

Status set_log_level(const std::string& text, WorkerOptions& options) {
  for (const char* known : {"debug", "info", "warn", "error"}) {
    if (text == known) {
      options.log_level = text;
      return {};
    }
  }
  return bad_input("--log-level takes debug, info, warn or error, not '" + text + "'");
}

const std::map<std::string, Option>& option_table() {
  using Action = WorkerOptions::Action;
  static const std::map<std::string, Option> table = {
      {"--connect",
       {"ENDPOINT", "the coordinator's address, tcp://HOST:PORT", words(&WorkerOptions::endpoint)}},
      {"--threads",
       {"N", "threads to compute with (default: every core)",
        numeric("--threads", &WorkerOptions::threads, 1, 4096)}},
      {"--data-dir",
       {"DIR", "folder of data sets (default: KVSWEEP_DATA_DIR)", words(&WorkerOptions::data_dir)}},
      {"--cache-budget",
       {"BYTES", "memory for the KV cache (default: 2 GiB)",
        numeric("--cache-budget", &WorkerOptions::cache_budget_bytes, 1 << 20, int64_t{1} << 46)}},
      {"--worker-id",
       {"ID", "stable name of this worker (default: HOST-PID)", words(&WorkerOptions::worker_id)}},
      {"--exit-with-parent",
       {"PID", "end when the process PID, which started this one, ends",
        numeric("--exit-with-parent", &WorkerOptions::parent, 1, 1 << 30)}},
      {"--idle-timeout",
       {"SECONDS", "leave after so long without a coordinator (default: never)",
        numeric("--idle-timeout", &WorkerOptions::idle_timeout_s, 1, 1 << 30)}},
      {"--log-level", {"LEVEL", "debug, info, warn or error", set_log_level}},
      {"--check-data", {"DIR", "say which data sets a folder holds and end", set_check_data}},
      {"--corpus",
       {"KIND", "write training texts and end; see `kvsweep data --help`",
        write_texts(Action::corpus)}},
      {"--examples",
       {"TASK", "write examples of a task and end; see `kvsweep data --help`",
        write_texts(Action::examples)}},
      {"--count",
       {"N", "lines to write (default: 10)",
        numeric("--count", &WorkerOptions::text_count, 1, int64_t{1} << 40)}},
      {"--score",
       {"DIR", "score LongBench predictions and end; see `kvsweep data --help`",
        write_texts(Action::score)}},
      {"--seed",
       {"N", "seed of the texts to write",
        numeric("--seed", &WorkerOptions::text_seed, 0, int64_t{1} << 53)}},
      {"--length",
       {"TOKENS", "length of the prompts to write",
        numeric("--length", &WorkerOptions::text_length, 1, 1 << 20)}},
      {"--shots",
       {"N", "shots of the examples to write",
        numeric("--shots", &WorkerOptions::text_shots, 0, 1 << 20)}},
      {"--split", {"NAME", "split of the examples to write", words(&WorkerOptions::text_split)}},
      {"--model",
       {"MODEL", "model whose tokenizer makes the examples, for tasks that need one",
        words(&WorkerOptions::model)}},
      {"--inspect", {"MODEL", "print what a model is and what is refused, as JSON", set_inspect}},
      {"--calibrate",
       {"MODEL", "write ranges of keys and values and end; see `kvsweep calibrate --help`",
        set_calibrate}},
      {"--task", {"NAME", "task that --calibrate runs", words(&WorkerOptions::text_kind)}},
      {"--out", {"FILE", "where --calibrate writes", words(&WorkerOptions::out)}},
      {"--baseline-kv",
       {"TYPE", "cache of --calibrate: fp32, fp16 or bf16", words(&WorkerOptions::base)}},
      {"--once", {"", "leave after one unit of work", set_once}},
      {"--version", {"", "print the version", action(Action::version)}},
      {"--probe", {"", "print what this machine offers, as JSON", action(Action::probe)}},
      {"--help", {"", "print this", action(Action::help)}},
  };
  return table;
}

Error unknown_option(const std::string& name) {
  std::vector<std::string> known;
  for (const auto& [option, entry] : option_table()) known.push_back(option);
  const std::string nearest = nearest_word(name, known);
  return bad_input(fmt::format("unknown option '{}'{}; --help lists all", name,
                               nearest.empty() ? "" : ", did you mean " + nearest + "?"));
}

}  // namespace

Result<WorkerOptions> parse_worker_options(const std::vector<std::string>& arguments) {
  WorkerOptions options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string name = arguments[i];
    std::string value;
    const size_t equals = name.find('=');
    const bool joined = equals != std::string::npos;
    if (joined) {
      value = name.substr(equals + 1);
      name.resize(equals);
    }
    const auto it = option_table().find(name);
    if (it == option_table().end()) return unknown_option(name);
    const Option& option = it->second;
    if (option.placeholder.empty() && joined) return bad_input(name + " takes no value");
    if (!option.placeholder.empty() && !joined) {
      if (i + 1 == arguments.size()) {
        return bad_input(fmt::format("{} needs a value: {}", name, option.meaning));
      }
      value = arguments[++i];
    }
    KVSWEEP_TRY(option.apply(value, options));
  }
  if (options.action == WorkerOptions::Action::serve && options.endpoint.empty()) {
    return bad_input("--connect ENDPOINT is required: the address that the coordinator prints");
  }
  if (options.data_dir.empty()) {
    if (const char* dir = std::getenv("KVSWEEP_DATA_DIR")) options.data_dir = dir;
  }
  return options;
}

std::string worker_usage() {
  std::string text = "usage: kvsweep-worker --connect ENDPOINT [options]\n\n";
  for (const auto& [name, option] : option_table()) {
    const std::string head =
        option.placeholder.empty() ? name : fmt::format("{} {}", name, option.placeholder);
    text += fmt::format("  {:<26} {}\n", head, option.meaning);
  }
  text +=
      "\nexit status: 0 done, 1 failed, 2 usage, 3 refused by the coordinator, 4 idle timeout\n";
  return text;
}

}  // namespace kvsweep::service
