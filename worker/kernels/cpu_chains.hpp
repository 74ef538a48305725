// Chains of multiply-adds over an fp32 tile. Every element of a result is one chain in a fixed
// order (over channels for a score, over tokens for an output), one vector lane each: blocking over
// rows and lanes changes which chains run side by side, never a chain. That is what makes a row's
// result independent of the rows it is computed with. Included by files compiled with
// -ffp-contract=fast.
#pragma once

#include "worker/kernels/cpu_isa.hpp"
#include "worker/kernels/cpu_vec.hpp"

namespace kvsweep::kernels::KVSWEEP_ISA {

constexpr int kMaxRows = 4;
// Vectors side by side per row: as many accumulators as the registers hold.
constexpr int blocks_for(int rows) {
  return kLanes == 16 || rows <= 2 ? 4 : 2;
}

// out[r][0 .. B lanes) (+)= sum over i of x[r][i] * tile[i][0 .. B lanes), i ascending.
struct Chains {
  const float* x = nullptr;  // row r at x + r * x_stride
  int64_t x_stride = 0;
  const float* tile = nullptr;  // row i at tile + i * tile_stride
  int64_t tile_stride = 0;
  int count = 0;         // i < count
  float* out = nullptr;  // row r at out + r * out_stride
  int64_t out_stride = 0;
};

template <int Rows, int Blocks, bool kAdd>
inline __attribute__((always_inline)) void chains(const Chains& c) {
  Vec acc[Rows][Blocks];
  for (int r = 0; r < Rows; ++r) {
    for (int b = 0; b < Blocks; ++b) {
      acc[r][b] = kAdd ? load(c.out + r * c.out_stride + b * kLanes) : Vec{};
    }
  }
  for (int i = 0; i < c.count; ++i) {
    Vec t[Blocks];
#pragma GCC unroll 4
    for (int b = 0; b < Blocks; ++b) t[b] = load(c.tile + i * c.tile_stride + b * kLanes);
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) {
      const float x = c.x[r * c.x_stride + i];
#pragma GCC unroll 4
      for (int b = 0; b < Blocks; ++b) acc[r][b] += x * t[b];
    }
  }
  for (int r = 0; r < Rows; ++r) {
    for (int b = 0; b < Blocks; ++b) store(c.out + r * c.out_stride + b * kLanes, acc[r][b]);
  }
}

// All lanes of a row: `width` floats, a multiple of 16.
template <int Rows, bool kAdd>
void chains_of_rows(Chains c, int width) {
  constexpr int kWide = blocks_for(Rows) * kLanes;
  int done = 0;
  const auto advance = [&](int lanes) {
    c.tile += lanes;
    c.out += lanes;
    done += lanes;
  };
  for (; done + kWide <= width; advance(kWide)) chains<Rows, blocks_for(Rows), kAdd>(c);
  for (; done < width; advance(kLanes)) chains<Rows, 1, kAdd>(c);
}

template <bool kAdd>
void chains_of_all(Chains c, int rows, int width) {
  while (rows > 0) {
    const int now = rows < kMaxRows ? rows : kMaxRows;
    switch (now) {
      case 1:
        chains_of_rows<1, kAdd>(c, width);
        break;
      case 2:
        chains_of_rows<2, kAdd>(c, width);
        break;
      case 3:
        chains_of_rows<3, kAdd>(c, width);
        break;
      default:
        chains_of_rows<4, kAdd>(c, width);
        break;
    }
    c.x += now * c.x_stride;
    c.out += now * c.out_stride;
    rows -= now;
  }
}

}  // namespace kvsweep::kernels::KVSWEEP_ISA
