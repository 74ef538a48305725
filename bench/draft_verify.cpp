// kvsweep_bench_drafts: what drafts of the baseline's text are worth.
//   kvsweep_bench_drafts --model PATH [--text FILE] [--threads N] [--examples N] [--prompt TOKENS]
//                        [--new TOKENS] [--batch N] [--rounds N] [--scheme NAME] [--pairs K8V8,..]
// Prompts are windows of the text, or word problems without one. The unquantized cache's
// continuations are the drafts of uniform maps of --scheme. Each row evaluates one map on all
// prompts without drafts and with them, one after the other in every round, one sequence at a time
// or --batch at once; times are medians of the rounds. Both must give the same tokens in every
// round, or it is an error and no figure. wall_x is the ratio of the wall times of the whole runs,
// prompts included, and cpu_x that of the processor times, which other programs on the machine
// disturb less. agreement: share of the baseline's tokens that the map chooses too, teacher-forced.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "bench/must.hpp"
#include "bench/text_windows.hpp"
#include "core/clock.hpp"
#include "core/precision_map.hpp"
#include "core/scheme.hpp"
#include "worker/engine/engine.hpp"
#include "worker/engine/environment.hpp"
#include "worker/task/task.hpp"
#include "worker/text/tokenizer.hpp"

namespace kvsweep::bench {
namespace {

using Requests = std::vector<engine::SequenceRequest>;
using Outputs = std::vector<engine::SequenceOutput>;

struct Options {
  std::string model;
  std::string text;
  std::string scheme = "per-token";
  std::string pairs = "K8V8,K4V4,K4V2,K2V2";
  int64_t threads = 1;
  int64_t examples = 8;
  int64_t prompt = 64;
  int64_t fresh = 96;
  int64_t batch = 8;
  int64_t rounds = 3;
};

Options parse(int count, char** arguments) {
  Options options;
  const std::vector<std::pair<std::string, int64_t*>> numbers = {
      {"--threads", &options.threads}, {"--examples", &options.examples},
      {"--prompt", &options.prompt},   {"--new", &options.fresh},
      {"--batch", &options.batch},     {"--rounds", &options.rounds}};
  const std::vector<std::pair<std::string, std::string*>> texts = {{"--model", &options.model},
                                                                   {"--text", &options.text},
                                                                   {"--scheme", &options.scheme},
                                                                   {"--pairs", &options.pairs}};
  each_option(count, arguments, [&](const std::string& name, const std::string& value) {
    for (const auto& [known, target] : texts) {
      if (known == name) *target = value;
    }
    for (const auto& [known, target] : numbers) {
      if (known == name) *target = number(value);
    }
    const auto is = [&](const auto& option) { return option.first == name; };
    if (std::none_of(texts.begin(), texts.end(), is) &&
        std::none_of(numbers.begin(), numbers.end(), is)) {
      fail("unknown option " + name);
    }
  });
  if (options.model.empty()) fail("--model PATH is needed");
  return options;
}

Requests problems(const Options& options) {
  const TaskProtocol protocol{.name = "word_problems",
                              .version = std::string(task_info("word_problems")->version),
                              .split = "search",
                              .shots = 2,
                              .max_new_tokens = static_cast<int>(options.fresh)};
  const auto task = must(task::open_task(protocol, {}));
  const auto tokenizer = must(text::Tokenizer::load(options.model));
  Requests list(static_cast<size_t>(options.examples));
  for (size_t i = 0; i < list.size(); ++i) {
    const task::Example example = must(task->example(static_cast<int64_t>(i)));
    list[i].prompt = must(tokenizer.encode(example.prompt, true));
    list[i].max_new_tokens = protocol.max_new_tokens;
  }
  return list;
}

Requests windows(const Options& options) {
  Requests list;
  for (auto& window : text_windows(options.model, options.text, options.examples, options.prompt)) {
    engine::SequenceRequest& request = list.emplace_back();
    request.prompt = std::move(window);
    request.max_new_tokens = static_cast<int>(options.fresh);
  }
  return list;
}

engine::Engine load(const Options& options, int64_t batch) {
  engine::EngineOptions settings;
  settings.threads = static_cast<int>(options.threads);
  settings.max_batch = static_cast<int>(batch);
  settings.cache_budget_bytes = int64_t{4} << 30;
  return must(engine::Engine::load(options.model, settings));
}

// How a map runs without drafts or with them.
struct Timed {
  std::vector<double> seconds;  // of each round
  std::vector<double> cpu_seconds;
  Outputs outputs;

