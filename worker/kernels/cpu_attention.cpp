// One step of attention over one tile. Compiled with -ffp-contract=fast.
#include "worker/kernels/cpu_chains.hpp"
#include "worker/kernels/cpu_isa.hpp"
#include "worker/kernels/cpu_tables.hpp"
#include "worker/kernels/cpu_vec.hpp"

namespace kvsweep::kernels::KVSWEEP_ISA {
namespace {

// exp(x) for x <= 0; 0 below -87 (the result would leave the normal numbers).
// x = n ln 2 + r with |r| <= ln 2 / 2, exp(x) = 2^n exp(r), exp(r) by its Taylor series to r^7:
// the remainder is below 0.35^8 / 8! = 6e-9, a tenth of an ulp. ln 2 is split so that n * hi is
// exact. A NaN stays NaN.
inline Vec exp_negative(const Vec& x) {
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const Vec floor = x < -87.0f ? Vec{} - 87.0f : x;
  const Vec shifted = floor * 1.44269504f + kShift;
  const Vec n = shifted - kShift;
  const Vec r = (floor - n * 0.693359375f) + n * 2.12194440e-4f;
  Vec p = r * (1.0f / 5040) + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const VecInt exponent = (VecInt)shifted - __builtin_bit_cast(int32_t, kShift) + 127;
  const Vec power = (Vec)(exponent << 23);
  return x < -87.0f ? Vec{} : p * power;
}

inline float exp_one(float x) {
  const Vec v = exp_negative(Vec{} + x);
  return v[0];
}

}  // namespace

void score(const ScoreArgs& a) {
  const Chains c{a.q, a.head_dim, a.keys, a.tokens, a.head_dim, a.scores, a.tokens};
  chains_of_all<false>(c, a.rows, a.tokens);
}

void accumulate(const AccumulateArgs& a) {
  const int stride = padded_dim(a.head_dim);
  const Chains c{a.p + a.first, a.tokens,         a.values + int64_t{a.first} * stride,
                 stride,        a.last - a.first, a.acc,
                 stride};
  chains_of_all<true>(c, a.rows, stride);
}

// tanh |x| = (1 - e) / (1 + e) with e = exp(-2 |x|): absolute error below 1e-7.
void softcap(float cap, int64_t count, float* scores) {
  for (int64_t i = 0; i < count; ++i) {
    const float x = scores[i] / cap;
    const float e = exp_one(-2 * __builtin_fabsf(x));
    scores[i] = cap * __builtin_copysignf((1 - e) / (1 + e), x);
  }
}

float softmax(float* scores, int tokens, Columns visible, RowState* state) {
  const float kInfinity = __builtin_inff();
  for (int j = 0; j < visible.first; ++j) scores[j] = -kInfinity;
  for (int j = visible.last; j < tokens; ++j) scores[j] = -kInfinity;
  Vec lanes = Vec{} - kInfinity;
  for (int j = 0; j < tokens; j += kLanes) {
    const Vec s = load(scores + j);
    lanes = s > lanes ? s : lanes;
  }
  float max = state->max;
  for (int i = 0; i < kLanes; ++i) max = lanes[i] > max ? lanes[i] : max;
  Vec sums = Vec{};
  for (int j = 0; j < tokens; j += kLanes) {
    const Vec p = exp_negative(load(scores + j) - max);
    store(scores + j, p);
    sums += p;
  }
  float sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += sums[i];
  const float factor = exp_one(state->max - max);
  state->sum = state->sum * factor + sum;
  state->max = max;
  return factor;
}

void rescale(float factor, int head_dim, float* acc) {
  for (int d = 0; d < padded_dim(head_dim); ++d) acc[d] *= factor;
}

}  // namespace kvsweep::kernels::KVSWEEP_ISA
