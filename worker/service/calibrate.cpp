#include "worker/service/calibrate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "core/file.hpp"
#include "core/geometry.hpp"
#include "core/ranges.hpp"
#include "core/study_spec.hpp"
#include "worker/engine/engine.hpp"
#include "worker/service/stop_strings.hpp"
#include "worker/task/task.hpp"
#include "worker/text/tokenizer.hpp"

namespace kvsweep::service {
namespace {

struct Run {
  std::vector<engine::SequenceRequest> requests;
  std::vector<task::Example> examples;
};

Result<Run> prepare(const task::Task& task, const TaskProtocol& protocol, int64_t count,
                    const text::Tokenizer& tokenizer) {
  Run run;
  for (int64_t i = 0; i < std::min(count, task.size()); ++i) {
    KVSWEEP_ASSIGN(task::Example example, task.example(i));
    engine::SequenceRequest request;
    KVSWEEP_ASSIGN(request.prompt, tokenizer.encode(example.prompt, true));
    request.max_new_tokens = static_cast<int>(protocol.max_new_tokens);
    run.requests.push_back(std::move(request));
    run.examples.push_back(std::move(example));
  }
  return run;
}

Status check_ranges(const std::vector<float>& list, const char* side) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i] >= kLeastRange && list[i] <= kMostRange) continue;
    return bad_input(fmt::format(
        "layer {}: the largest {} of these examples is {}, from which no constant follows; use "
        "other examples, or schemes that store their scales",
        i, side, list[i]));
  }
  return {};
}

int64_t tokens_of(const Run& run, const std::vector<engine::SequenceOutput>& outputs) {
  int64_t tokens = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    tokens += static_cast<int64_t>(run.requests[i].prompt.size() + outputs[i].tokens.size());
  }
  return tokens;
}

}  // namespace

Status calibrate(const WorkerOptions& options, int threads) {
  KVSWEEP_ASSIGN(const TaskSpec spec, make_task({.name = options.text_kind,
                                                 .shots = options.text_shots,
                                                 .split = options.text_split,
                                                 .seed = options.text_seed,
                                                 .length = options.text_length}));
  KVSWEEP_ASSIGN(const BaseType base, base_type_from(options.base));
  KVSWEEP_ASSIGN(const auto task, task::open_task(spec.protocol, options.data_dir));
  KVSWEEP_ASSIGN(const std::string hash, model_hash(options.model));
  KVSWEEP_ASSIGN(const auto tokenizer, text::Tokenizer::load(options.model));
  engine::EngineOptions engine_options{.threads = threads};
  if (options.cache_budget_bytes > 0)
    engine_options.cache_budget_bytes = options.cache_budget_bytes;
  KVSWEEP_ASSIGN(auto engine, engine::Engine::load(options.model, engine_options));
  KVSWEEP_ASSIGN(const Run run, prepare(*task, spec.protocol, options.text_count, tokenizer));
  engine::RunOptions how{.base = base, .eos_ids = tokenizer.eos_ids()};
  how.stop = [&](int64_t index, const std::vector<int32_t>& tokens) {
    return ends_with_stop(tokenizer, tokens, run.examples[static_cast<size_t>(index)].stops);
  };
  std::vector<engine::SequenceOutput> outputs;
  KVSWEEP_ASSIGN(ObservedRanges ranges, engine.observe_ranges(run.requests, how, &outputs));
  KVSWEEP_TRY(check_ranges(ranges.keys, "key"));
  KVSWEEP_TRY(check_ranges(ranges.values, "value"));
  ranges.model_hash = hash;
  const Json observed = {{"task", to_json(spec.protocol)},
                         {"examples", run.requests.size()},
                         {"tokens", tokens_of(run, outputs)},
                         {"baseline_kv", to_string(base)},
                         {"numerics_class", engine::Engine::numerics_class()}};
  const std::string text = to_json(ranges, observed).dump(2) + "\n";
  if (!options.out.empty()) return write_file_atomic(options.out, text);
  std::cout << text;
  return {};
}

}  // namespace kvsweep::service
