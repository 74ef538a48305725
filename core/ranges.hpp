// Ranges: the largest magnitudes of the keys and values of each layer, from which the calibrated
// constants of codecs follow (fp8 scales, the tensor scale of nvfp4).
#pragma once

#include <string>
#include <vector>

#include "core/format.hpp"
#include "core/json.hpp"
#include "core/result.hpp"

namespace kvsweep {

// What a scheme with calibrated constants needs, of the rows as its codecs see them. Nothing set =
// no constants.
struct Ranges {
  std::string model_hash;     // of the model they were observed on; "" = not said
  std::vector<float> keys;    // max |x| by layer, within kLeastRange .. kMostRange
  std::vector<float> values;  // as many

  bool empty() const { return keys.empty(); }
  friend bool operator==(const Ranges&, const Ranges&) = default;
};
// Constants made from these are neither 0 nor infinite in any codec.
inline constexpr float kLeastRange = 1e-20f;
inline constexpr float kMostRange = 1e30f;

// Whether the codec has a form whose scale is a constant of the side, in place of stored scales
// (fp8) or beside them (nvfp4). worker/codec says the same of its implementations.
bool takes_constant(Codec codec);

// Bytes of a group's parameters in that form: fp8 0, nvfp4 1.
int bytes_beside_constant(Codec codec);

// The constant that reaches `range` and not more, as serving engines compute it: range / 448
// (fp8_e4m3), / 57344 (fp8_e5m2), / 2688 (nvfp4), rounded to fp32. What lies beyond saturates.
float constant_for(Codec codec, float range);

// {"model_hash": .., "keys": [..], "values": [..]}; numbers are fp32 and stay exact.
Json to_json(const Ranges& ranges);
// Errors (bad_input) name the entry: not a positive fp32 number, lists of different lengths.
Result<Ranges> ranges_from_json(const Json& json, const std::string& where);

// Everything that one calibration observes, so that one file serves every scheme. `rotated`: after
// the Hadamard transform; `unbiased`: without the bias of the key projection. Lists by layer.
struct ObservedRanges {
  std::string model_hash;
  std::vector<float> keys;
  std::vector<float> rotated_keys;
  std::vector<float> unbiased_keys;          // empty where the model has no bias to leave out
  std::vector<float> rotated_unbiased_keys;  // likewise
  std::vector<float> values;
  std::vector<float> rotated_values;
  friend bool operator==(const ObservedRanges&, const ObservedRanges&) = default;
};

// The ranges file that `kvsweep calibrate` writes:
//   {"schema": "kvsweep-ranges", "schema_version": 1, "model": {"hash": ..},
//    "observed": {.. what of: task, examples, tokens, numerics_class, baseline_kv ..},
//    "keys": {"plain": [..], "rotated": [..], "unbiased": [..], "rotated_unbiased": [..]},
//    "values": {"plain": [..], "rotated": [..]}}
Json to_json(const ObservedRanges& ranges, const Json& observed);
// Errors (bad_input, not_found, io) name the file and the entry.
Result<ObservedRanges> read_ranges_file(const std::string& path);

// What of it a scheme needs.
struct RangeChoice {
  bool rotate_keys = false;
  bool rotate_values = false;
  bool unbiased_keys = false;
};
// bad_input where keys without bias were not observed, as the model has none.
Result<Ranges> choose(const ObservedRanges& observed, const RangeChoice& choice);

}  // namespace kvsweep
