// Precision maps: a kvmap file (or the YAML of KVTuner), and the JSON of a map in the database.
#include "core/json.hpp"
#include "core/precision_map.hpp"
#include "store/export/exporter.hpp"
#include "tests/fuzz/memory_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const kvsweep::fuzz::MemoryFile file("best.kvmap.json");
  file.write(data, size);
  const auto imported = kvsweep::store::import_map(file.path(), "", {});
  kvsweep::fuzz::require_named(imported, file.path());
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto json = kvsweep::parse_json(text, "map");
  if (!json.ok()) return 0;
  const auto map = kvsweep::precision_map_from_json(*json);
  if (map.ok()) {
    kvsweep::fuzz::require(kvsweep::precision_map_from_json(kvsweep::to_json(*map)).value() ==
                           *map);
  }
  kvsweep::canonical_json(*json).ok();
  return 0;
}
