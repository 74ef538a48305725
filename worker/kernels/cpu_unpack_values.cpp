// Packed pages to value tiles [tokens][padded_dim]: codes are spread to one per byte, then decoded
// over the channels.
#include "worker/kernels/cpu_codes.hpp"
#include "worker/kernels/cpu_tiles.hpp"

namespace kvsweep::kernels::KVSWEEP_ISA {
namespace {

constexpr int kRun = 16;  // elements decoded per loop of constant length: rows are short

template <typename Codes, typename Parameter>
inline void decode_row(const uint8_t* codes, Parameter scale, Parameter min, int count,
                       float* out) {
  int j = 0;
  for (; j + kRun <= count; j += kRun) {
    for (int i = j; i < j + kRun; ++i) out[i] = Codes::value(codes[i], scale[i], min[i]);
  }
  for (; j < count; ++j) out[j] = Codes::value(codes[j], scale[j], min[j]);
}

typedef uint8_t Bytes __attribute__((vector_size(kVectorBytes)));

// Byte-wise codes >> shift, masked; x86 shifts words, not bytes.
inline Bytes plane(const Bytes& codes, int shift, uint8_t mask) {
  typedef uint16_t Words __attribute__((vector_size(kVectorBytes)));
  return (Bytes)((Words)codes >> shift) & mask;
}

// kVectorBytes stored bytes -> their codes in order, one per byte. Four 2-bit planes a b c d
// interleave as (a c) with (b d).
template <int Bits>
inline void spread_vector(const Bytes& codes, uint8_t* out) {
  constexpr int kCount = 8 / Bits;
  Bytes all[kCount];
  if constexpr (Bits == 4) {
    interleave(plane(codes, 0, 15), plane(codes, 4, 15), &all[0], &all[1]);
  } else {
    Bytes even[2];
    Bytes odd[2];
    interleave(plane(codes, 0, 3), plane(codes, 4, 3), &even[0], &even[1]);
    interleave(plane(codes, 2, 3), plane(codes, 6, 3), &odd[0], &odd[1]);
    interleave(even[0], odd[0], &all[0], &all[1]);
    interleave(even[1], odd[1], &all[2], &all[3]);
  }
  // Vector by vector: one wider copy would wait for the narrower stores it reads.
  for (int i = 0; i < kCount; ++i) __builtin_memcpy(out + i * kVectorBytes, &all[i], kVectorBytes);
}

// Three stored bytes -> eight codes, one per byte.
inline void spread_three(const uint8_t* codes, uint8_t* out) {
  const uint32_t word =
      codes[0] | static_cast<uint32_t>(codes[1]) << 8 | static_cast<uint32_t>(codes[2]) << 16;
  for (int i = 0; i < 8; ++i) out[i] = static_cast<uint8_t>(word >> (3 * i) & 7u);
}

// `out` has room for whole vectors: count rounded up to kVectorBytes * 8 / Bits (3 bits: to 8).
template <int Bits>
inline void spread(const uint8_t* codes, int count, uint8_t* out) {
  if constexpr (Bits == 3) {
    for (int c = 0; c < count; c += 8) spread_three(codes + c / 8 * 3, out + c);
  } else {
    constexpr int kPerVector = kVectorBytes * 8 / Bits;
    for (int c = 0; c < count; c += kPerVector) {
      const int left = (count - c) * Bits / 8;
      Bytes vector = Bytes{};
      if (left >= kVectorBytes) {
        __builtin_memcpy(&vector, codes + c * Bits / 8, kVectorBytes);
      } else {
        __builtin_memcpy(&vector, codes + c * Bits / 8, static_cast<size_t>(left));
      }
      spread_vector<Bits>(vector, out + c);
    }
  }
}

constexpr int kColumns = 128;  // channels of a value tile decoded at once

// Codes of channels begin .. begin + count of all tokens, one per byte. 8-bit codes stay where they
// are.
template <int Bits>
struct SpreadCodes {
  alignas(64) uint8_t bytes[kMaxTileTokens * kColumns];
  const uint8_t* first = bytes;
  int64_t stride = kColumns;

  SpreadCodes(const PackedTile& tile, int begin, int count) {
    const int64_t row_bytes = kernels::row_bytes(tile.format.code, tile.head_dim);
    const uint8_t* codes = tile.codes + begin * Bits / 8;
    if constexpr (Bits == 8) {
      first = codes;
      stride = row_bytes;
    } else {
      for (int t = 0; t < tile.tokens; ++t) {
        spread<Bits>(codes + t * row_bytes, count, bytes + t * kColumns);
      }
    }
  }
};

inline int smaller(int a, int b) {
  return a < b ? a : b;
}

template <typename Codes>
void values_by_token(const PackedTile& tile, float* values) {
  const int groups = (tile.head_dim + tile.group - 1) / tile.group;
  const int stride = padded_dim(tile.head_dim);
  Parameters params(tile, Codes::kBits);
  for (int begin = 0; begin < tile.head_dim; begin += kColumns) {
    const int end = smaller(begin + kColumns, tile.head_dim);
    const SpreadCodes<Codes::kBits> codes(tile, begin, end - begin);
    int next = 0;  // channel where the next group begins
    for (int c = begin; c < end; c = next) {
      const int group = c / tile.group;
      next = smaller((group + 1) * tile.group, end);
      params.load(group, groups, tile.tokens);
      for (int t = 0; t < tile.tokens; ++t) {
        decode_row<Codes>(codes.first + t * codes.stride + (c - begin), Same{params.scale[t]},
                          Same{params.min[t]}, next - c, values + int64_t{t} * stride + c);
      }
    }
  }
}

template <typename Codes>
void values_by_channel(const PackedTile& tile, float* values) {
  const int stride = padded_dim(tile.head_dim);
  Parameters params(tile, Codes::kBits);
  for (int begin = 0; begin < tile.head_dim; begin += kColumns) {
    const int count = smaller(kColumns, tile.head_dim - begin);
    const SpreadCodes<Codes::kBits> codes(tile, begin, count);
    for (int t = 0; t < tile.tokens; ++t) {
      if (t % tile.group == 0) {
        params.load(int64_t{t / tile.group} * tile.head_dim + begin, 1, count);
      }
      decode_row<Codes, const float*>(codes.first + t * codes.stride, params.scale, params.min,
                                      count, values + int64_t{t} * stride + begin);
    }
  }
}

}  // namespace

void fast_values(const PackedTile& tile, float* values) {
  with_codes(tile.format.code, [&](auto codes) {
    using Codes = decltype(codes);
    tile.channel_axis ? values_by_channel<Codes>(tile, values)
                      : values_by_token<Codes>(tile, values);
  });
}

}  // namespace kvsweep::kernels::KVSWEEP_ISA
