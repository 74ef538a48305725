// Exporters turn a precision map and what is known of it into a file of a serving engine or tool.
// One file each plus one line in exporters.def.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/geometry.hpp"
#include "core/json.hpp"
#include "core/precision_map.hpp"
#include "core/result.hpp"

namespace kvsweep::store {

// Paired result of a map on a task, as a trial or a report measured it.
struct Evidence {
  std::string task;
  std::string split;
  std::string metric;
  int64_t n = 0;
  double baseline = 0;
  double value = 0;
  std::string numerics_class;
  // Paired interval of value - baseline, where one was computed.
  std::optional<std::pair<double, double>> ci;
  double level = 0.95;
  std::string method;     // "paired-bootstrap-10000"
  bool held_out = false;  // measured on examples that the search never saw
};

struct ExportInput {
  PrecisionMap map;
  ModelGeometry geometry;
  BaseType base = BaseType::fp16;
  std::string model_dir;   // "" = unknown
  std::string model_hash;  // "" = unknown
  int64_t context = 4096;  // where the cost is counted
  int64_t batch = 1;
  Json search;  // provenance: study, trial, algorithm, seed, version ({} = none)
  std::vector<Evidence> evidence;
};

struct ExportOutput {
  std::string text;               // the file
  std::vector<std::string> lost;  // what the target cannot say ("residual window", ...)
  std::string sidecar;            // JSON beside the file, "" = none
};

struct ExporterInfo {
  std::string_view name;       // "kvmap"
  std::string_view extension;  // ".kvmap.json"
  std::string_view summary;
  bool can_import;
};
const std::vector<ExporterInfo>& exporters();

// Errors (bad_input): an unknown name gives the nearest; a map that does not fit the geometry, or
// that the target cannot hold at all, names the layer; `model_dir` whose hash is not `model_hash`.
Result<ExportOutput> export_map(const std::string& exporter, const ExportInput& input);

// What a file says; geometry is checked against it by the caller (check_map).
struct ImportedMap {
  PrecisionMap map;
  std::string model_hash;  // "" = the file does not say
  int num_layers = 0;
  std::optional<BaseType> base;           // nullopt = the file does not say
  std::optional<ModelGeometry> geometry;  // what the file says of it (family and max_context may
                                          // be absent); nullopt = nothing
};

// Where the sidecar of the file at `path` lies: PATH.sidecar.json.
std::string sidecar_path(const std::string& path);

// SHA-256 of the canonical form (RFC 8785) of a JSON document: the hash by which a kvmap file is
// cited. It does not depend on the file's spacing, which is chosen for people.
Result<std::string> document_hash(const std::string& text);

// `format` "" = by content: JSON object with "schema":"kvmap", or KVTuner YAML. A KVTuner YAML
// says only bits, so `scheme` supplies the rest (the sidecar's scheme when one lies beside it and
// none is given). Errors name the layer: gap, duplicate, dangling format, mismatched bits.
Result<ImportedMap> import_map(const std::string& path, const std::string& format,
                               const std::optional<SchemeOptions>& scheme);

}  // namespace kvsweep::store
