// What `kvsweep model show` knows of a model: read here, and asked of kvsweep-worker.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/terminal.hpp"
#include "core/geometry.hpp"
#include "core/json.hpp"

namespace kvsweep::cli {

struct ModelReport {
  std::string path;
  std::string architecture;               // "" = config.json does not say
  std::optional<ModelGeometry> geometry;  // nullopt: refused
  std::optional<int64_t> query_heads;
  Json worker;                       // `kvsweep-worker --inspect`; null when it did not answer
  std::optional<std::string> hash;   // nullopt: not computed
  std::vector<std::string> refused;  // reasons, one sentence each
  std::string unchecked;             // why the worker did not answer; "" = it did
};

struct ModelQuestion {
  std::string path;
  std::string worker_program;  // "" = the usual places
  bool hash = true;
};
// `progress` is told when the weights are about to be read, which takes long for large files.
ModelReport inspect(const ModelQuestion& question, const Terminal& progress);

std::string model_text(const ModelReport& report, const Terminal& out);
Json to_json(const ModelReport& report);

}  // namespace kvsweep::cli
