// kvsweep_bench_sharing: what computing prompts once, and running maps in one batch, is worth.
//   kvsweep_bench_sharing --model DIR [--threads N] [--maps N] [--examples N] [--prompt TOKENS]
//                         [--shared TOKENS] [--new TOKENS] [--batch N]
// Prompts have --prompt random tokens, of which the first --shared are those of every example. Each
// row evaluates the same maps on the same examples in three ways: one map at a time, nothing
// shared; one map at a time; all maps together. All must give the same tokens, or it is an error
// and no figure (where the model's GEMM is batch-invariant on this processor).
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/must.hpp"
#include "core/clock.hpp"
#include "core/precision_map.hpp"
#include "core/rng.hpp"
#include "core/scheme.hpp"
#include "worker/engine/engine.hpp"
#include "worker/engine/environment.hpp"

namespace kvsweep::bench {
namespace {

struct Options {
  std::string model;
  int64_t threads = 1;
  int64_t maps = 8;
  int64_t examples = 8;
  int64_t prompt = 256;
  int64_t shared = 200;
  int64_t fresh = 32;
  int64_t batch = 16;
};

Options parse(int count, char** arguments) {
  Options options;
  const std::vector<std::pair<std::string, int64_t*>> numbers = {
      {"--threads", &options.threads},   {"--maps", &options.maps},
      {"--examples", &options.examples}, {"--prompt", &options.prompt},
      {"--shared", &options.shared},     {"--new", &options.fresh},
      {"--batch", &options.batch}};
  each_option(count, arguments, [&](const std::string& name, const std::string& value) {
    if (name == "--model") {
      options.model = value;
      return;
    }
    for (const auto& [known, target] : numbers) {
      if (known != name) continue;
      *target = number(value, name == "--shared" ? 0 : 1);
      return;
    }
    fail("unknown option " + name);
  });
  if (options.model.empty()) fail("--model DIR is needed");
  if (options.shared >= options.prompt) fail("--shared must be below --prompt");
  return options;
}

std::vector<engine::SequenceRequest> requests(const Options& options, int64_t vocab) {
  std::vector<engine::SequenceRequest> list(static_cast<size_t>(options.examples));
  for (size_t i = 0; i < list.size(); ++i) {
    for (int64_t t = 0; t < options.prompt; ++t) {
      Rng rng(static_cast<uint64_t>(t) + (t < options.shared ? 0 : 1000000 * (i + 1)), "prompt");
      list[i].prompt.push_back(static_cast<int32_t>(rng.below(static_cast<uint64_t>(vocab))));
    }
    list[i].max_new_tokens = static_cast<int>(options.fresh);
  }
  return list;
}

// Different maps of one scheme: the first layers at 8 bits, the others at 4 and 2.
std::vector<PrecisionMap> maps_of(const std::string& scheme, int64_t count, int layers) {
  SchemeOptions options;
  options.name = scheme;
  const Scheme made = must(make_scheme(options));
  std::vector<PrecisionMap> maps;
  for (int64_t i = 0; i < count; ++i) {
    maps.push_back(uniform_map(made, layers, {Codec::int4, i % 2 ? Codec::int4 : Codec::int2}));
    for (int64_t layer = 0; layer < i / 2 && layer < layers; ++layer) {
      maps.back().layers[static_cast<size_t>(layer)] = {Codec::int8, Codec::int8};
    }
  }
  return maps;
}

using Tokens = std::vector<std::vector<int32_t>>;  // of all maps and examples

struct Timed {
  double seconds = 0;
  Tokens tokens;
};

template <typename Work>
Timed timed(const Work& work) {
  Timed result;
  const auto start = std::chrono::steady_clock::now();
  work(result.tokens);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

void keep(const std::vector<engine::SequenceOutput>& outputs, Tokens& tokens) {
  for (const engine::SequenceOutput& output : outputs) tokens.push_back(output.tokens);
}

Timed one_by_one(engine::Engine& engine, const std::vector<PrecisionMap>& maps,
                 const std::vector<engine::SequenceRequest>& list) {
  return timed([&](Tokens& tokens) {
    for (const PrecisionMap& map : maps) keep(must(engine.run(map, list, {})), tokens);
  });
}

Timed together(engine::Engine& engine, const std::vector<PrecisionMap>& maps,
               const std::vector<engine::SequenceRequest>& list) {
  return timed([&](Tokens& tokens) {
    for (const auto& outputs : must(engine.run(maps, list, {}))) keep(outputs, tokens);
  });
}

engine::Engine load(const Options& options, bool share) {
  engine::EngineOptions settings;
  settings.threads = static_cast<int>(options.threads);
  settings.max_batch = static_cast<int>(options.batch);
  settings.cache_budget_bytes = int64_t{4} << 30;
  settings.share_prompts = share;
  return must(engine::Engine::load(options.model, settings));
}

void run(const Options& options) {
  engine::Engine plain = load(options, false);
  engine::Engine sharing = load(options, true);
  fmt::print("# {}; {} threads; {}; batch-invariant {}\n", processor(), options.threads,
             engine::Engine::numerics_class(), sharing.batch_invariant() ? "yes" : "no");
  fmt::print("# {} at {}\n", options.model, format_utc(SystemClock().utc_ms()));
  fmt::print("# {} maps x {} examples; prompts of {} tokens, {} of them shared; {} new tokens\n",
             options.maps, options.examples, options.prompt, options.shared, options.fresh);
  fmt::print("scheme,alone_s,shared_s,together_s,shared_x,together_x\n");
  const auto list = requests(options, sharing.vocab_size());
  for (const std::string scheme : {"per-token", "kivi"}) {
    const auto maps = maps_of(scheme, options.maps, sharing.geometry().num_layers());
    const Timed alone = one_by_one(plain, maps, list);
    const Timed shared = one_by_one(sharing, maps, list);
    const Timed all = together(sharing, maps, list);
    const bool equal = alone.tokens == shared.tokens && alone.tokens == all.tokens;
    if (sharing.batch_invariant() && !equal) fail("sharing changed tokens under " + scheme);
    fmt::print("{},{:.2f},{:.2f},{:.2f},{:.2f},{:.2f}\n", scheme, alone.seconds, shared.seconds,
               all.seconds, alone.seconds / shared.seconds, alone.seconds / all.seconds);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace kvsweep::bench

int main(int count, char** arguments) {
  kvsweep::engine::prepare_environment();
  kvsweep::bench::run(kvsweep::bench::parse(count, arguments));
  return 0;
}
