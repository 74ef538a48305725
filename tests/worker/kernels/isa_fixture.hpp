// What the tests of CPU kernels share: one run per instruction set of this machine.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "worker/kernels/cpu_ops.hpp"

namespace kvsweep::kernels::testing {

// Skips, and says so, where the processor lacks the instruction set.
class OnEveryIsa : public ::testing::TestWithParam<Isa> {
 protected:
  explicit OnEveryIsa(uint64_t seed) : rng_(seed) {}

  void SetUp() override {
    ops_ = cpu_ops(GetParam());
    if (ops_ == nullptr) GTEST_SKIP() << "this processor lacks the instruction set";
  }

  std::vector<float> normals(size_t count) {
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& v : values) v = normal(rng_);
    return values;
  }

  const CpuOps* ops_ = nullptr;
  std::mt19937_64 rng_;
};

inline std::string isa_name(const ::testing::TestParamInfo<Isa>& param) {
  constexpr const char* kNames[] = {"baseline", "avx2", "avx512"};
  return kNames[static_cast<int>(param.param)];
}

inline auto every_isa() {
  return ::testing::Values(Isa::baseline, Isa::avx2, Isa::avx512);
}

}  // namespace kvsweep::kernels::testing
