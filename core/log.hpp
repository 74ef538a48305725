// One log line format for all programs: UTC time, level, part, message, on standard error.
#pragma once

#include <string>
#include <string_view>

namespace kvsweep::log {

enum class Level { debug, info, warn, error };

// `level` "debug"|"info"|"warn"|"error"; `file` empty = standard error. Call once, at start.
void init(Level level, const std::string& file = "");
void write(Level level, std::string_view part, const std::string& message);

inline void debug(std::string_view part, const std::string& m) { write(Level::debug, part, m); }
inline void info(std::string_view part, const std::string& m) { write(Level::info, part, m); }
inline void warn(std::string_view part, const std::string& m) { write(Level::warn, part, m); }
inline void error(std::string_view part, const std::string& m) { write(Level::error, part, m); }

}  // namespace kvsweep::log
