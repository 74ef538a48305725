#include "worker/kernels/cpu_ops.hpp"

#include <cstdlib>
#include <cstring>

namespace kvsweep::kernels {

namespace baseline {
const CpuOps* ops();
}
#ifdef KVSWEEP_X86_KERNELS
namespace avx2 {
const CpuOps* ops();
}
namespace avx512 {
const CpuOps* ops();
}
#endif

const CpuOps* cpu_ops(Isa isa) {
  switch (isa) {
    case Isa::baseline:
      return baseline::ops();
#ifdef KVSWEEP_X86_KERNELS
    case Isa::avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                     __builtin_cpu_supports("f16c")
                 ? avx2::ops()
                 : nullptr;
    case Isa::avx512:
      return cpu_ops(Isa::avx2) != nullptr && __builtin_cpu_supports("avx512f") &&
                     __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                     __builtin_cpu_supports("avx512vl")
                 ? avx512::ops()
                 : nullptr;
#else
    default:
      break;
#endif
  }
  return nullptr;
}

namespace {

const CpuOps& choose() {
  constexpr Isa kBestFirst[] = {Isa::avx512, Isa::avx2, Isa::baseline};
  const char* wanted = std::getenv("KVSWEEP_ISA");
  const CpuOps* best = nullptr;
  for (Isa isa : kBestFirst) {
    const CpuOps* ops = cpu_ops(isa);
    if (ops == nullptr) continue;
    if (best == nullptr) best = ops;
    if (wanted != nullptr && std::strcmp(wanted, ops->name) == 0) return *ops;
  }
  return *best;
}

}  // namespace

const CpuOps& cpu_ops() {
  static const CpuOps& chosen = choose();
  return chosen;
}

}  // namespace kvsweep::kernels
