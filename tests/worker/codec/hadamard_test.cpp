// The fast transform against the matrix, in float64, and what the cache relies on.
#include "worker/codec/hadamard.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <iostream>
#include <random>
#include <vector>

namespace kvsweep::codec {
namespace {

// Element (i, j) of the Sylvester matrix of a block: (-1)^popcount(i & j) / sqrt(n).
std::vector<double> slow(const float* x, int head_dim) {
  std::vector<double> y;
  for (int begin = 0; begin < head_dim;) {
    const int n = static_cast<int>(std::bit_floor(static_cast<unsigned>(head_dim - begin)));
    for (int i = 0; i < n; ++i) {
      double sum = 0;
      for (int j = 0; j < n; ++j) {
        const bool minus = std::popcount(static_cast<unsigned>(i & j)) % 2 == 1;
        sum += minus ? -double(x[begin + j]) : double(x[begin + j]);
      }
      y.push_back(sum / std::sqrt(double(n)));
    }
    begin += n;
  }
  return y;
}

double length(const float* x, int count) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += double(x[i]) * x[i];
  return std::sqrt(sum);
}

constexpr int kHeadDims[] = {1, 2, 8, 64, 80, 96, 128, 192, 256, 576};

std::vector<float> random_rows(std::mt19937& rng, int rows, int head_dim) {
  std::normal_distribution<float> normal;
  std::vector<float> x(size_t(rows) * head_dim);
  for (float& v : x) v = normal(rng) * std::pow(10.0f, float(rng() % 6) - 3);
  return x;
}

TEST(Hadamard, IsTheMatrixAndItsOwnInverse) {
  const unsigned seed = std::random_device{}();
  std::cout << "seed " << seed << "\n";
  std::mt19937 rng(seed);
  for (int head_dim : kHeadDims) {
    const std::vector<float> x = random_rows(rng, 5, head_dim);
    std::vector<float> y = x;
    hadamard(y.data(), 5, head_dim);
    const double bound = (std::log2(head_dim) + 2) * 0x1p-24 * std::sqrt(double(head_dim));
    for (int r = 0; r < 5; ++r) {
      const float* row = x.data() + r * head_dim;
      const std::vector<double> expected = slow(row, head_dim);
      const double allowed = bound * length(row, head_dim);
      for (int i = 0; i < head_dim; ++i) {
        ASSERT_NEAR(y[r * head_dim + i], expected[i], allowed) << head_dim << " " << i;
      }
      EXPECT_NEAR(length(y.data() + r * head_dim, head_dim), length(row, head_dim),
                  2 * allowed * std::sqrt(double(head_dim)));
    }
    hadamard(y.data(), 5, head_dim);
    for (size_t i = 0; i < x.size(); ++i) {
      const float* row = x.data() + i / head_dim * head_dim;
      ASSERT_NEAR(y[i], x[i], 2 * bound * std::sqrt(double(head_dim)) * length(row, head_dim));
    }
  }
}

TEST(Hadamard, KeepsScores) {
  std::mt19937 rng(5);
  for (int head_dim : {64, 80, 96, 128, 256}) {
    std::vector<float> q = random_rows(rng, 1, head_dim), k = random_rows(rng, 1, head_dim);
    double before = 0, after = 0;
    for (int i = 0; i < head_dim; ++i) before += double(q[i]) * k[i];
    const double size = length(q.data(), head_dim) * length(k.data(), head_dim);
    hadamard(q.data(), 1, head_dim);
    hadamard(k.data(), 1, head_dim);
    for (int i = 0; i < head_dim; ++i) after += double(q[i]) * k[i];
    EXPECT_NEAR(after, before, 1e-6 * size) << head_dim;
  }
}

TEST(Hadamard, ARowDoesNotDependOnOthers) {
  std::mt19937 rng(6);
  for (int head_dim : kHeadDims) {
    const std::vector<float> x = random_rows(rng, 7, head_dim);
    std::vector<float> together = x, alone = x;
    hadamard(together.data(), 7, head_dim);
    for (int r = 0; r < 7; ++r) hadamard(alone.data() + r * head_dim, 1, head_dim);
    EXPECT_EQ(std::memcmp(together.data(), alone.data(), together.size() * 4), 0);
  }
}

TEST(Hadamard, WorkedExampleAndOutlier) {
  float pair[] = {3, 1};
  hadamard(pair, 1, 2);
  EXPECT_FLOAT_EQ(pair[0], 4 / std::sqrt(2.0f));
  EXPECT_FLOAT_EQ(pair[1], 2 / std::sqrt(2.0f));
  std::vector<float> x(64, 0.0f);
  x[5] = 8;  // one outlier becomes 64 elements of magnitude 1
  hadamard(x.data(), 1, 64);
  for (float v : x) EXPECT_EQ(std::fabs(v), 1.0f);
}

}  // namespace
}  // namespace kvsweep::codec
