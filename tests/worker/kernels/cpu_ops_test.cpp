// The CPU loops of every instruction set this machine has: conversions against the codec, scores,
// softmax and sums against double, and rows computed together against rows alone.
#include "worker/kernels/cpu_ops.hpp"
#include "tests/worker/kernels/isa_fixture.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "worker/codec/half.hpp"

namespace kvsweep::kernels {
namespace {

class CpuOpsTest : public testing::OnEveryIsa {
 protected:
  CpuOpsTest() : OnEveryIsa(7) {}
};

INSTANTIATE_TEST_SUITE_P(Isa, CpuOpsTest, testing::every_isa(), testing::isa_name);

TEST_P(CpuOpsTest, WidensEveryPattern) {
  std::vector<uint16_t> patterns(65536);
  for (int p = 0; p < 65536; ++p) patterns[p] = static_cast<uint16_t>(p);
  std::vector<float> wide(65536);
  ops_->widen(Element::fp16, patterns.data(), 65536, wide.data());
  for (int p = 0; p < 65536; ++p) {
    const float expected = codec::half_to_float(patterns[p]);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(wide[p]));
    } else {
      ASSERT_EQ(std::bit_cast<uint32_t>(wide[p]), std::bit_cast<uint32_t>(expected)) << p;
    }
  }
  ops_->widen(Element::bf16, patterns.data(), 65536, wide.data());
  for (int p = 0; p < 65536; ++p) {
    ASSERT_EQ(std::bit_cast<uint32_t>(wide[p]), uint32_t(p) << 16);
  }
  for (int count = 0; count < 40; ++count) {  // nothing behind the end is touched
    std::fill(wide.begin(), wide.end(), -1.0f);
    ops_->widen(Element::fp16, patterns.data() + 0x3c00, count, wide.data());
    ASSERT_EQ(wide[count], -1.0f);
    for (int i = 0; i < count; ++i) ASSERT_EQ(wide[i], codec::half_to_float(0x3c00 + i));
  }
}

// Random bit patterns (all exponents), ties between neighbours and short counts.
TEST_P(CpuOpsTest, NarrowsLikeTheCodecAndFindsWhatIsNotFinite) {
  std::vector<float> x(1 << 16);
  for (float& v : x) v = std::bit_cast<float>(static_cast<uint32_t>(rng_()));
  for (int p = 0; p < 0x7bff; ++p) {
    x[p] = (codec::half_to_float(p) + codec::half_to_float(p + 1)) / 2;
  }
  std::vector<uint16_t> half(x.size()), bf16(x.size());
  EXPECT_FALSE(ops_->narrow(Element::fp16, x.data(), x.size(), half.data()));
  EXPECT_FALSE(ops_->narrow(Element::bf16, x.data(), x.size(), bf16.data()));
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i])) {
      ASSERT_TRUE(std::isnan(codec::half_to_float(half[i])));
      ASSERT_TRUE(std::isnan(codec::bf16_to_float(bf16[i])));
    } else {
      ASSERT_EQ(half[i], codec::float_to_half(x[i])) << x[i];
      ASSERT_EQ(bf16[i], codec::float_to_bf16(x[i])) << x[i];
    }
  }
  const float bad[] = {std::numeric_limits<float>::quiet_NaN(),
                       std::numeric_limits<float>::infinity(), 65520.0f};
  for (int count : {1, 15, 16, 17, 64}) {
    std::vector<float> fine = normals(count);
    std::vector<uint8_t> out(4 * count);
    for (Element type : {Element::fp32, Element::fp16, Element::bf16}) {
      ASSERT_TRUE(ops_->narrow(type, fine.data(), count, out.data()));
      for (int at = 0; at < count; ++at) {
        for (float b : bad) {
          std::vector<float> with = fine;
          with[at] = b;
          const bool fits = std::isfinite(b) && type != Element::fp16;
          ASSERT_EQ(ops_->narrow(type, with.data(), count, out.data()), fits);
        }
      }
    }
  }
}

