// Engine: one model resident on one device, evaluating examples under precision maps by real
// inference over a packed KV cache. The only header of the torch side that others include.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/format.hpp"
#include "core/geometry.hpp"
#include "core/measurement.hpp"
#include "core/precision_map.hpp"
#include "core/ranges.hpp"
#include "core/result.hpp"

namespace kvsweep::engine {

struct EngineOptions {
  int threads = 1;
  int64_t cache_budget_bytes = 2LL << 30;  // pages and staging of all running sequences
  int max_batch = 16;                      // sequences decoded at once
  int prefill_chunk = 256;                 // tokens
  bool share_prompts = true;               // off: every sequence computes its whole prompt
};

// One sequence to run. Exactly one of the two modes:
//   generate: reference empty; decode greedily up to max_new_tokens. `draft` may say what the
//             output will be, rightly or not, the first token first: verifying many tokens takes
//             less time than choosing one after the other. The result is the same bit for bit;
//             where the model is not batch-invariant, or a map codes its history again (reference
//             schemes), drafts are left out. What follows an end-of-sequence token is not used
//   forced:   reference given; feed it and score its positions, against the baseline too where
//             `compared`. Here too max_new_tokens is what the generation was allowed: RoPE may
//             depend on it
struct SequenceRequest {
  std::vector<int32_t> prompt;
  std::vector<int32_t> reference;
  int max_new_tokens = 0;
  std::vector<int32_t> draft = {};
  std::vector<int32_t> not_first = {};  // generate: tokens that the answer may not begin with
  int64_t unscored = 0;  // forced: the first reference tokens that are fed but not scored
  bool compared = true;  // forced: false: nll and argmax alone, without a run of the baseline
};

struct SequenceOutput {
  std::vector<int32_t> tokens;  // generate: the end-of-sequence token included when produced
  std::vector<int32_t> argmax;  // forced: this map's argmax at each scored position
  double kl = 0;                // forced: mean KL(baseline || map), nats per position
  double nll = 0;               // forced: mean -log p(reference token) of the scored ones
  double token_agreement = 0;   // forced: share of positions whose argmax is the reference's
                                // baseline argmax
  int64_t cache_bytes = 0;      // allocated for this sequence at its end
  double prefill_ms = 0;
  double decode_ms = 0;
  std::optional<DraftUse> draft;  // generate: where a draft was given and not left out
};

// Decides whether generation of sequence `index` ends after the tokens so far (stop strings).
// Called between steps from the engine's thread.
using StopCheck = std::function<bool(int64_t index, const std::vector<int32_t>& tokens)>;
// Called whenever work was done: sequences finished, tokens processed so far, over all maps.
using ProgressSink = std::function<void(int64_t finished, int64_t tokens)>;

struct RunOptions {
  BaseType base = BaseType::fp16;
  std::vector<int32_t> eos_ids;
  StopCheck stop;
  ProgressSink progress;
  const std::atomic<bool>* cancel = nullptr;  // true: leave with ErrorCode::preempted soon
};

// Not thread-safe: one engine, one thread.
class Engine {
 public:
  // Loads DIR (config.json, safetensors). bad_input names file and field; oom when the weights do
  // not fit.
  static Result<Engine> load(const std::string& model_dir, const EngineOptions& options);
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();

  const ModelGeometry& geometry() const;
  int64_t vocab_size() const;

  // What was found at start: whether a row's logits do not depend on what else is in the batch.
  bool batch_invariant() const;

  // Runs all requests under every map, as many sequences at once as budget and max_batch allow,
  // whatever their maps; [maps][requests], in the order given. What prompts begin with is computed
  // once per map, and a prompt whose queries see originals (Prefill::exact) once for all maps.
  // Errors: bad_input (context beyond the model's, empty prompt, tokens beyond the vocabulary, a
  // draft where a reference is forced), oom (one sequence does not fit
  // the budget), numerics (names layer, head, token), preempted.
  Result<std::vector<std::vector<SequenceOutput>>> run(const std::vector<PrecisionMap>& maps,
                                                       const std::vector<SequenceRequest>& requests,
                                                       const RunOptions& options);
  // Of one map.
  Result<std::vector<SequenceOutput>> run(const PrecisionMap& map,
                                          const std::vector<SequenceRequest>& requests,
                                          const RunOptions& options);

  // Runs all requests under the unquantized cache and says how large keys and values became. Errors
  // as `run`. `outputs` may be nullptr.
  Result<ObservedRanges> observe_ranges(const std::vector<SequenceRequest>& requests,
                                        const RunOptions& options,
                                        std::vector<SequenceOutput>* outputs);

  // Logits [tokens, vocab] in fp32 of every position of a teacher-forced pass; for parity tests
  // and benchmarks. `chunk` <= 0: the whole prompt at once.
  Result<std::vector<float>> logits(const PrecisionMap& map, const std::vector<int32_t>& tokens,
                                    BaseType base, int chunk);

  // "cpu/avx512/fp32/torch-2.11.0/intel" (environment.hpp): what must be equal for two runs to give
  // equal tokens. The number of threads is no part of it.
  static std::string numerics_class();

 private:
  struct State;
  explicit Engine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kvsweep::engine
