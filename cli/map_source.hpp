// A precision map as a user names one: `baseline`, `uniform:K4V2`, either with exceptions for
// layers (`uniform:K4V2,5=K8V4,6-7=K8V8`) or for KV heads of layers (`5.0=K8V4`, `5-7.0-1=K8V4`,
// `5=K8V4|K4V2`), or a file.
#pragma once

#include <optional>
#include <string>

#include "cli/options.hpp"
#include "core/geometry.hpp"
#include "core/precision_map.hpp"
#include "core/result.hpp"
#include "store/export/exporter.hpp"

namespace kvsweep::cli {

// Scheme options of maps whose source does not say them.
struct SchemeFlags {
  std::optional<std::string> name;
  std::optional<int> group;
  std::optional<int> residual;
  std::optional<int> share;  // tenths
  std::optional<int> sinks;
  std::optional<Prefill> prefill;
  bool symmetric = false;
  std::optional<Hadamard> hadamard;
  std::optional<KeyBias> key_bias;
  std::optional<ObservedRanges> ranges;  // of a ranges file

  void declare(Options& options);
  bool any() const {
    return name || group || residual || share || sinks || prefill || symmetric || hadamard ||
           key_bias || ranges;
  }
  // per-token where no name was given. Error: ranges that lack what the other options need.
  Result<SchemeOptions> options() const;
};

struct NamedMap {
  PrecisionMap map;
  std::optional<BaseType> base;  // what a file says of the unquantized cache
  std::string model_hash;        // of the model it was made for; "" = unknown
};

// Error (bad_input, not_found) names the source; a map that does not fit `geometry` is one.
Result<NamedMap> load_map(const std::string& source, const SchemeFlags& scheme,
                          const ModelGeometry& geometry);

// Whether an imported map fits the model: layers, and the heads that the file states. bad_input
// names the file and the first layer that differs.
Status check_imported(const std::string& file, const store::ImportedMap& imported,
                      const ModelGeometry& geometry);

// What is said when a file names another model by its hash: the map may still be wanted.
std::string other_model_note(const std::string& file);

}  // namespace kvsweep::cli
