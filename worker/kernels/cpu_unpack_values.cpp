// Packed pages to value tiles [tokens][padded_dim], row by row.
#include "worker/kernels/cpu_codes.hpp"
#include "worker/kernels/cpu_tiles.hpp"

namespace kvsweep::kernels::KVSWEEP_ISA {
namespace {

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

// `out` has room for whole vectors: count rounded up to kVectorBytes * 8 / Bits.
template <int Bits>
inline void spread(const uint8_t* codes, int count, uint8_t* out) {
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

constexpr int kColumns = 128;  // channels of a value tile decoded at once
constexpr int kRun = 16;       // elements per loop of constant length: rows are short

// The rows of channels begin .. begin + count of a tile on their way to values, in two steps: the
// constructor does what needs no parameters, `finish` the rest for a run of channels of one token.
// `scale` and `min` are one number for all, or one per element.
//
// Integers: codes are spread to one per byte (8-bit codes stay where they are), then decoded.
template <typename Codes, bool kFloating = kFloats<Codes>>
struct Rows {
  static constexpr int kBits = Codes::kBits;
  alignas(64) uint8_t bytes[kMaxTileTokens * kColumns];
  const uint8_t* first = bytes;
  int64_t stride = kColumns;

  Rows(const PackedTile& tile, int begin, int count, float*) {
    const int64_t row_bytes = kernels::row_bytes(tile.format.code, tile.head_dim);
    const uint8_t* codes = tile.codes + begin * kBits / 8;
    if constexpr (kBits == 8) {
      first = codes;
      stride = row_bytes;
    } else {
      for (int t = 0; t < tile.tokens; ++t) {
        spread<kBits>(codes + t * row_bytes, count, bytes + t * kColumns);
      }
    }
  }

  template <typename Parameter>
  void finish(int token, int channel, Parameter scale, Parameter min, int count, float* out) const {
    const uint8_t* codes = first + token * stride + channel;
    int j = 0;
    for (; j + kRun <= count; j += kRun) {
      for (int i = j; i < j + kRun; ++i) out[i] = static_cast<float>(codes[i]) * scale[i] + min[i];
    }
    for (; j < count; ++j) out[j] = static_cast<float>(codes[j]) * scale[j] + min[j];
  }
};

// Floats: the values of the codes are written into the tile, then scaled in place.
template <typename Codes>
struct Rows<Codes, true> {
  Rows(const PackedTile& tile, int begin, int count, float* values) {
    const int64_t row_bytes = kernels::row_bytes(tile.format.code, tile.head_dim);
    const uint8_t* codes = tile.codes + begin * Codes::kBits / 8;
    for (int t = 0; t < tile.tokens; ++t) {
      float* out = values + int64_t{t} * padded_dim(tile.head_dim) + begin;
      convert(codes + t * row_bytes, count, out);
    }
  }

  static void convert(const uint8_t* codes, int count, float* out) {
    alignas(64) uint16_t halves[kColumns];
    if constexpr (Codes::kBits == 8) {
      for (int i = 0; i < count; ++i) halves[i] = Codes::half(codes[i]);
    } else {
      alignas(64) uint8_t bytes[kColumns];
      spread<Codes::kBits>(codes, count, bytes);
      for (int i = 0; i < count; ++i) halves[i] = Codes::half(bytes[i]);
    }
    widen_halves(halves, count, out);
  }

  template <typename Parameter>
  void finish(int, int, Parameter scale, Parameter, int count, float* out) const {
    for (int i = 0; i < count; ++i) out[i] = (out[i] * Codes::kFactor) * scale[i];
  }
};

// Three bits: eight codes are one word, shifted by as many distances; written into the tile as
// floats, then scaled in place. A row's bytes are padded to three words.
template <>
struct Rows<Integers<3>, false> {
  typedef uint32_t Words __attribute__((vector_size(32)));
  typedef int32_t Signed __attribute__((vector_size(32)));
  typedef float Floats __attribute__((vector_size(32)));

  Rows(const PackedTile& tile, int begin, int count, float* values) {
    const int64_t row_bytes = kernels::row_bytes(tile.format.code, tile.head_dim);
    const uint8_t* codes = tile.codes + begin * 3 / 8;
    for (int t = 0; t < tile.tokens; ++t) {
      float* out = values + int64_t{t} * padded_dim(tile.head_dim) + begin;
      for (int c = 0; c < count; c += 32) {
        convert(codes + t * row_bytes + c / 8 * 3, count - c, out + c);
      }
    }
  }

  // 32 codes, or as many eights as begin before `left`: a row of the tile has room for these.
  static void convert(const uint8_t* codes, int left, float* out) {
    uint32_t w[3];
    __builtin_memcpy(w, codes, sizeof(w));
    put(w[0], out);
    if (left > 8) put(w[0] >> 24 | w[1] << 8, out + 8);
    if (left > 16) put(w[1] >> 16 | w[2] << 16, out + 16);
    if (left > 24) put(w[2] >> 8, out + 24);
  }

  static void put(uint32_t word, float* out) {
    const Words codes = (Words{} + word) >> Words{0, 3, 6, 9, 12, 15, 18, 21} & 7u;
    const Floats values = __builtin_convertvector((Signed)codes, Floats);
    __builtin_memcpy(out, &values, sizeof(values));
  }

  template <typename Parameter>
  void finish(int, int, Parameter scale, Parameter min, int count, float* out) const {
    for (int i = 0; i < count; ++i) out[i] = out[i] * scale[i] + min[i];
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
    const Rows<Codes> rows(tile, begin, end - begin, values);
    int next = 0;  // channel where the next group begins
    for (int c = begin; c < end; c = next) {
      const int group = c / tile.group;
      next = smaller((group + 1) * tile.group, end);
      params.load(group, groups, tile.tokens);
      for (int t = 0; t < tile.tokens; ++t) {
        rows.finish(t, c - begin, Same{params.scale[t]}, Same{params.min[t]}, next - c,
                    values + int64_t{t} * stride + c);
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
    const Rows<Codes> rows(tile, begin, count, values);
    for (int t = 0; t < tile.tokens; ++t) {
      if (t % tile.group == 0) {
        params.load(int64_t{t / tile.group} * tile.head_dim + begin, 1, count);
      }
      rows.template finish<const float*>(t, 0, params.scale, params.min, count,
                                         values + int64_t{t} * stride + begin);
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
