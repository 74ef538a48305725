// kvsweep_bench_engine: tokens per second of prefill and decode of the engine, as CSV.
//   kvsweep_bench_engine --model DIR [--threads N] [--contexts 512,4096] [--decode N] [--batch N]
//                        [--forced SEQUENCESxTOKENS] [--tokens FILE]
// Before it measures, it checks that what it measures is right (see `check`); a wrong result is an
// error, not a figure. --tokens writes prompts and decoded tokens for bench/transformers_peer.py.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include "bench/must.hpp"
#include "core/clock.hpp"
#include "core/precision_map.hpp"
#include "core/rng.hpp"
#include "core/scheme.hpp"
#include "core/text.hpp"
#include "worker/engine/engine.hpp"
#include "worker/engine/environment.hpp"

namespace kvsweep::bench {
namespace {

struct Options {
  std::string model;
  int threads = 1;
  std::vector<int64_t> contexts = {512, 4096};
  int decode = 33;
  int batch = 1;
  int64_t forced_sequences = 12;
  int64_t forced_tokens = 150;
  std::string tokens_file;
};

void set_option(Options& options, const std::string& name, const std::string& value) {
  if (name == "--model") {
    options.model = value;
  } else if (name == "--threads") {
    options.threads = static_cast<int>(number(value));
  } else if (name == "--decode") {
    options.decode = static_cast<int>(number(value)) + 1;  // the first token belongs to prefill
  } else if (name == "--batch") {
    options.batch = static_cast<int>(number(value));
  } else if (name == "--tokens") {
    options.tokens_file = value;
  } else if (name == "--contexts") {
    options.contexts.clear();
    for (const std::string& part : split(value, ',')) options.contexts.push_back(number(part));
  } else if (name == "--forced") {
    const std::vector<std::string> parts = split(value, 'x');
    if (parts.size() != 2) fail("--forced takes SEQUENCESxTOKENS, such as 12x150");
    options.forced_sequences = number(parts[0]);
    options.forced_tokens = number(parts[1]);
  } else {
    fail("unknown option " + name);
  }
}

Options parse(int count, char** arguments) {
  Options options;
  each_option(count, arguments, [&](const std::string& name, const std::string& value) {
    set_option(options, name, value);
  });
  if (options.model.empty()) fail("--model DIR is needed");
  return options;
}

std::vector<int32_t> random_prompt(int64_t tokens, int64_t vocab, uint64_t seed) {
  Rng rng(seed, "bench prompt");
  std::vector<int32_t> prompt;
  for (int64_t i = 0; i < tokens; ++i) {
    prompt.push_back(static_cast<int32_t>(rng.below(static_cast<uint64_t>(vocab))));
  }
  return prompt;
}

std::vector<engine::SequenceRequest> requests(const Options& options, int64_t context,
                                              int64_t vocab) {
  std::vector<engine::SequenceRequest> list(static_cast<size_t>(options.batch));
  for (size_t i = 0; i < list.size(); ++i) {
    list[i].prompt = random_prompt(context, vocab, i + 1);
    list[i].max_new_tokens = options.decode;
  }
  return list;
}

struct NamedMap {
  std::string name;
  PrecisionMap map;
};

std::vector<NamedMap> maps(int layers) {
  const Scheme scheme = must(make_scheme({}));
  return {{"baseline", baseline_map(scheme, layers)},
          {"K8V4", uniform_map(scheme, layers, {Codec::int8, Codec::int4})},
          {"K2V2", uniform_map(scheme, layers, {Codec::int2, Codec::int2})}};
}

// A map's greedy output, fed back at once, must be its own argmax at every position, alone and
// beside another sequence; and the baseline must not diverge from itself.
void check(engine::Engine& engine, const std::vector<NamedMap>& list) {
  for (const NamedMap& named : list) {
    std::vector<engine::SequenceRequest> list_of(2);
    list_of[0].prompt = random_prompt(70, engine.vocab_size(), 11);
    list_of[1].prompt = random_prompt(9, engine.vocab_size(), 12);
    for (engine::SequenceRequest& request : list_of) request.max_new_tokens = 12;
    const auto generated = must(engine.run(named.map, list_of, {}));
    for (size_t i = 0; i < list_of.size(); ++i) list_of[i].reference = generated[i].tokens;
    const auto forced = must(engine.run(named.map, list_of, {}));
    for (size_t i = 0; i < list_of.size(); ++i) {
      if (forced[i].argmax != generated[i].tokens) fail("decode and verify differ, " + named.name);
      if (named.map.is_baseline() && forced[i].kl != 0) fail("the baseline differs from itself");
    }
  }
}

void print_row(const std::string& map, int64_t context, int batch, double prefill, double decode,
               int64_t cache_bytes) {
  fmt::print("kvsweep,{},{},{},{:.1f},{:.2f},{}\n", map, context, batch, prefill, decode,
             cache_bytes);
  std::fflush(stdout);
}

using Decoded = std::vector<std::pair<engine::SequenceRequest, std::vector<int32_t>>>;

void measure(engine::Engine& engine, const Options& options, const NamedMap& named, int64_t context,
             Decoded& decoded) {
  const auto list = requests(options, context, engine.vocab_size());
  engine::RunOptions run;
  run.base = named.map.is_baseline() ? BaseType::fp32 : BaseType::fp16;  // the peer's is fp32
  const auto outputs = must(engine.run(named.map, list, run));
  double prefill_ms = 0;
  double decode_ms = 0;
  int64_t bytes = 0;
  for (const engine::SequenceOutput& output : outputs) {
    prefill_ms += output.prefill_ms;
    decode_ms += output.decode_ms;
    bytes += output.cache_bytes;
  }
  const double batch = options.batch;
  print_row(named.name, context, options.batch, 1e3 * batch * context / prefill_ms,
            1e3 * batch * (options.decode - 1) / decode_ms, bytes);
  if (named.map.is_baseline()) decoded.emplace_back(list[0], outputs[0].tokens);
}

// Teacher-forced scoring, which most searches spend their time on: one map whose baseline is known.
void measure_forced(engine::Engine& engine, const Options& options, const PrecisionMap& map) {
  std::vector<engine::SequenceRequest> list(static_cast<size_t>(options.forced_sequences));
  for (size_t i = 0; i < list.size(); ++i) {
    const auto tokens = random_prompt(options.forced_tokens + 1, engine.vocab_size(), 100 + i);
    const auto middle = tokens.begin() + static_cast<int64_t>(tokens.size()) / 2;
    list[i].prompt.assign(tokens.begin(), middle);
    list[i].reference.assign(middle, tokens.end());
  }
  must(engine.run(map, list, {}));  // fills the baseline's logits
  const auto start = std::chrono::steady_clock::now();
  must(engine.run(map, list, {}));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  fmt::print(
      "# forced, K8V4: {} sequences of {} tokens, half scored: {:.0f} tokens/s\n", list.size(),
      options.forced_tokens,
      static_cast<double>(options.forced_sequences * options.forced_tokens) / seconds.count());
}

void write_tokens(const std::string& path, const Decoded& decoded) {
  std::ofstream file(path);
  file << "{\"cases\":[";
  for (size_t i = 0; i < decoded.size(); ++i) {
    file << (i == 0 ? "" : ",")
         << fmt::format("{{\"prompt\":[{}],\"tokens\":[{}]}}",
                        fmt::join(decoded[i].first.prompt, ","), fmt::join(decoded[i].second, ","));
  }
  file << "]}\n";
  if (!file.flush()) fail("cannot write " + path);
}

void run(const Options& options) {
  engine::EngineOptions settings;
  settings.threads = options.threads;
  settings.max_batch = options.batch;
  settings.cache_budget_bytes = int64_t{8} << 30;
  engine::Engine engine = must(engine::Engine::load(options.model, settings));
  const auto list = maps(engine.geometry().num_layers());
  fmt::print("# {}; {} threads; {}; batch-invariant {}\n", processor(), options.threads,
             engine::Engine::numerics_class(), engine.batch_invariant() ? "yes" : "no");
  fmt::print("# {} at {}\n", options.model, format_utc(SystemClock().utc_ms()));
  check(engine, list);
  measure_forced(engine, options, list[1].map);
  fmt::print("engine,map,context,batch,prefill_tokens_per_s,decode_tokens_per_s,cache_bytes\n");
  Decoded decoded;
  for (const int64_t context : options.contexts) {
    for (const NamedMap& named : list) measure(engine, options, named, context, decoded);
  }
  if (!options.tokens_file.empty()) write_tokens(options.tokens_file, decoded);
}

}  // namespace
}  // namespace kvsweep::bench

int main(int count, char** arguments) {
  kvsweep::engine::prepare_environment();
  kvsweep::bench::run(kvsweep::bench::parse(count, arguments));
  return 0;
}