TEST_P(CpuOpsTest, PlainTilesAreTheWidenedRows) {
  for (Element type : {Element::fp32, Element::fp16, Element::bf16}) {
    for (int head_dim : {8, 20, 64, 80, 256}) {
      const int tokens = 64;
      const int stride = padded_dim(head_dim);
      const std::vector<float> x = normals(size_t(head_dim) * tokens);
      std::vector<uint8_t> rows(x.size() * element_bytes(type));
      ASSERT_TRUE(ops_->narrow(type, x.data(), x.size(), rows.data()));
      std::vector<float> wide(x.size()), keys(x.size()), values(size_t(stride) * tokens, -7.0f);
      ops_->widen(type, rows.data(), x.size(), wide.data());
      const PlainTile tile{type, rows.data(), head_dim, tokens};
      ops_->plain_keys(tile, keys.data());
      ops_->plain_values(tile, values.data());
      for (int t = 0; t < tokens; ++t) {
        for (int d = 0; d < stride; ++d) {
          const float want = d < head_dim ? wide[t * head_dim + d] : 0.0f;
          ASSERT_EQ(values[t * stride + d], want);
          if (d >= head_dim) continue;
          ASSERT_EQ(keys[d * tokens + t], want);
        }
      }
    }
  }
}

TEST_P(CpuOpsTest, ScoresAndSumsEqualDoubleAndDoNotDependOnOtherRows) {
  for (int head_dim : {8, 20, 64, 80, 128, 256}) {
    for (int tokens : {64, 128}) {
      const int rows = 11;
      const int stride = padded_dim(head_dim);
      const auto q = normals(size_t(rows) * head_dim);
      const auto keys = normals(size_t(head_dim) * tokens);
      std::vector<float> all(size_t(rows) * tokens);
      ops_->score({q.data(), rows, keys.data(), head_dim, tokens, all.data()});
      for (int r = 0; r < rows; ++r) {
        for (int j = 0; j < tokens; ++j) {
          double sum = 0;
          for (int d = 0; d < head_dim; ++d) {
            sum += double(q[r * head_dim + d]) * keys[d * tokens + j];
          }
          ASSERT_NEAR(all[r * tokens + j], sum, 1e-4);
        }
      }
      const auto values = normals(size_t(tokens) * stride);
      std::vector<float> acc(size_t(rows) * stride, 0.25f);
      AccumulateArgs args{all.data(), rows, tokens,     values.data(),
                          head_dim,   3,    tokens - 5, acc.data()};
      ops_->accumulate(args);
      for (int r = 0; r < rows; ++r) {
        for (int d = 0; d < head_dim; ++d) {
          double sum = 0.25;
          for (int j = 3; j < tokens - 5; ++j) {
            sum += double(all[r * tokens + j]) * values[j * stride + d];
          }
          ASSERT_NEAR(acc[r * stride + d], sum, 5e-3);
        }
      }
      for (int first = 0; first < rows; ++first) {
        for (int count = 1; first + count <= rows; ++count) {
          std::vector<float> some(size_t(count) * tokens);
          ops_->score(
              {q.data() + first * head_dim, count, keys.data(), head_dim, tokens, some.data()});
          ASSERT_EQ(std::memcmp(some.data(), all.data() + first * tokens, some.size() * 4), 0);
          // ... and in two steps over the tokens.
          std::vector<float> part(size_t(count) * stride, 0.25f);
          AccumulateArgs split = args;
          split.p = some.data();
          split.rows = count;
          split.acc = part.data();
          split.last = 3 + first;
          ops_->accumulate(split);
          split.first = split.last;
          split.last = tokens - 5;
          ops_->accumulate(split);
          ASSERT_EQ(std::memcmp(part.data(), acc.data() + first * stride, part.size() * 4), 0);
        }
      }
    }
  }
}

// Weights are exp(s - max): relative error against double below 2 ulp (2.4e-7) on all arguments.
TEST_P(CpuOpsTest, SoftmaxWeightsEqualDouble) {
  const int tokens = 128;
  for (double top : {0.0, 3.0, -50.0, 1000.0}) {
    for (double span : {0.1, 5.0, 86.0}) {
      std::vector<float> scores(tokens);
      for (int j = 0; j < tokens; ++j) scores[j] = float(top - span * j / tokens);
      const std::vector<float> s = scores;
      RowState state;
      EXPECT_EQ(ops_->softmax(scores.data(), tokens, {0, 100}, &state), 0.0f);
      EXPECT_EQ(state.max, s[0]);
      double sum = 0;
      for (int j = 0; j < 100; ++j) {
        const double want = std::exp(double(s[j] - s[0]));
        ASSERT_NEAR(scores[j], want, 2.4e-7 * want) << s[j];
        sum += want;
      }
      for (int j = 100; j < tokens; ++j) ASSERT_EQ(scores[j], 0.0f);
      EXPECT_NEAR(state.sum, sum, 1e-6 * sum);
    }
  }
}

