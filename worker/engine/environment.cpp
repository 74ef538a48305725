#include "worker/engine/environment.hpp"

#include <torch/headeronly/version.h>

#include <cstdlib>

#include "worker/kernels/cpu_ops.hpp"

namespace kvsweep::engine {
namespace {

constexpr const char* kMklVariable = "MKL_ENABLE_INSTRUCTIONS";

// Raised with every change of what the CPU computes in any bit, so that no study mixes both.
// 2: attention over integer codes folds their scales into queries and weights.
constexpr const char* kArithmetic = "2";

struct Processor {
  std::string isa = "other";
  std::string vendor = "other";
};

Processor processor() {
  Processor found;
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  found.isa = avx512 ? "avx512" : (avx2 ? "avx2" : "sse");
  if (__builtin_cpu_is("intel")) found.vendor = "intel";
  if (__builtin_cpu_is("amd")) found.vendor = "amd";
#endif
  return found;
}

// The value prepare_environment gives the variable on this processor; "" = none.
std::string wanted_mkl(const Processor& cpu) {
  return cpu.vendor == "amd" && cpu.isa == "avx2" ? "AVX2" : "";
}

}  // namespace

void prepare_environment() {
  const std::string value = wanted_mkl(processor());
  if (!value.empty()) setenv(kMklVariable, value.c_str(), /*overwrite=*/0);
}

std::string numerics_class() {
  const Processor cpu = processor();
  std::string name = "cpu/" + cpu.isa + "/fp32/torch-" + TORCH_VERSION + "/" + cpu.vendor +
                     "/arithmetic-" + kArithmetic;
  // What KVSWEEP_ISA or an incomplete processor makes of attention; its sums differ by vector
  // width.
  const std::string kernels = kernels::cpu_ops().name;
  if (kernels != (cpu.isa == "sse" ? "baseline" : cpu.isa)) name += "/kernels-" + kernels;
  const char* mkl = std::getenv(kMklVariable);
  const std::string value = mkl != nullptr ? mkl : "";
  if (value != wanted_mkl(cpu)) name += "/mkl-" + (value.empty() ? "default" : value);
  return name;
}

}  // namespace kvsweep::engine
