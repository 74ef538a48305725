// Included first by the files that are compiled once per instruction set. They include no standard
// header with code in it: an inline function compiled for AVX-512 must never become the copy that
// the linker keeps for everybody.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifndef KVSWEEP_ISA
#define KVSWEEP_ISA baseline
#endif

namespace kvsweep::kernels::KVSWEEP_ISA {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

}  // namespace kvsweep::kernels::KVSWEEP_ISA
