// Exporters turn a precision map and what is known of it into a file of a serving engine or tool.
// One file each plus one line in exporters.def.
#pragma once

#include <optional>
#include <string>
#include <string_view>
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
};

struct ExportInput {
  PrecisionMap map;
  ModelGeometry geometry;
  BaseType base = BaseType::fp16;
  std::string model_dir;      // "" = unknown
  std::string model_hash;     // "" = unknown
  int64_t context = 4096;     // where the cost is counted
  int64_t batch = 1;
  Json search;                // provenance: study, trial, algorithm, seed, version ({} = none)
  std::vector<Evidence> evidence;
};

struct ExportOutput {
  std::string text;                  // the file
  std::vector<std::string> lost;     // what the target cannot say ("residual window", ...)
  std::string sidecar;               // JSON beside the file, "" = none
};

struct ExporterInfo {
  std::string_view name;       // "kvmap"
  std::string_view extension;  // ".kvmap.json"
  std::string_view summary;
  bool can_import;
};
const std::vector<ExporterInfo>& exporters();

// Error (bad_input) for an unknown name gives the nearest.
Result<ExportOutput> export_map(const std::string& exporter, const ExportInput& input);

// What a file says; geometry is checked against it by the caller (check_map).
struct ImportedMap {
  PrecisionMap map;
  std::string model_hash;  // "" = the file does not say
  int num_layers = 0;
};

// `format` "" = by content: JSON object with "schema":"kvmap", or KVTuner YAML. A KVTuner YAML
// says only bits, so `scheme` supplies the rest (the sidecar's scheme when one lies beside it and
// none is given). Errors name the layer: gap, duplicate, dangling format, mismatched bits.
Result<ImportedMap> import_map(const std::string& path, const std::string& format,
                               const std::optional<SchemeOptions>& scheme);

}  // namespace kvsweep::store
