// Attention over the codes of a page against double over what the codec decodes, for every integer
// codec, variant and layout that folds, on every instruction set of this machine; and rows
// together, alone, in parts and over a tile of codes, which must agree bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/worker/codec/codec_cases.hpp"
#include "tests/worker/kernels/isa_fixture.hpp"
#include "worker/kernels/cpu_ops.hpp"

namespace kvsweep::kernels {
namespace {

using codec::Codec;
using codec::Variant;
using codec::testing::Layout;

constexpr int kRows = 27;  // more than share one unpacking, and not a multiple of any block

class Folded : public testing::OnEveryIsa {
 protected:
  Folded() : OnEveryIsa(11) {}
};

INSTANTIATE_TEST_SUITE_P(Isa, Folded, testing::every_isa(), testing::isa_name);

// An encoded page; buffers end where it ends.
struct Page {
  std::vector<uint8_t> codes;
  std::vector<uint8_t> params;
  std::vector<float> decoded;  // [tokens][head_dim]
  PackedTile tile;

  Page(const Codec& codec, const Layout& l, const std::vector<float>& x)
      : codes(codec::testing::code_bytes(codec, l)), params(codec::testing::param_bytes(codec, l)) {
    EXPECT_TRUE(codec::testing::encode(codec, l, x.data(), codes.data(), params.data()).ok());
    decoded = codec::testing::decode(codec, l, codes.data(), params.data());
    tile = {codec.packed(l.variant),
            l.channel,
            l.group,
            l.head_dim,
            l.tokens,
            codes.data(),
            params.data()};
  }
};

// Calls use(codec, layout) for the layouts whose pages fold; returns how many.
template <typename Use>
int for_each_folding(bool values, const Use& use) {
  int count = 0;
  for (const Codec& codec : codec::codecs()) {
    for (const Variant& variant : codec::testing::variants(codec)) {
      for (const int head_dim : {8, 20, 64, 80, 96, 128, 256}) {
        for (const int tokens : {64, 128}) {
          const auto visit = [&](const Layout& l) {
            PackedTile tile{codec.packed(l.variant), l.channel, l.group, l.head_dim, l.tokens};
            if (l.tokens != tokens || !folds(tile, values)) return;
            SCOPED_TRACE(codec::testing::text(codec, l));
            use(codec, l);
            ++count;
          };
          if (codec.encode_row != nullptr) {
            for (int group : codec::testing::row_groups(codec, head_dim)) {
              visit({false, head_dim, group, tokens, variant});
            }
          }
          if (codec.encode_block == nullptr) continue;
          for (int group : codec::testing::block_tokens(codec)) {
            if (group <= tokens) visit({true, head_dim, group, tokens / group * group, variant});
          }
        }
      }
    }
  }
  return count;
}

void expect_equal(const std::vector<float>& part, const std::vector<float>& all, size_t at) {
  ASSERT_EQ(std::memcmp(part.data(), all.data() + at, part.size() * sizeof(float)), 0);
}

TEST_P(Folded, ScoresEqualDoubleAndDoNotDependOnOtherRows) {
  const int layouts = for_each_folding(false, [&](const Codec& codec, const Layout& l) {
    const Page page(codec, l, normals(size_t(l.tokens) * l.head_dim));
    const auto q = normals(size_t(kRows) * l.head_dim);
    std::vector<float> all(size_t(kRows) * l.tokens);
    ops_->score_packed({page.tile, nullptr, q.data(), kRows, all.data()});
    for (int r = 0; r < kRows; ++r) {
      for (int t = 0; t < l.tokens; ++t) {
        double sum = 0;
        for (int d = 0; d < l.head_dim; ++d) {
          sum += double(q[r * l.head_dim + d]) * page.decoded[t * l.head_dim + d];
        }
        ASSERT_NEAR(all[r * l.tokens + t], sum, 2e-4) << "row " << r << ", token " << t;
      }
    }
    std::vector<float> codes(size_t(l.head_dim) * l.tokens);
    ops_->code_keys(page.tile, codes.data());
    std::vector<float> again(all.size());
    ops_->score_packed({page.tile, codes.data(), q.data(), kRows, again.data()});
    expect_equal(again, all, 0);
    for (int count = 1; count <= 9; ++count) {
      const int first = kRows - count;
      std::vector<float> some(size_t(count) * l.tokens);
      ops_->score_packed({page.tile, nullptr, q.data() + first * l.head_dim, count, some.data()});
      expect_equal(some, all, size_t(first) * l.tokens);
    }
  });
  EXPECT_GT(layouts, 100);  // a rule that lets nothing fold would pass all else
}

TEST_P(Folded, SumsEqualDoubleAndDoNotDependOnOtherRows) {
  const int layouts = for_each_folding(true, [&](const Codec& codec, const Layout& l) {
    const Page page(codec, l, normals(size_t(l.tokens) * l.head_dim));
    const int stride = padded_dim(l.head_dim);
    const int first = 3;
    const int last = l.tokens - 5;
    std::vector<float> p(size_t(kRows) * l.tokens);
    for (float& v : p) v = std::uniform_real_distribution<float>(0, 1)(rng_);
    const auto sums = [&](const float* weights, int rows, int from, int to, const float* codes) {
      std::vector<float> acc(size_t(rows) * stride, 0.25f);
      ops_->accumulate_packed({page.tile, codes, weights, rows, from, to, acc.data()});
      for (int r = 0; r < rows; ++r) {
        for (int d = l.head_dim; d < stride; ++d) acc[r * stride + d] = 0;
      }
      return acc;
    };
    const std::vector<float> all = sums(p.data(), kRows, first, last, nullptr);
    // Weights of one sign add codes up to weight * range before the offsets take most of it away
    // again; a hundred roundings of 2^-24 that mostly cancel are 1e-6 of that.
    const auto [low, high] = std::minmax_element(page.decoded.begin(), page.decoded.end());
    const double range = *high - *low;
    for (int r = 0; r < kRows; ++r) {
      for (int d = 0; d < l.head_dim; ++d) {
        double sum = 0.25;
        double weight = 0;
        for (int t = first; t < last; ++t) {
          weight += p[r * l.tokens + t];
          sum += double(p[r * l.tokens + t]) * page.decoded[t * l.head_dim + d];
        }
        ASSERT_NEAR(all[r * stride + d], sum, 1e-6 * weight * range)
            << "row " << r << ", channel " << d;
      }
    }
    std::vector<float> codes(size_t(l.tokens) * stride);
    ops_->code_values(page.tile, codes.data());
    expect_equal(sums(p.data(), kRows, first, last, codes.data()), all, 0);
    for (int count = 1; count <= 9; ++count) {
      const int row = kRows - count;
      expect_equal(sums(p.data() + row * l.tokens, count, first, last, nullptr), all,
                   size_t(row) * stride);
    }
    // A row that weighs columns with zero gets what it gets without them.
    std::vector<float> hidden(p.begin(), p.begin() + l.tokens);
    for (int t = 0; t < l.tokens; ++t) hidden[t] = t < 10 || t >= 40 ? 0 : hidden[t];
    expect_equal(sums(hidden.data(), 1, 10, 40, nullptr),
                 sums(hidden.data(), 1, 0, l.tokens, nullptr), 0);
  });
  EXPECT_GT(layouts, 50);
}

// Tokens that were never written may hold anything: a parameter that is no number there must not
// reach a sum that leaves them out.
TEST_P(Folded, SumsLeaveOutWhatThePageHoldsElsewhere) {
  for (const Codec& codec : codec::codecs()) {
    const Layout l{false, 64, 64, 64, {}};
    PackedTile shape{codec.packed(l.variant), l.channel, l.group, l.head_dim, l.tokens};
    if (!folds(shape, true)) continue;
    Page page(codec, l, normals(size_t(l.tokens) * l.head_dim));
    const auto p = normals(l.tokens);
    std::vector<float> before(padded_dim(64)), after(padded_dim(64));
    ops_->accumulate_packed({page.tile, nullptr, p.data(), 1, 0, 40, before.data()});
    std::fill(page.params.begin() + 40 * 4, page.params.end(), uint8_t{0x7e});  // NaN as fp16
    ops_->accumulate_packed({page.tile, nullptr, p.data(), 1, 0, 40, after.data()});
    EXPECT_EQ(before, after);
  }
}

}  // namespace
}  // namespace kvsweep::kernels
