// Reading a kvmap file. Internal to store/export.
#pragma once

#include "store/export/registry.hpp"

namespace kvsweep::store {

inline constexpr int kKvmapVersion = 1;

// Checks everything that exports.md §4 asks of a reader: version, must_understand, unknown keys, a
// total list of layers, format names, effective bits, cost, map_id. Every message begins with the
// file's path and names the layer or field.
Result<ImportedMap> read_kvmap(const ImportSource& source);

}  // namespace kvsweep::store