TEST_P(CpuOpsTest, SoftmaxRescalesWhatCameBefore) {
  std::vector<float> low(64, 1.0f), high(64, 3.0f), lower(64, -200.0f);
  RowState state;
  ops_->softmax(low.data(), 64, {0, 64}, &state);
  EXPECT_EQ(state.sum, 64.0f);
  const float factor = ops_->softmax(high.data(), 64, {0, 1}, &state);
  EXPECT_NEAR(factor, std::exp(-2.0), 1e-7);
  EXPECT_NEAR(state.sum, 64 * std::exp(-2.0) + 1, 1e-5);
  const float before = state.sum;
  EXPECT_EQ(ops_->softmax(lower.data(), 64, {0, 64}, &state),
            1.0f);               // exactly: nothing is rescaled
  EXPECT_EQ(state.sum, before);  // exp(-203) counts as 0
  std::vector<float> acc(32, 2.0f);
  ops_->rescale(0.5f, 20, acc.data());
  EXPECT_EQ(acc, std::vector<float>(32, 1.0f));
}

TEST_P(CpuOpsTest, SoftmaxHidesTheColumnsBeforeTheFirst) {
  std::vector<float> scores(64, 50.0f);
  for (int j = 10; j < 20; ++j) scores[j] = 1.0f;
  RowState state;
  ops_->softmax(scores.data(), 64, {10, 20}, &state);
  EXPECT_EQ(state.max, 1.0f);
  EXPECT_EQ(state.sum, 10.0f);
  for (int j = 0; j < 64; ++j) EXPECT_EQ(scores[j], j >= 10 && j < 20 ? 1.0f : 0.0f) << j;
}

TEST_P(CpuOpsTest, SoftcapEqualsDouble) {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> scores = {0.0f, -0.0f, 1e-8f, -3e-4f, 0.1f, -2.0f, 49.0f, -200.0f, 1e30f};
  std::mt19937 rng(std::random_device{}());
  std::normal_distribution<float> normal(0, 60);
  for (int i = 0; i < 500; ++i) scores.push_back(normal(rng));
  const std::vector<float> before = scores;
  ops_->softcap(50.0f, static_cast<int64_t>(scores.size()), scores.data());
  for (size_t i = 0; i < scores.size(); ++i) {
    EXPECT_NEAR(scores[i], 50 * std::tanh(double{before[i]} / 50), 1e-5) << before[i];
  }
  float odd[] = {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()};
  ops_->softcap(50.0f, 3, odd);
  EXPECT_EQ(odd[0], 50.0f);
  EXPECT_EQ(odd[1], -50.0f);
  EXPECT_TRUE(std::isnan(odd[2]));
}

TEST_P(CpuOpsTest, ANanScoreStaysVisible) {
  std::vector<float> scores(64, 1.0f);
  scores[17] = std::numeric_limits<float>::quiet_NaN();
  RowState state;
  ops_->softmax(scores.data(), 64, {0, 64}, &state);
  EXPECT_TRUE(std::isnan(state.sum));
}

TEST(CpuOps, BaselineIsAlwaysThereAndNamesAreDistinct) {
  ASSERT_NE(cpu_ops(Isa::baseline), nullptr);
  EXPECT_STREQ(cpu_ops(Isa::baseline)->name, "baseline");
  const CpuOps* avx2 = cpu_ops(Isa::avx2);
  const CpuOps* avx512 = cpu_ops(Isa::avx512);
  EXPECT_STREQ(avx2 == nullptr ? "avx2" : avx2->name, "avx2");
  EXPECT_STREQ(avx512 == nullptr ? "avx512" : avx512->name, "avx512");
}

}  // namespace
}  // namespace kvsweep::kernels
