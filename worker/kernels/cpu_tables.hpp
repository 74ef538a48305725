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

void score(const ScoreArgs& args);
void softcap(float cap, int64_t count, float* scores);
float softmax(float* scores, int tokens, Columns visible, RowState* state);
void rescale(float factor, int head_dim, float* acc);
void accumulate(const AccumulateArgs& args);

const CpuOps* ops();

}  // namespace kvsweep::kernels::KVSWEEP_ISA
