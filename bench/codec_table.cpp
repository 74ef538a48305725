// kvsweep_bench_codec_table: every codec x group x effective bits x bytes x RMS error, as the table
// of docs/codecs.md. Heads of 128; 2816 tokens of Gaussian values of deviation 1, once around 0 and
// once around 32. Deterministic. Before a row is printed, its tiles are compared with the codec's
// own decoding on the instruction set in use.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
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

constexpr int kHeadDim = 128;
constexpr int kTokens = 2816;  // a multiple of 128 and of 11
constexpr int kTile = 128;

struct Encoded {
  std::vector<uint8_t> codes;
  std::vector<uint8_t> params;
  std::vector<float> values;
};

Encoded encode(const Codec& codec, const Layout& l, const std::vector<float>& x) {
  Encoded e;
  e.codes.resize(codec::testing::code_bytes(codec, l));
  e.params.resize(codec::testing::param_bytes(codec, l));
  if (!codec::testing::encode(codec, l, x.data(), e.codes.data(), e.params.data()).ok()) {
    fail(codec::testing::text(codec, l) + " refuses the values");
  }
  e.values = codec::testing::decode(codec, l, e.codes.data(), e.params.data());
  return e;
}

// The first page of the attention loops holds what the codec decodes.
void check_tile(const Codec& codec, const Layout& l, const Encoded& e) {
  const kernels::PackedTile tile{codec.packed(l.variant), l.channel,      l.group, kHeadDim, kTile,
                                 e.codes.data(),          e.params.data()};
  std::vector<float> keys(size_t(kHeadDim) * kTile);
  kernels::cpu_ops().packed_keys(tile, keys.data());
  const int held = kTile / codec.row_tokens() * codec.row_tokens();
  for (int t = 0; t < held; ++t) {
    for (int d = 0; d < kHeadDim; ++d) {
      if (std::bit_cast<uint32_t>(keys[d * kTile + t]) !=
          std::bit_cast<uint32_t>(e.values[t * kHeadDim + d])) {
        fail(codec::testing::text(codec, l) + ": tile and codec differ");
      }
    }
  }
}

double rms(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (double(a[i]) - b[i]) * (double(a[i]) - b[i]);
  return std::sqrt(sum / double(a.size()));
}

// The constant that calibration would find: the largest magnitude just fits.
float constant_for(const Codec& codec, const std::vector<float>& x) {
  float largest = 0;
  for (float v : x) largest = std::max(largest, std::fabs(v));
  if (codec.name == "nvfp4") return largest / (6.0f * 448.0f);
  return largest / (codec.name == "fp8_e5m2" ? 57344.0f : 448.0f);
}

std::string variant_name(const Codec& codec, const Variant& variant) {
  if (variant.symmetric) return "symmetric";
  if (!variant.calibrated) return "";
  return codec.name == "nvfp4" ? "tensor scale" : "calibrated";
}

void print_row(const Codec& codec, Layout l, const std::vector<std::vector<float>>& data) {
  std::string errors;
  double bytes = 0;
  for (const std::vector<float>& x : data) {
    if (l.variant.calibrated) l.variant.constant = constant_for(codec, x);
    const Encoded e = encode(codec, l, x);
    check_tile(codec, l, e);
    bytes = double(e.codes.size() + e.params.size()) / kTokens;
    errors += fmt::format(" {:.3g} |", rms(e.values, x));
  }
  fmt::print("| {} | {} | {} | {} | {} | {:.4g} | {:.4g} |{}\n", codec.name,
             variant_name(codec, l.variant), l.channel ? "channel" : "token", l.group, codec.bits,
             bytes * 8 / kHeadDim, bytes, errors);
}

std::vector<float> gaussian(float mean) {
  Rng rng(20261130, "codec_table");
  std::vector<float> x(size_t(kTokens) * kHeadDim);
  for (float& v : x) {
    // Box and Muller, Annals of Mathematical Statistics 29 (1958) 610.
    const double radius = std::sqrt(-2 * std::log(1 - rng.uniform()));
    v = static_cast<float>(mean + radius * std::cos(6.283185307179586 * rng.uniform()));
  }
  return x;
}

int run() {
  const std::vector<std::vector<float>> data = {gaussian(0), gaussian(32)};
  fmt::print(
      "| codec | variant | axis | group | code bits | effective bits | bytes per token and head of "
      "128 | RMS error, mean 0 | RMS error, mean 32 |\n|-|-|-|-|-|-|-|-|-|\n");
  for (const Codec& codec : codec::codecs()) {
    for (const Variant& variant : codec::testing::variants(codec)) {
      // On these data the channel axis has the bytes and errors of the token axis; a calibrated
      // fp8 scale belongs to the whole side.
      const bool channel = codec.encode_row == nullptr;
      const bool whole = variant.calibrated && codec.fixed_group == 0;
      const std::vector<int> groups = channel ? codec::testing::block_tokens(codec)
                                      : whole ? std::vector<int>{kHeadDim}
                                              : codec::testing::row_groups(codec, kHeadDim);
      for (int group : groups) {
        print_row(codec, {channel, kHeadDim, group, kTokens, variant}, data);
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace kvsweep::bench

int main() {
  return kvsweep::bench::run();
}
