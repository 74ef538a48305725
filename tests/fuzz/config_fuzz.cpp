// config.json: a geometry within the limits, or an error that names the file.
#include "core/geometry.hpp"
#include "tests/fuzz/memory_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using kvsweep::fuzz::require;
  static const kvsweep::fuzz::MemoryFile file("config.json");
  file.write(data, size);
  const auto geometry = kvsweep::read_geometry(file.folder());
  kvsweep::fuzz::require_named(geometry, file.path());
  if (!geometry.ok()) return 0;
  require(geometry->num_layers() >= 1 && geometry->num_layers() <= 4096);
  require(geometry->max_context >= 1 && geometry->elements_per_token() >= 2);
  for (const auto& layer : geometry->layers) require(layer.kv_heads >= 1 && layer.head_dim >= 1);
  const auto again = kvsweep::geometry_from_json(kvsweep::to_json(*geometry));
  require(again.ok() && *again == *geometry);
  return 0;
}
