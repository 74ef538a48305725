#include "worker/kernels/cpu_isa.hpp"
#include "worker/kernels/cpu_tables.hpp"

#define KVSWEEP_STRING_(x) #x
#define KVSWEEP_STRING(x) KVSWEEP_STRING_(x)

namespace kvsweep::kernels::KVSWEEP_ISA {

const CpuOps* ops() {
  // A constant expression: nothing runs at start-up on a processor that lacks the instructions.
  static constexpr CpuOps kTable = {KVSWEEP_STRING(KVSWEEP_ISA),
                                    plain_keys,
                                    plain_values,
                                    packed_keys,
                                    packed_values,
                                    widen,
                                    narrow,
                                    code_keys,
                                    code_values,
                                    score_packed,
                                    accumulate_packed,
                                    score,
                                    softcap,
                                    softmax,
                                    rescale,
                                    accumulate};
  return &kTable;
}

}  // namespace kvsweep::kernels::KVSWEEP_ISA
