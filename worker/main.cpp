// kvsweep-worker: connects to a coordinator and evaluates what it is given.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>

#include "core/json.hpp"
#include "core/log.hpp"
#include "core/study_spec.hpp"
#include "worker/engine/engine.hpp"
#include "worker/engine/environment.hpp"
#include "worker/kernels/cuda_probe.hpp"
#include "worker/service/calibrate.hpp"
#include "worker/service/engine_runner.hpp"
#include "worker/service/identity.hpp"
#include "worker/service/inspect_model.hpp"
#include "worker/service/service.hpp"
#include "worker/service/stop_signal.hpp"
#include "worker/service/worker_options.hpp"
#include "worker/task/corpus.hpp"
#include "worker/task/data_check.hpp"
#include "worker/task/longbench_report.hpp"

namespace {

using kvsweep::service::WorkerOptions;

// Must happen before any thread exists: libraries read these once.
void prepare_process(int threads) {
  kvsweep::engine::prepare_environment();
  setenv("TOKENIZERS_PARALLELISM", "false", 0);
  setenv("OMP_NUM_THREADS", std::to_string(threads).c_str(), 1);
}

int print_probe(int threads) {
  const kvsweep::Json probe = {{"version", KVSWEEP_VERSION},
                               {"numerics_class", kvsweep::engine::Engine::numerics_class()},
                               {"device", "cpu"},
                               {"device_name", kvsweep::service::processor_name()},
                               {"threads", threads},
                               {"cuda", kvsweep::kernels::cuda_status()}};
  std::printf("%s\n", probe.dump(2).c_str());
  return kvsweep::service::kExitDone;
}

int ended(const kvsweep::Status& status) {
  if (status.ok()) return kvsweep::service::kExitDone;
  std::fprintf(stderr, "kvsweep: %s\n", status.error().message.c_str());
  return kvsweep::service::kExitFailed;
}

kvsweep::Status write_corpus(const WorkerOptions& options) {
  kvsweep::task::CorpusOptions corpus{.kind = options.text_kind, .count = options.text_count};
  if (options.text_seed) corpus.seed = static_cast<uint64_t>(*options.text_seed);
  if (options.text_length) corpus.length = static_cast<int>(*options.text_length);
  return kvsweep::task::write_corpus(corpus, std::cout);
}

kvsweep::Status write_examples(const WorkerOptions& options) {
  KVSWEEP_ASSIGN(const kvsweep::TaskSpec spec, kvsweep::make_task({.name = options.text_kind,
                                                                   .shots = options.text_shots,
                                                                   .split = options.text_split,
                                                                   .seed = options.text_seed,
                                                                   .length = options.text_length}));
  kvsweep::task::TaskInputs inputs{.data_dir = options.data_dir};
  if (!options.model.empty()) {
    KVSWEEP_ASSIGN(auto tokenizer, kvsweep::text::Tokenizer::load(options.model));
    inputs.tokenizer = std::make_shared<const kvsweep::text::Tokenizer>(std::move(tokenizer));
  }
  KVSWEEP_ASSIGN(const auto task, kvsweep::task::open_task(spec.protocol, inputs));
  return kvsweep::task::write_examples(*task, options.text_count, std::cout);
}

int serve(const WorkerOptions& options, int threads) {
  kvsweep::log::info("worker", kvsweep::kernels::cuda_status());
  kvsweep::service::EngineRunner runner({.threads = threads,
                                         .cache_budget_bytes = options.cache_budget_bytes,
                                         .data_dir = options.data_dir});
  const kvsweep::service::ServiceOptions service{
      .endpoint = options.endpoint,
      .hello = kvsweep::service::make_hello(options, KVSWEEP_VERSION, threads,
                                            kvsweep::engine::Engine::numerics_class()),
      .idle_timeout_ms = options.idle_timeout_s * 1000,
      .once = options.once};
  return kvsweep::service::serve(service, runner);
}

int run(const WorkerOptions& options) {
  const int threads = options.threads > 0 ? options.threads : kvsweep::service::available_cores();
  prepare_process(threads);
  switch (options.action) {
    case WorkerOptions::Action::version:
      std::printf("kvsweep-worker %s\n", KVSWEEP_VERSION);
      return kvsweep::service::kExitDone;
    case WorkerOptions::Action::help:
      std::printf("%s", kvsweep::service::worker_usage().c_str());
      return kvsweep::service::kExitDone;
    case WorkerOptions::Action::corpus:
      return ended(write_corpus(options));
    case WorkerOptions::Action::check_data:
      return ended(kvsweep::task::check_data(options.data_dir, std::cout));
    case WorkerOptions::Action::examples:
      return ended(write_examples(options));
    case WorkerOptions::Action::score:
      return ended(
          kvsweep::task::score_longbench({options.text_kind, options.data_dir}, std::cout));
    case WorkerOptions::Action::inspect:
      std::printf("%s\n", kvsweep::service::inspect_model(options.model).dump(2).c_str());
      return kvsweep::service::kExitDone;
    case WorkerOptions::Action::calibrate:
      return ended(kvsweep::service::calibrate(options, threads));
    case WorkerOptions::Action::probe:
      return print_probe(threads);
    case WorkerOptions::Action::serve:
      break;
  }
  kvsweep::log::init(*kvsweep::log::level_from(options.log_level));
  if (options.parent > 0) {
    const kvsweep::Status tied = kvsweep::service::exit_with_parent(options.parent);
    if (!tied.ok()) {
      kvsweep::log::error("worker", tied.error().message);
      return kvsweep::service::kExitFailed;
    }
  }
  return serve(options, threads);
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = kvsweep::service::parse_worker_options({argv + 1, argv + argc});
  if (!options.ok()) {
    std::fprintf(stderr, "kvsweep-worker: %s\n", options.error().message.c_str());
    return kvsweep::service::kExitUsage;
  }
  try {
    return run(*options);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "kvsweep-worker: %s\n", e.what());
    return kvsweep::service::kExitFailed;
  }
}
