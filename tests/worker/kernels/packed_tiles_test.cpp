// Tiles of packed pages, for every codec of the table, every variant and every instruction set of
// this machine: equal to the codec's own decoding, bit for bit.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/worker/codec/codec_cases.hpp"
#include "worker/kernels/cpu_ops.hpp"

namespace kvsweep::kernels {
namespace {

using codec::Codec;
using codec::Variant;
using codec::testing::Layout;

class PackedTiles : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    ops_ = cpu_ops(GetParam());
    if (ops_ == nullptr) GTEST_SKIP() << "this processor lacks the instruction set";
  }
  const CpuOps* ops_ = nullptr;
  std::mt19937_64 rng_{7};
};

std::string isa_name(const ::testing::TestParamInfo<Isa>& param) {
  constexpr const char* kNames[] = {"baseline", "avx2", "avx512"};
  return kNames[static_cast<int>(param.param)];
}

INSTANTIATE_TEST_SUITE_P(Isa, PackedTiles, ::testing::Values(Isa::baseline, Isa::avx2, Isa::avx512),
                         isa_name);

bool same(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

// A tile of 64 or 128 tokens; word11 pages hold fewer, the rest of the tile is zero.
void compare(const CpuOps& ops, const Codec& codec, const Layout& l, int tile_tokens,
             const std::vector<uint8_t>& codes, const std::vector<uint8_t>& params) {
  SCOPED_TRACE(codec::testing::text(codec, l) + " on " + ops.name);
  const std::vector<float> expected = codec::testing::decode(codec, l, codes.data(), params.data());
  const PackedTile tile{codec.packed(l.variant),
                        l.channel,
                        l.group,
                        l.head_dim,
                        tile_tokens,
                        codes.data(),
                        params.data()};
  const int stride = padded_dim(l.head_dim);
  std::vector<float> keys(size_t(l.head_dim) * tile_tokens + 1, -7.0f);
  std::vector<float> values(size_t(stride) * tile_tokens + 1, -7.0f);
  ops.packed_keys(tile, keys.data());
  ops.packed_values(tile, values.data());
  EXPECT_EQ(keys.back(), -7.0f);
  EXPECT_EQ(values.back(), -7.0f);
  for (int t = 0; t < tile_tokens; ++t) {
    for (int d = 0; d < stride; ++d) {
      const bool held = t < l.tokens && d < l.head_dim;
      const float want = held ? expected[t * l.head_dim + d] : 0.0f;
      ASSERT_TRUE(same(values[t * stride + d], want))
          << t << " " << d << " " << values[t * stride + d] << " " << want;
      if (d >= l.head_dim) continue;
      ASSERT_TRUE(same(keys[d * tile_tokens + t], want))
          << t << " " << d << " " << keys[d * tile_tokens + t] << " " << want;
    }
  }
}

template <typename Use>
void for_each_layout(const Codec& codec, const std::vector<int>& head_dims, const Use& use) {
  for (const Variant& variant : codec::testing::variants(codec)) {
    for (int head_dim : head_dims) {
      for (int tokens : {64, 128}) {
        if (codec.encode_row != nullptr) {
          for (int group : codec::testing::row_groups(codec, head_dim)) {
            use(Layout{false, head_dim, group, tokens, variant}, tokens);
          }
        }
        if (codec.encode_block == nullptr) continue;
        for (int group : codec::testing::block_tokens(codec)) {
          if (group > tokens) continue;
          use(Layout{true, head_dim, group, tokens / group * group, variant}, tokens);
        }
      }
    }
  }
}

// Kernels fixed to one width decode another silently wrong: vLLM pull request 38479.
TEST_P(PackedTiles, EqualTheCodecOnEncodedRows) {
  std::normal_distribution<float> normal;
  for (const Codec& codec : codec::codecs()) {
    for_each_layout(codec, {8, 20, 64, 80, 96, 128, 256, 576}, [&](const Layout& l, int tokens) {
      std::vector<float> x(size_t(l.tokens) * l.head_dim);
      for (float& v : x) v = normal(rng_);
      std::vector<uint8_t> codes(codec::testing::code_bytes(codec, l));
      std::vector<uint8_t> params(codec::testing::param_bytes(codec, l));
      ASSERT_TRUE(codec::testing::encode(codec, l, x.data(), codes.data(), params.data()).ok());
      compare(*ops_, codec, l, tokens, codes, params);
    });
  }
}

// Bytes that no encoder writes decode the same way too: every code, NaN patterns and infinite or
// tiny parameters among them.
TEST_P(PackedTiles, EqualTheCodecOnArbitraryBytes) {
  for (const Codec& codec : codec::codecs()) {
    for_each_layout(codec, {64, 80, 96}, [&](const Layout& l, int tokens) {
      std::vector<uint8_t> codes(codec::testing::code_bytes(codec, l));
      std::vector<uint8_t> params(codec::testing::param_bytes(codec, l));
      for (uint8_t& b : codes) b = static_cast<uint8_t>(rng_());
      for (uint8_t& b : params) b = static_cast<uint8_t>(rng_());
      compare(*ops_, codec, l, tokens, codes, params);
    });
  }
}

// A page's parameters need no alignment.
TEST_P(PackedTiles, ParametersMayLieAnywhere) {
  for (const Codec& codec : codec::codecs()) {
    for_each_layout(codec, {64}, [&](const Layout& l, int tokens) {
      std::vector<uint8_t> codes(codec::testing::code_bytes(codec, l));
      std::vector<uint8_t> params(codec::testing::param_bytes(codec, l) + 1);
      for (uint8_t& b : codes) b = static_cast<uint8_t>(rng_());
      for (uint8_t& b : params) b = static_cast<uint8_t>(rng_() % 60);
      PackedTile tile{codec.packed(l.variant), l.channel, l.group, l.head_dim, tokens, codes.data(),
                      params.data() + 1};
      std::vector<float> keys(size_t(l.head_dim) * tokens), again(keys.size());
      ops_->packed_keys(tile, keys.data());
      const std::vector<uint8_t> aligned(params.begin() + 1, params.end());
      tile.params = aligned.data();
      ops_->packed_keys(tile, again.data());
      for (size_t i = 0; i < keys.size(); ++i) ASSERT_TRUE(same(keys[i], again[i])) << i;
    });
  }
}

}  // namespace
}  // namespace kvsweep::kernels
