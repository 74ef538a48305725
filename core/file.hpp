// Files read and written whole.
#pragma once

#include <string>
#include <string_view>

#include "core/result.hpp"

namespace kvsweep {

Result<std::string> read_file(const std::string& path);

// Writes beside `path`, syncs, renames: readers see the old file or the new one, never half.
Status write_file_atomic(const std::string& path, std::string_view bytes);

}  // namespace kvsweep
