// What the per-instruction-set files define for each other and for the table (cpu_table.cpp).
#pragma once

#include "worker/kernels/cpu_isa.hpp"
#include "worker/kernels/cpu_ops.hpp"

namespace kvsweep::kernels::KVSWEEP_ISA {

void widen_halves(const uint16_t* from, int64_t count, float* to);
void widen(Element type, const void* from, int64_t count, float* to);
bool narrow(Element type, const float* from, int64_t count, void* to);

void plain_keys(const PlainTile& tile, float* keys);
void plain_values(const PlainTile& tile, float* values);
void packed_keys(const PackedTile& tile, float* keys);
void packed_values(const PackedTile& tile, float* values);

// Packed tiles without their padding: the loops for one kind of codes, and element by element.
void fast_keys(const PackedTile& tile, float* keys);
void fast_values(const PackedTile& tile, float* values);
struct TileStride {
  int64_t token = 0;
  int64_t channel = 0;
};
void reference_tile(const PackedTile& tile, TileStride stride, float* out);

void code_keys(const PackedTile& tile, float* codes);
void code_values(const PackedTile& tile, float* codes);
void score_packed(const PackedScoreArgs& args);
void accumulate_packed(const PackedSumArgs& args);

void score(const ScoreArgs& args);
void softcap(float cap, int64_t count, float* scores);
float softmax(float* scores, int tokens, Columns visible, RowState* state);
void rescale(float factor, int head_dim, float* acc);
void accumulate(const AccumulateArgs& args);

const CpuOps* ops();

}  // namespace kvsweep::kernels::KVSWEEP_ISA
