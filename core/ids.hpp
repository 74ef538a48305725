// Identifiers: random ones are UUIDv7 (RFC 9562), so that they sort by creation time.
#pragma once

#include <cstdint>
#include <string>

namespace kvsweep {

// "0192f3c4-…", 36 characters; time from `utc_ms`, the rest from the system's random source.
std::string uuid_v7(int64_t utc_ms);

}  // namespace kvsweep
