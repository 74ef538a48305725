// What the process must settle before libtorch starts, and how its numbers are named.
#pragma once

#include <string>

namespace kvsweep::engine {

// Sets MKL_ENABLE_INSTRUCTIONS=AVX2 on AMD processors with AVX2 and without AVX-512, where MKL
// otherwise picks a path half as fast. A value already in the environment is kept. Call first
// thing in main, before any thread or tensor exists: MKL reads it once.
void prepare_environment();

// "cpu/<isa>/fp32/torch-<version>/<vendor>/arithmetic-<n>": isa avx512, avx2 or sse (what MKL
// dispatches on), vendor intel, amd or other (MKL chooses by it too), n counts the changes of our
// own sums. "/kernels-<name>" is appended where the kernels run another instruction set than isa
// (kernels::cpu_ops().name, which KVSWEEP_ISA chooses), "/mkl-<value>" for an
// MKL_ENABLE_INSTRUCTIONS that is not the one prepare_environment sets. Results do not depend on
// the number of threads.
std::string numerics_class();

}  // namespace kvsweep::engine
