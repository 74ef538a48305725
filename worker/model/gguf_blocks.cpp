#include "worker/model/gguf_blocks.hpp"

#include <cstring>

#include "worker/codec/half.hpp"

namespace kvsweep::model {
namespace {

template <typename T>
T load(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

float half_at(const uint8_t* at) {
  return codec::half_to_float(load<uint16_t>(at));
}

constexpr int kSmall = 32;  // elements of Q4_0 ... Q8_0
constexpr int kSub = 32;    // elements of Q4_K and Q5_K that share a pair
constexpr int kPairBytes = 12;

// One block each, from `in` into out [block].
void f32_block(const uint8_t* in, float* out) {
  *out = load<float>(in);
}
void f16_block(const uint8_t* in, float* out) {
  *out = half_at(in);
}
void bf16_block(const uint8_t* in, float* out) {
  *out = codec::bf16_to_float(load<uint16_t>(in));
}

void q4_0_block(const uint8_t* in, float* out) {
  const float d = half_at(in);
  const uint8_t* nibbles = in + 2;
  for (int i = 0; i < kSmall / 2; ++i) {
    out[i] = d * static_cast<float>((nibbles[i] & 15) - 8);
    out[i + 16] = d * static_cast<float>((nibbles[i] >> 4) - 8);
  }
}

void q4_1_block(const uint8_t* in, float* out) {
  const float d = half_at(in);
  const float m = half_at(in + 2);
  const uint8_t* nibbles = in + 4;
  for (int i = 0; i < kSmall / 2; ++i) {
    out[i] = d * static_cast<float>(nibbles[i] & 15) + m;
    out[i + 16] = d * static_cast<float>(nibbles[i] >> 4) + m;
  }
}

// The 5-bit codes of Q5_0 and Q5_1.
void five_bits(const uint8_t* high, const uint8_t* nibbles, int* codes) {
  const uint32_t bits = load<uint32_t>(high);
  for (int i = 0; i < kSmall / 2; ++i) {
    codes[i] = (nibbles[i] & 15) | static_cast<int>((bits >> i) & 1u) << 4;
    codes[i + 16] = (nibbles[i] >> 4) | static_cast<int>((bits >> (i + 16)) & 1u) << 4;
  }
}

void q5_0_block(const uint8_t* in, float* out) {
  const float d = half_at(in);
  int codes[kSmall];
  five_bits(in + 2, in + 6, codes);
  for (int i = 0; i < kSmall; ++i) out[i] = d * static_cast<float>(codes[i] - 16);
}

void q5_1_block(const uint8_t* in, float* out) {
  const float d = half_at(in);
  const float m = half_at(in + 2);
  int codes[kSmall];
  five_bits(in + 4, in + 8, codes);
  for (int i = 0; i < kSmall; ++i) out[i] = d * static_cast<float>(codes[i]) + m;
}

void q8_0_block(const uint8_t* in, float* out) {
  const float d = half_at(in);
  for (int i = 0; i < kSmall; ++i) {
    out[i] = static_cast<float>(static_cast<int8_t>(in[2 + i])) * d;
  }
}

// Pair `index` of the 8 in 12 bytes: bytes 0-3 hold s of pairs 0-3 in their low six bits, bytes 4-7
// z; the low six bits of pairs 4-7 are a nibble of bytes 8-11 (s low, z high) under the two bits
// that are left above in bytes 0-7.
struct Pair {
  float scale;
  float offset;
};
Pair pair_at(const uint8_t* in, int index) {
  if (index < 4) {
    return {static_cast<float>(in[index] & 63), static_cast<float>(in[index + 4] & 63)};
  }
  const uint8_t low = in[index + 4];
  return {static_cast<float>((low & 15) | (in[index - 4] >> 6) << 4),
          static_cast<float>((low >> 4) | (in[index] >> 6) << 4)};
}

// Q4_K when `high` is null.
void k_block(const uint8_t* in, const uint8_t* high, const uint8_t* nibbles, float* out) {
  const float d = half_at(in);
  const float m = half_at(in + 2);
  for (int sub = 0; sub < 8; ++sub) {
    const Pair pair = pair_at(in + 4, sub);
    const float scale = d * pair.scale;
    const float offset = m * pair.offset;
    const uint8_t* bytes = nibbles + sub / 2 * kSub;
    for (int l = 0; l < kSub; ++l) {
      int code = sub % 2 == 0 ? bytes[l] & 15 : bytes[l] >> 4;
      if (high != nullptr) code |= ((high[l] >> sub) & 1) << 4;
      out[sub * kSub + l] = scale * static_cast<float>(code) - offset;
    }
  }
}

void q4_k_block(const uint8_t* in, float* out) {
  k_block(in, nullptr, in + 4 + kPairBytes, out);
}
void q5_k_block(const uint8_t* in, float* out) {
  const uint8_t* high = in + 4 + kPairBytes;
  k_block(in, high, high + 32, out);
}

void q6_k_block(const uint8_t* in, float* out) {
  const uint8_t* scales = in + 192;
  const float d = half_at(in + 208);
  float scaled[16];
  for (int i = 0; i < 16; ++i) {
    scaled[i] = d * static_cast<float>(static_cast<int8_t>(scales[i]));
  }
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128;  // with 64 bytes of nibbles, 32 of high bits
    const int quarter = i % 128 / 32;
    const uint8_t nibbles = in[half * 64 + i % 64];
    const uint8_t high = in[128 + half * 32 + i % 32];
    const int low = quarter < 2 ? nibbles & 15 : nibbles >> 4;
    const int code = low | ((high >> (2 * quarter)) & 3) << 4;
    out[i] = scaled[i / 16] * static_cast<float>(code - 32);
  }
}

template <void (*Block)(const uint8_t*, float*)>
void all(const uint8_t* in, int64_t blocks, const GgmlTypeInfo& type, float* out) {
  for (int64_t i = 0; i < blocks; ++i) {
    Block(in + i * type.block_bytes, out + i * type.block_elements);
  }
}

}  // namespace

void dequantize(GgmlType type, const uint8_t* in, int64_t elements, float* out) {
  const GgmlTypeInfo& about = info(type);
  const int64_t blocks = elements / about.block_elements;
  switch (type) {
    case GgmlType::f32:
      return all<f32_block>(in, blocks, about, out);
    case GgmlType::f16:
      return all<f16_block>(in, blocks, about, out);
    case GgmlType::bf16:
      return all<bf16_block>(in, blocks, about, out);
    case GgmlType::q4_0:
      return all<q4_0_block>(in, blocks, about, out);
    case GgmlType::q4_1:
      return all<q4_1_block>(in, blocks, about, out);
    case GgmlType::q5_0:
      return all<q5_0_block>(in, blocks, about, out);
    case GgmlType::q5_1:
      return all<q5_1_block>(in, blocks, about, out);
    case GgmlType::q8_0:
      return all<q8_0_block>(in, blocks, about, out);
    case GgmlType::q4_k:
      return all<q4_k_block>(in, blocks, about, out);
    case GgmlType::q5_k:
      return all<q5_k_block>(in, blocks, about, out);
    case GgmlType::q6_k:
      return all<q6_k_block>(in, blocks, about, out);
  }
}

}  // namespace kvsweep::model
