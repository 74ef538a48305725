// kvsweep_bench_codec_speed: ns per element of encoding and of decoding into key and value tiles,
// for every codec, variant, axis and instruction set, as CSV. Heads of 128, pages of 64 tokens out
// of the nearer caches, one thread. Tiles are compared with the codec's decoding before they are
// timed.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/must.hpp"
#include "core/rng.hpp"
#include "tests/worker/codec/codec_cases.hpp"
#include "worker/codec/codec.hpp"
#include "worker/kernels/cpu_ops.hpp"

namespace kvsweep::bench {
namespace {

using codec::Codec;
using codec::Variant;
using codec::testing::Layout;
using kernels::CpuOps;
using kernels::Isa;
using kernels::PackedTile;

constexpr int kHeadDim = 128;
constexpr int kTokens = 64;

// Nanoseconds of one call, the best of many.
template <typename Call>
double best_of(const Call& call) {
  constexpr int kCalls = 10;
  double best = 1e30;
  for (int repetition = 0; repetition < 200; ++repetition) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) call();
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
    best = std::min(best, spent.count() / kCalls);
  }
  return best;
}

struct Page {
  std::vector<uint8_t> codes;
  std::vector<uint8_t> params;
  std::vector<float> decoded;
  double encode_ns = 0;  // per element
};

Page make_page(const Codec& codec, const Layout& l, const std::vector<float>& x) {
  Page page;
  page.codes.resize(codec::testing::code_bytes(codec, l));
  page.params.resize(codec::testing::param_bytes(codec, l));
  const auto encode = [&] {
    return codec::testing::encode(codec, l, x.data(), page.codes.data(), page.params.data());
  };
  if (!encode().ok()) fail(codec::testing::text(codec, l) + " refuses the values");
  page.decoded = codec::testing::decode(codec, l, page.codes.data(), page.params.data());
  page.encode_ns = best_of(encode) / (double(l.tokens) * kHeadDim);
  return page;
}

// Both tiles hold what the codec decodes.
void check(const Layout& l, const Page& page, const std::vector<float>& keys,
           const std::vector<float>& values, const std::string& name) {
  for (int t = 0; t < l.tokens; ++t) {
    for (int d = 0; d < kHeadDim; ++d) {
      const auto want = std::bit_cast<uint32_t>(page.decoded[t * kHeadDim + d]);
      if (std::bit_cast<uint32_t>(keys[d * kTokens + t]) != want ||
          std::bit_cast<uint32_t>(values[t * kHeadDim + d]) != want) {
        fail(name + ": tile and codec differ");
      }
    }
  }
}

void measure(const Codec& codec, const Layout& l, const std::vector<float>& x) {
  const Page page = make_page(codec, l, x);
  std::vector<float> keys(size_t(kHeadDim) * kTokens), values(keys.size());
  for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    const CpuOps* ops = kernels::cpu_ops(isa);
    if (ops == nullptr) continue;
    const PackedTile tile{codec.packed(l.variant), l.channel,         l.group, kHeadDim, kTokens,
                          page.codes.data(),       page.params.data()};
    ops->packed_keys(tile, keys.data());
    ops->packed_values(tile, values.data());
    check(l, page, keys, values, codec::testing::text(codec, l));
    const double elements = double(kTokens) * kHeadDim;
    const double key_ns = best_of([&] { ops->packed_keys(tile, keys.data()); }) / elements;
    const double value_ns = best_of([&] { ops->packed_values(tile, values.data()); }) / elements;
    fmt::print("{},{},{},{},{},{:.2f},{:.3f},{:.3f}\n", codec.name,
               l.variant.symmetric    ? "symmetric"
               : l.variant.calibrated ? "calibrated"
                                      : "plain",
               l.channel ? "channel" : "token", l.group, ops->name, page.encode_ns, key_ns,
               value_ns);
  }
}

int run() {
  Rng rng(5, "codec_speed");
  std::vector<float> x(size_t(kTokens) * kHeadDim);
  for (float& v : x) v = static_cast<float>(rng.uniform() * 4 - 2);
  fmt::print("# {}; ns per element, heads of {}, pages of {} tokens, one thread\n", processor(),
             kHeadDim, kTokens);
  fmt::print("codec,variant,axis,group,isa,encode_ns,keys_ns,values_ns\n");
  for (const Codec& codec : codec::codecs()) {
    const int fixed = codec.fixed_group;
    for (const Variant& variant : codec::testing::variants(codec)) {
      if (codec.encode_row != nullptr) {
        measure(codec, {false, kHeadDim, fixed > 0 ? fixed : 64, kTokens, variant}, x);
      }
      if (codec.encode_block == nullptr) continue;
      const int group = fixed > 0 ? fixed : 32;
      measure(codec, {true, kHeadDim, group, kTokens / group * group, variant}, x);
    }
  }
  return 0;
}

}  // namespace
}  // namespace kvsweep::bench

int main() {
  return kvsweep::bench::run();
}
