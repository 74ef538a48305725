// Row-wise arithmetic of a transformer in fp32. Every function computes a row from that row alone,
// with sums in an order fixed by the row's length: results depend neither on the number of rows
// nor on the vector width of the processor.
#pragma once

#include <cstdint>

namespace kvsweep::model {

// out [width] = the binary16 (IEEE 754-2019) or bfloat16 numbers in 2 width bytes, which need no
// alignment. Exact; infinity and NaN keep their kind.
void widen_halves(const uint8_t* halves, int64_t width, float* out);
void widen_bf16(const uint8_t* words, int64_t width, float* out);

// out = x / sqrt(mean(x^2) + eps) * weight (Zhang and Sennrich 2019, eq. 4, with the eps of
// Hugging Face). x, out [width], which may be the same; weight [width].
void rms_norm(const float* x, const float* weight, float eps, int64_t width, float* out);

// out = silu(gate) * up, silu(g) = g / (1 + exp(-g)); all [width].
void silu_times(const float* gate, const float* up, int64_t width, float* out);

// out = gelu(gate) * up, gelu(g) = g / 2 (1 + tanh(sqrt(2 / pi) (g + 0.044715 g^3))) (Hendrycks and
// Gimpel 2016, the approximation by tanh); all [width].
void gelu_tanh_times(const float* gate, const float* up, int64_t width, float* out);

// x = cap tanh(x / cap), x [width].
void soft_cap(float* x, float cap, int64_t width);

// x *= factor, x [width].
void multiply(float* x, float factor, int64_t width);

// x += y, both [width].
void add_to(float* x, const float* y, int64_t width);

// Rotates pairs (i, i + half) of `heads` heads of 2 * half channels (RoFormer, Su et al. 2021, in
// Hugging Face's half-split order): out_i = x_i cos_i - x_{i+half} sin_i,
// out_{i+half} = x_{i+half} cos_i + x_i sin_i. cos_sin [half] cosines, then sines.
void rotate(const float* x, const float* cos_sin, int heads, int64_t half, float* out);

// Largest value of x [width], width > 0; NaN or infinity anywhere gives a result that is not
// finite.
float max_or_nan(const float* x, int64_t width);

bool all_finite(const float* x, int64_t width);

// sum over i of exp(x_i - shift), x_i <= shift, accumulated in 64 bits from partial sums of 16
// values in fp32.
double sum_exp(const float* x, float shift, int64_t width);

// sum over i of p_i (log p_i - log q_i) with log p = x - log_sum_x, log q = y - log_sum_y: the
// Kullback-Leibler divergence KL(p || q) in nats, in 64 bits.
double divergence(const float* x, double log_sum_x, const float* y, double log_sum_y,
                  int64_t width);

// exp(x) for x in [-87, 88]; smaller arguments give 0. Relative error below 2e-7. Cephes' expf:
// n = round(x / ln 2), r = x - n ln 2 in two parts, a polynomial of degree 6 in r, times 2^n.
float fast_exp(float x);

}  // namespace kvsweep::model
