// What the process must settle before libtorch starts, and how its numbers are named.
#pragma once

#include <string>

namespace kvsweep::engine {

// Sets MKL_ENABLE_INSTRUCTIONS=AVX2 on AMD processors with AVX2 and without AVX-512, where MKL
// otherwise picks a path half as fast. A value already in the environment is kept. Call first
// thing in main, before any thread or tensor exists: MKL reads it once.
void prepare_environment();

// "cpu/<isa>/fp32/torch-<version>/<vendor>": isa avx512, avx2 or sse (what the kernels and MKL
// dispatch on), vendor intel, amd or other (MKL chooses by it too). An MKL_ENABLE_INSTRUCTIONS that
// is not the one prepare_environment sets is appended. Results do not depend on the number of
// threads.
std::string numerics_class();

}  // namespace kvsweep::engine
