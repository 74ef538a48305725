// Ranges of what a study spec may hold, for YAML and JSON readers alike.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvsweep {

inline constexpr size_t kMaxNameBytes = 100;
inline constexpr int64_t kMaxTrials = 1'000'000;
inline constexpr int64_t kMaxPopulation = 10'000;
inline constexpr int64_t kMaxSeed = int64_t{1} << 53;  // exact in JSON
inline constexpr int64_t kMaxGroups = 4096;
inline constexpr int64_t kMaxExamples = 10'000'000;
inline constexpr int64_t kMaxShots = 64;
inline constexpr int64_t kMaxNewTokens = 32'768;
inline constexpr int64_t kMaxContext = int64_t{1} << 30;  // tokens
inline constexpr int64_t kMaxLength = int64_t{1} << 20;   // tokens of a prompt
inline constexpr int64_t kMaxBatch = 1'000'000;           // sequences
inline constexpr int kMaxResidual = 8192;  // tokens; beyond it nothing of a usual context is coded
inline constexpr int kMaxShare = 9;        // tenths; ten would leave nothing to code
inline constexpr double kMaxBits = 64;
inline constexpr double kMaxKlLoss = 1000;  // nats per token
inline constexpr size_t kMaxReportTasks = 100;

}  // namespace kvsweep
