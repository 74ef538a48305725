// A database with one finished study whose numbers are chosen by hand, for tests of what reads it.
#pragma once

#include <string>

#include "store/store.hpp"

namespace kvsweep::test {

// Study "nightly/small": 4 layers of 2 KV heads of 64, per-token, word_problems, token_agreement.
// At 4096 tokens one side of one layer takes 2 * 64 * 4096 * bits / 8 bytes, with head groups of 64
// adding half a bit:
//   baseline  K16V16          8 MiB * 1        16 bits    loss 0     64 examples
//   trial 0   K8V8            8.5 bits         loss 0.01
//   trial 1   K4V4            4.5 bits         loss 0.05   dominated by trial 2? no: fewer bytes
//   trial 2   K8V4 x2, K4V4 x2   5.5 bits      loss 0.02
//   trial 3   K8V4            6.5 bits         loss 0.03   dominated by trial 2
//   trial 4   K2V2            2.5 bits         loss 0.4
//   trial 5   failed: oom
// Front by bytes: 4, 1, 2, 0. A report on split "report" covers trials 4 and 1.
void make_sample_database(const std::string& path);

// Bytes of the sample's baseline at 4096 tokens: 4 layers * 2 sides * 2 heads * 64 * 2 bytes *
// 4096.
inline constexpr double kSampleBaselineBytes = 8388608;

}  // namespace kvsweep::test
