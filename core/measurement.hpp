// Measurement: the outcome of one example of one task under one map on one model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/format.hpp"
#include "core/json.hpp"
#include "core/result.hpp"
#include "core/task_protocol.hpp"

namespace kvsweep {

// Everything the outcome depends on. `key()` is the content address in the store.
struct MeasurementKey {
  std::string model_hash;
  std::string map_id;
  std::string protocol_hash;  // of protocol and run mode
  std::string example_hash;   // of the example's rendered prompt and gold answer
  std::string numerics_class;
  BaseType base = BaseType::fp16;

  std::string key() const;  // SHA-256 hex
};

struct Timings {  // milliseconds of this example's share of its batch
  double prefill_ms = 0;
  double decode_ms = 0;
};

// What became of a draft: another map's text for the same prompt, whose tokens were verified many
// at a time instead of chosen one by one. It makes a run faster and changes nothing that is
// measured.
struct DraftUse {
  int64_t verifications = 0;      // forward passes with tokens of the draft
  int64_t proposed = 0;           // tokens of the draft that were verified
  int64_t accepted = 0;           // of these, those that decoding chose too
  int64_t first_difference = -1;  // the first output token that is not the draft's; -1: none
  int64_t realigned = 0;          // times the text came back to the draft

  friend bool operator==(const DraftUse&, const DraftUse&) = default;
};

// `nullopt` where the run mode does not produce the figure.
struct Measurement {
  int64_t example = 0;  // index in the split
  std::string example_hash;
  std::string text;             // generate: output cut at the first stop string; choices, rolling:
                                // log-likelihoods as JSON (worker/task/choices.hpp)
  std::vector<int32_t> tokens;  // generate: output token ids before the cut, stop or EOS included
  std::string answer;  // generate: extracted final answer, "[invalid]" when none; choices: the pick
  std::optional<double> exact_match;      // 0..1, the task's own score
  std::optional<double> strict_match;     // 0..1, its second filter or rule where it has one
  std::optional<double> token_agreement;  // 0..1 over the reference tokens
  std::optional<double> kl;               // mean nats per reference token
  std::optional<double> nll;              // mean nats per reference token; choices: of the gold
  int64_t prompt_tokens = 0;
  int64_t output_tokens = 0;  // generated or scored
  int64_t cache_bytes = 0;    // allocated for this sequence at its end
  Timings timings;
  std::optional<DraftUse> draft;  // where there was one; not kept by the store
};
Json to_json(const Measurement& measurement);
Result<Measurement> measurement_from_json(const Json& json);

}  // namespace kvsweep