  void run(engine::Engine& engine, const PrecisionMap& map, const Requests& list) {
    const std::clock_t cpu = std::clock();
    const auto start = std::chrono::steady_clock::now();
    outputs = must(engine.run(map, list, {}));
    const auto end = std::chrono::steady_clock::now();
    seconds.push_back(std::chrono::duration<double>(end - start).count());
    cpu_seconds.push_back(static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC);
  }
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void check_equal(const Outputs& plain, const Outputs& drafted, const std::string& where) {
  for (size_t i = 0; i < plain.size(); ++i) {
    if (plain[i].tokens == drafted[i].tokens) continue;
    fail(fmt::format("{}: drafts changed the tokens of prompt {}", where, i));
  }
}

DraftUse total(const Outputs& outputs) {
  DraftUse sum;
  for (const engine::SequenceOutput& output : outputs) {
    if (!output.draft) continue;
    sum.verifications += output.draft->verifications;
    sum.proposed += output.draft->proposed;
    sum.accepted += output.draft->accepted;
    sum.realigned += output.draft->realigned;
  }
  return sum;
}

double agreement(engine::Engine& engine, const PrecisionMap& map, Requests list) {
  double sum = 0;
  for (engine::SequenceRequest& request : list) request.reference.swap(request.draft);
  for (const auto& output : must(engine.run(map, list, {}))) sum += output.token_agreement;
  return sum / static_cast<double>(list.size());
}

void row(engine::Engine& engine, const std::string& name, const PrecisionMap& map,
         const Options& options, const Requests& drafted_list, int64_t batch) {
  Requests plain_list = drafted_list;
  for (engine::SequenceRequest& request : plain_list) request.draft.clear();
  Timed plain;
  Timed drafted;
  for (int64_t round = 0; round < options.rounds; ++round) {
    plain.run(engine, map, plain_list);
    drafted.run(engine, map, drafted_list);
    check_equal(plain.outputs, drafted.outputs, name);
  }
  const DraftUse use = total(drafted.outputs);
  fmt::print("{},{:.4f},{},{:.2f},{:.2f},{:.2f},{:.2f},{},{},{}\n", name,
             agreement(engine, map, drafted_list), batch, median(plain.seconds),
             median(drafted.seconds), median(plain.seconds) / median(drafted.seconds),
             median(plain.cpu_seconds) / median(drafted.cpu_seconds), use.proposed, use.accepted,
             use.realigned);
  std::fflush(stdout);
}

void run(const Options& options) {
  engine::Engine lone = load(options, 1);
  engine::Engine batched = load(options, options.batch);
  if (!lone.batch_invariant()) fail("this processor's GEMM is not batch-invariant: no drafts");
  fmt::print("# {}; {} threads; {}\n", processor(), options.threads,
             engine::Engine::numerics_class());
  fmt::print("# {} at {}\n", options.model, format_utc(SystemClock().utc_ms()));
  const std::string what =
      options.text.empty() ? "word problems" : fmt::format("prompts of {} tokens", options.prompt);
  fmt::print("# {}; {} {}, {} new tokens; medians of {} rounds\n", options.scheme, options.examples,
             what, options.fresh, options.rounds);
  fmt::print("map,agreement,batch,plain_s,drafted_s,wall_x,cpu_x,proposed,accepted,realigned\n");
  Requests list = options.text.empty() ? problems(options) : windows(options);
  const int layers = lone.geometry().num_layers();
  const Outputs baseline = must(batched.run(baseline_map({}, layers), list, {}));
  for (size_t i = 0; i < list.size(); ++i) list[i].draft = baseline[i].tokens;
  const Scheme scheme = must(make_scheme({.name = options.scheme}));
  for (size_t at = 0; at < options.pairs.size();) {
    const size_t end = std::min(options.pairs.find(',', at), options.pairs.size());
    const std::string name = options.pairs.substr(at, end - at);
    const PrecisionMap map = uniform_map(scheme, layers, must(pair_from(name)));
    row(lone, name, map, options, list, 1);
    row(batched, name, map, options, list, options.batch);
    at = end + 1;
  }
}

}  // namespace
}  // namespace kvsweep::bench

int main(int count, char** arguments) {
  kvsweep::engine::prepare_environment();
  kvsweep::bench::run(kvsweep::bench::parse(count, arguments));
  return 0;
}
