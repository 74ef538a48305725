// The orthonormal Walsh-Hadamard transform of rows, which spreads outlier channels over a head.
#pragma once

#include <cstdint>

namespace kvsweep::codec {

// Transforms each of the rows [rows][head_dim] in place: y = H x with H = diag(H_n1, H_n2, ...),
// the n_i being the powers of two whose sum is head_dim, largest first (80 = 64 + 16, 96 = 64 + 32,
// 128 = 128), and H_n the Sylvester matrix over sqrt(n). H is symmetric and its own inverse, so
// (H q) . (H k) = q . k: store H k and use H q; store H v and transform the output.
//
// In fp32, the fast transform in fixed order (strides 1, 2, 4, ...), then one multiplication by
// 1 / sqrt(n): the same bits on every machine and for any number of rows. O(head_dim log head_dim).
// Error: |y - H x| <= (log2 n + 2) * 2^-24 * sqrt(n) * |x|, the length taken over the block.
// Worked example, head_dim 2: {3, 1} -> {4, 2} / sqrt(2).
// Source: Fino and Algazi, IEEE Transactions on Computers C-25 (1976) 1142; applied to KV caches by
// QuaRot (arXiv 2404.00456). Thread-safe.
void hadamard(float* rows, int64_t count, int head_dim);

}  // namespace kvsweep::codec
