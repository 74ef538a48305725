// kvsweep_bench_joint_units: what lending maps together is worth to a study.
//   kvsweep_bench_joint_units --model DIR [--maps N] [--examples N] [--length TOKENS] [--new
//   TOKENS]
//                             [--scheme NAME] [--threads N]
// The coordinator's own work list, over a database file, with one worker in this process: --maps
// maps on --examples prompts of the recall task, --new tokens at most, first with one map per unit,
// then with all of them. Both must record the same output for every map and example, or it is an
// error and no figure (where the model's GEMM is batch-invariant on this processor).
#include <fmt/format.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "bench/must.hpp"
#include "coordinator/joint_maps.hpp"
#include "coordinator/workload.hpp"
#include "core/clock.hpp"
#include "core/geometry.hpp"
#include "core/scheme.hpp"
#include "worker/engine/engine.hpp"
#include "worker/engine/environment.hpp"
#include "worker/service/engine_runner.hpp"

namespace kvsweep::bench {
namespace {

struct Options {
  std::string model;
  std::string scheme = "kivi";
  int64_t threads = 1;
  int64_t maps = 16;
  int64_t examples = 32;
  int64_t length = 512;
  int64_t fresh = 8;
};

Options parse(int count, char** arguments) {
  Options options;
  const std::map<std::string, int64_t*> numbers = {{"--threads", &options.threads},
                                                   {"--maps", &options.maps},
                                                   {"--examples", &options.examples},
                                                   {"--length", &options.length},
                                                   {"--new", &options.fresh}};
  each_option(count, arguments, [&](const std::string& name, const std::string& value) {
    if (name == "--model") {
      options.model = value;
    } else if (name == "--scheme") {
      options.scheme = value;
    } else if (numbers.contains(name)) {
      *numbers.at(name) = number(value);
    } else {
      fail("unknown option " + name);
    }
  });
  if (options.model.empty()) fail("--model DIR is needed");
  if (options.maps > coordinator::kMostMapsPerUnit) fail("too many --maps");
  return options;
}

// Layer by layer from 4 bits to 8, then from 2 to 4: different maps, none of them uniform twice.
std::vector<PrecisionMap> maps_of(const Options& options, int layers) {
  SchemeOptions made;
  made.name = options.scheme;
  const Scheme scheme = must(make_scheme(made));
  std::vector<PrecisionMap> maps;
  for (int64_t i = 0; i < options.maps; ++i) {
    const bool low = i > layers;
    maps.push_back(uniform_map(scheme, layers, *pair_from(low ? "K2V2" : "K4V4")));
    const int64_t raised = low ? i - layers - 1 : i;
    for (int64_t layer = 0; layer < raised && layer < layers; ++layer) {
      maps.back().layers[static_cast<size_t>(layer)] = *pair_from(low ? "K4V2" : "K8V8");
    }
  }
  return maps;
}

using Outputs = std::map<std::pair<std::string, int64_t>, std::vector<int32_t>>;

struct Timed {
  double seconds = 0;
  int64_t units = 0;
  bool batch_invariant = true;
  Outputs outputs;
};

class Study {
 public:
  Study(const Options& options, const std::string& folder)
      : options_(options),
        geometry_(must(read_geometry(options.model))),
        hash_(must(model_hash(options.model))),
        store_(must(store::Store::open(folder + "/trials.db", {.mode = store::OpenMode::read_write,
                                                               .allow_network_fs = true}))),
        workload_({.model_dir = options.model, .model_hash = hash_, .numerics_class = "here"},
                  store_, clock_, {.examples_per_unit = static_cast<int>(options.examples)}),
        runner_({.threads = static_cast<int>(options.threads)}) {
    check(store_.put_model(hash_, options.model, geometry_));
  }

  Timed measure(int64_t maps_per_unit) {
    const TaskProtocol protocol{.name = "recall",
                                .version = std::string(must(task_info("recall")).version),
                                .split = "search",
                                .max_new_tokens = static_cast<int>(options_.fresh),
                                .length = static_cast<int>(options_.length)};
    workload_.describe(protocol);
    work_off(nullptr);
    const auto maps = maps_of(options_, geometry_.num_layers());
    // The model is loaded and warm before the clock starts.
    begin(baseline_map(maps[0].scheme, geometry_.num_layers()), protocol, 1);
    work_off(nullptr);
    for (const PrecisionMap& map : maps) begin(map, protocol, maps_per_unit);
    Timed timed;
    const auto start = std::chrono::steady_clock::now();
    work_off(&timed);
    timed.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (static_cast<int64_t>(timed.outputs.size()) != options_.maps * options_.examples) {
      fail("not every map was measured on every example");
    }
    return timed;
  }

 private:
  static void check(const Status& status) {
    if (!status.ok()) fail(status.error().message);
  }

  void begin(const PrecisionMap& map, const TaskProtocol& protocol, int64_t maps_per_unit) {
    must(workload_.begin({.map = map,
                          .task = workload_.task(protocol),
                          .examples = options_.examples,
                          .maps_per_unit = maps_per_unit}));
  }

  void work_off(Timed* timed) {
    const std::atomic<bool> cancel{false};
    while (const auto grant = workload_.take("here", {"here"})) {
      service::UnitCounters counters;
      wire::UnitResult result = runner_.run(grant->unit, counters, cancel);
      if (result.failure) fail(result.failure->message);
      result.unit_id = grant->unit_id;
      result.numerics_class = "here";
      const auto verdict = must(workload_.accept(result, {"here", true, {"here"}}));
      if (verdict.judgement != coordinator::Judgement::recorded) fail(verdict.why);
      if (timed == nullptr) continue;
      ++timed->units;
      timed->batch_invariant = result.batch_invariant;
      for (const wire::MapMeasurements& map : result.maps) {
        for (const Measurement& m : map.measurements) {
          timed->outputs[{map.map_id, m.example}] = m.tokens;
        }
      }
    }
  }

  Options options_;
  ModelGeometry geometry_;
  std::string hash_;
  SystemClock clock_;
  store::Store store_;
  coordinator::Workload workload_;
  service::EngineRunner runner_;
};

Timed measure(const Options& options, int64_t maps_per_unit) {
  std::string folder = (std::filesystem::temp_directory_path() / "joint-units-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) fail("no temporary folder can be made");
  const Timed timed = Study(options, folder).measure(maps_per_unit);
  std::filesystem::remove_all(folder);
  return timed;
}

void run(const Options& options) {
  fmt::print("# {}; {} threads; {}\n", processor(), options.threads,
             engine::Engine::numerics_class());
  fmt::print("# {}, {}: {} maps x {} examples; prompts of about {} tokens, {} new ones at most\n",
             options.model, options.scheme, options.maps, options.examples, options.length,
             options.fresh);
  const Timed alone = measure(options, 1);
  const Timed joint = measure(options, options.maps);
  if (alone.batch_invariant && alone.outputs != joint.outputs) fail("joint units change outputs");
  fmt::print("maps_per_unit,units,seconds,ratio\n");
  fmt::print("1,{},{:.2f},1.00\n", alone.units, alone.seconds);
  fmt::print("{},{},{:.2f},{:.2f}\n", options.maps, joint.units, joint.seconds,
             alone.seconds / joint.seconds);
}

}  // namespace
}  // namespace kvsweep::bench

int main(int count, char** arguments) {
  kvsweep::engine::prepare_environment();
  kvsweep::bench::run(kvsweep::bench::parse(count, arguments));
  return 0;
}
