#include "tests/worker/engine/support.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "core/catalog/page_layout.hpp"
#include "core/rng.hpp"
#include "core/scheme.hpp"
#include "worker/cache/kv_cache.hpp"
#include "worker/engine/batch_runner.hpp"

namespace kvsweep::test {
namespace {

const std::string kSource = KVSWEEP_SOURCE_DIR;

// Keeps the logits of every job.
class KeepAll final : public engine::JobHandler {
 public:
  KeepAll(const std::vector<std::vector<int32_t>>& sequences, int64_t vocab) : vocab_(vocab) {
    for (const auto& sequence : sequences) {
      logits.emplace_back(sequence.size() * static_cast<size_t>(vocab));
    }
  }
  Status row(int64_t job, int64_t position, const float* row) override {
    std::memcpy(logits[static_cast<size_t>(job)].data() + position * vocab_, row,
                static_cast<size_t>(vocab_) * sizeof(float));
    return {};
  }
  std::optional<int32_t> advance(int64_t) override { return std::nullopt; }
  void finished(int64_t, const engine::JobStats&) override {}

  std::vector<std::vector<float>> logits;

 private:
  int64_t vocab_;
};

}  // namespace

std::string tiny_dir(const std::string& variant) {
  return kSource + "/tests/worker/model/tiny/" + variant;
}

std::string reference_dir() {
  return kSource + "/models/reference";
}

std::string smollm2_path() {
  const std::string path = kSource + "/.deps/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  return std::filesystem::exists(path) ? path : "";
}

std::string no_smollm2() {
  return "SmolLM2-135M-Instruct is absent: run scripts/setup";
}

Json read_golden(const std::string& path_in_tests) {
  Result<Json> json = read_json_file(kSource + "/tests/" + path_in_tests);
  if (!json.ok()) throw std::runtime_error(json.error().message);
  return std::move(json).value();
}

engine::Engine load_engine(const std::string& dir, engine::EngineOptions options) {
  Result<engine::Engine> loaded = engine::Engine::load(dir, options);
  if (!loaded.ok()) throw std::runtime_error(loaded.error().message);
  return std::move(loaded).value();
}

PrecisionMap make_map(const std::string& kind, int layers) {
  SchemeOptions options;
  options.name = kind == "per-token" || kind == "baseline" ? "per-token" : "kivi";
  if (kind == "kivi") options.prefill = Prefill::stepwise;
  if (is_reference_scheme(kind)) options.name = kind;
  Result<Scheme> scheme = make_scheme(options);
  if (!scheme.ok()) throw std::runtime_error(scheme.error().message);
  if (kind == "baseline") return baseline_map(*scheme, layers);
  if (kind == "kvmix-11pack") return uniform_map(*scheme, layers, {Codec::int3, Codec::int2});
  const Pair pair =
      kind == "kivi-exact" ? Pair{Codec::int2, Codec::int2} : Pair{Codec::int4, Codec::int2};
  return uniform_map(*scheme, layers, pair);
}

std::vector<int32_t> random_tokens(int64_t count, int64_t vocab, uint64_t seed) {
  Rng rng(seed, "tokens");
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<int32_t>(rng.below(static_cast<uint64_t>(vocab))));
  }
  return tokens;
}

std::vector<std::vector<float>> batch_logits(model::Model& model, const BatchSpec& spec,
                                             const std::vector<std::vector<int32_t>>& sequences) {
  const CacheLayout layout = cache_layout(spec.map, model.geometry(), spec.base);
  cache::Pool pool(int64_t{1} << 30);
  engine::RunnerOptions options;
  options.max_batch = spec.max_batch;
  options.prefill_chunk = spec.chunk;
  std::vector<engine::Job> jobs;
  for (const auto& tokens : sequences) {
    const int64_t count = static_cast<int64_t>(tokens.size());
    jobs.push_back(
        {&layout, nullptr, tokens, spec.prompt_tokens > 0 ? spec.prompt_tokens : count, 0, count});
  }
  KeepAll handler(sequences, model.vocab_size());
  engine::BatchRunner runner(model, pool, options);
  const Status status = runner.run(jobs, handler);
  if (!status.ok()) throw std::runtime_error(status.error().message);
  return std::move(handler.logits);
}

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return std::numeric_limits<float>::infinity();
  float largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::fabs(a[i] - b[i]));
  return largest;
}

}  // namespace kvsweep::test
