// Files read and written whole.
#pragma once

#include <string>
#include <string_view>

#include "core/result.hpp"

namespace kvsweep {

// At most 1 GiB: the files that are read whole are texts.
Result<std::string> read_file(const std::string& path);

// Writes beside `path`, syncs, renames: readers see the old file or the new one, never half. The
// target of a symbolic link is replaced, not the link; a device or pipe is written to.
Status write_file_atomic(const std::string& path, std::string_view bytes);

}  // namespace kvsweep
