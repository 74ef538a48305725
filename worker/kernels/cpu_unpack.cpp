// Pages to fp32 tiles. Compiled with -ffp-contract=off: value = code * scale + min in two rounded
// steps, as the codec decodes.
//
// Keys need a transposition. It is done on the stored bytes, before they are widened: 16-byte
// vectors, log2(lanes) rounds of interleaving row i with row i + lanes/2 (a perfect shuffle, which
// repeated log2(lanes) times is the transposition). Example with 2 lanes: {a b} {c d} -> {a c} {b
// d}.
#include "worker/kernels/cpu_isa.hpp"
#include "worker/kernels/cpu_tables.hpp"

namespace kvsweep::kernels::KVSWEEP_ISA {
namespace {

constexpr int kVectorBytes = 16;

template <typename T>
struct Lanes {
  static constexpr int kCount = kVectorBytes / static_cast<int>(sizeof(T));
  typedef T Vector __attribute__((vector_size(kVectorBytes)));
};

template <typename Vector>
inline void interleave(const Vector& a, const Vector& b, Vector* low, Vector* high) {
  if constexpr (sizeof(a[0]) == 1) {
    typedef uint8_t Index __attribute__((vector_size(16)));
    *low = __builtin_shuffle(a, b, Index{0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23});
    *high = __builtin_shuffle(a, b,
                              Index{8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31});
  } else if constexpr (sizeof(a[0]) == 2) {
    typedef uint16_t Index __attribute__((vector_size(16)));
    *low = __builtin_shuffle(a, b, Index{0, 8, 1, 9, 2, 10, 3, 11});
    *high = __builtin_shuffle(a, b, Index{4, 12, 5, 13, 6, 14, 7, 15});
  } else {
    typedef uint32_t Index __attribute__((vector_size(16)));
    *low = __builtin_shuffle(a, b, Index{0, 4, 1, 5});
    *high = __builtin_shuffle(a, b, Index{2, 6, 3, 7});
  }
}

// Rows of `stride` elements -> out[column][rows], for columns 0 .. columns - 1 and rows a multiple
// of the lanes.
template <typename T>
void transpose(const T* from, int64_t stride, int rows, int columns, T* out) {
  constexpr int kN = Lanes<T>::kCount;
  using Vector = typename Lanes<T>::Vector;
  for (int r = 0; r < rows; r += kN) {
    int c = 0;
    for (; c + kN <= columns; c += kN) {
      Vector a[kN];
      Vector b[kN];
      for (int i = 0; i < kN; ++i) {
        __builtin_memcpy(&a[i], from + (r + i) * stride + c, kVectorBytes);
      }
      for (int step = 1; step < kN; step *= 2) {
        for (int i = 0; i < kN / 2; ++i) interleave(a[i], a[i + kN / 2], &b[2 * i], &b[2 * i + 1]);
        __builtin_memcpy(a, b, sizeof(a));
      }
      for (int i = 0; i < kN; ++i) {
        __builtin_memcpy(out + int64_t{c + i} * rows + r, &a[i], kVectorBytes);
      }
    }
    for (; c < columns; ++c) {
      for (int i = 0; i < kN; ++i) out[int64_t{c} * rows + r + i] = from[(r + i) * stride + c];
    }
  }
}

constexpr int kStrip = 16;  // stored columns transposed at once: their tile fits on the stack

template <typename T>
void plain_keys_of(const PlainTile& tile, float* keys) {
  const T* rows = static_cast<const T*>(tile.rows);
  alignas(64) T strip[kStrip * kMaxTileTokens];
  for (int begin = 0; begin < tile.head_dim; begin += kStrip) {
    const int columns = tile.head_dim - begin < kStrip ? tile.head_dim - begin : kStrip;
    transpose<T>(rows + begin, tile.head_dim, tile.tokens, columns, strip);
    widen(tile.type, strip, int64_t{columns} * tile.tokens, keys + int64_t{begin} * tile.tokens);
  }
}

// Scale and offset of one run of tokens or channels, widened and taken apart.
struct Parameters {
  alignas(64) float scale[kMaxTileTokens];
  alignas(64) float min[kMaxTileTokens];
  bool symmetric;
  float middle;  // of the codes

  Parameters(const PackedFormat& format, int bits)
      : symmetric(format.params == ParamKind::half_scale),
        middle(static_cast<float>(1 << (bits - 1))) {}

  // Group i * stride of those that begin at `params`; count <= kMaxTileTokens.
  void load(const uint8_t* params, int64_t stride, int count) {
    if (symmetric) return load_scales(params, stride, count);
    alignas(64) uint16_t packed[2 * kMaxTileTokens];
    alignas(64) float wide[2 * kMaxTileTokens];
    for (int i = 0; i < count; ++i) __builtin_memcpy(packed + 2 * i, params + 4 * i * stride, 4);
    widen_halves(packed, 2 * count, wide);
    for (int i = 0; i < count; ++i) {
      scale[i] = wide[2 * i];
      min[i] = wide[2 * i + 1];
    }
  }

  // (code - middle) * scale is exact, and so is code * scale - middle * scale.
  void load_scales(const uint8_t* params, int64_t stride, int count) {
    alignas(64) uint16_t packed[kMaxTileTokens];
    for (int i = 0; i < count; ++i) __builtin_memcpy(packed + i, params + 2 * i * stride, 2);
    widen_halves(packed, count, scale);
    for (int i = 0; i < count; ++i) min[i] = -middle * scale[i];
  }
};

// One channel of the codes of a byte column: out[j] = code * scale + min, j over tokens. `scale`
// and `min` are one number for all, or one per element.
struct Same {
  float value;
  float operator[](int) const { return value; }
};

template <int Bits, typename Parameter>
inline void decode_column(const uint8_t* bytes, int shift, Parameter scale, Parameter min,
                          int count, float* out) {
  constexpr int kMask = (1 << Bits) - 1;
  for (int j = 0; j < count; ++j) {
    out[j] = static_cast<float>((bytes[j] >> shift) & kMask) * scale[j] + min[j];
  }
}

template <int Bits>
void packed_keys_of(const PackedTile& tile, float* keys) {
  constexpr int kPerByte = 8 / Bits;
  const int row_bytes = tile.head_dim / kPerByte;
  const int groups = (tile.head_dim + tile.group - 1) / tile.group;
  alignas(64) uint8_t strip[kStrip * kMaxTileTokens];
  Parameters params(tile.format, Bits);
  const int bytes_per_group = param_bytes(tile.format.params);
  int loaded = -1;  // token axis: the group whose parameters are in `params`
  for (int begin = 0; begin < row_bytes; begin += kStrip) {
    const int columns = row_bytes - begin < kStrip ? row_bytes - begin : kStrip;
    transpose<uint8_t>(tile.codes + begin, row_bytes, tile.tokens, columns, strip);
    const int channels = columns * kPerByte;
    const int first = begin * kPerByte;
    float* out = keys + int64_t{first} * tile.tokens;
    if (tile.channel_axis) {
      for (int t = 0; t < tile.tokens; t += tile.group) {
        const int64_t row = int64_t{t / tile.group} * tile.head_dim + first;
        params.load(tile.params + bytes_per_group * row, 1, channels);
        for (int c = 0; c < channels; ++c) {
          const uint8_t* bytes = strip + (c / kPerByte) * tile.tokens + t;
          decode_column<Bits>(bytes, (c % kPerByte) * Bits, Same{params.scale[c]},
                              Same{params.min[c]}, tile.group, out + int64_t{c} * tile.tokens + t);
        }
      }
      continue;
    }
    for (int c = 0; c < channels; ++c) {
      const int group = (first + c) / tile.group;
      if (group != loaded) params.load(tile.params + bytes_per_group * group, groups, tile.tokens);
      loaded = group;
      decode_column<Bits, const float*>(strip + (c / kPerByte) * tile.tokens, (c % kPerByte) * Bits,
                                        params.scale, params.min, tile.tokens,
                                        out + int64_t{c} * tile.tokens);
    }
  }
}

constexpr int kRun = 16;  // elements decoded per loop of constant length: rows are short

template <typename Parameter>
inline void decode_row(const uint8_t* codes, Parameter scale, Parameter min, int count,
                       float* out) {
  int j = 0;
  for (; j + kRun <= count; j += kRun) {
    for (int i = j; i < j + kRun; ++i) out[i] = static_cast<float>(codes[i]) * scale[i] + min[i];
  }
  for (; j < count; ++j) out[j] = static_cast<float>(codes[j]) * scale[j] + min[j];
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

// Codes of channels begin .. begin + count of all tokens, one per byte. 8-bit codes stay where they
// are.
template <int Bits>
struct SpreadCodes {
  alignas(64) uint8_t bytes[kMaxTileTokens * kColumns];
  const uint8_t* first = bytes;
  int64_t stride = kColumns;

  SpreadCodes(const PackedTile& tile, int begin, int count) {
    const int64_t row_bytes = int64_t{tile.head_dim} * Bits / 8;
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

template <int Bits>
void packed_values_by_token(const PackedTile& tile, float* values) {
  const int groups = (tile.head_dim + tile.group - 1) / tile.group;
  const int stride = padded_dim(tile.head_dim);
  Parameters params(tile.format, Bits);
  const int bytes_per_group = param_bytes(tile.format.params);
  for (int begin = 0; begin < tile.head_dim; begin += kColumns) {
    const int end = smaller(begin + kColumns, tile.head_dim);
    const SpreadCodes<Bits> codes(tile, begin, end - begin);
    int next = 0;  // channel where the next group begins
    for (int c = begin; c < end; c = next) {
      const int group = c / tile.group;
      next = smaller((group + 1) * tile.group, end);
      params.load(tile.params + bytes_per_group * group, groups, tile.tokens);
      for (int t = 0; t < tile.tokens; ++t) {
        decode_row(codes.first + t * codes.stride + (c - begin), Same{params.scale[t]},
                   Same{params.min[t]}, next - c, values + int64_t{t} * stride + c);
      }
    }
  }
}

template <int Bits>
void packed_values_by_channel(const PackedTile& tile, float* values) {
  const int stride = padded_dim(tile.head_dim);
  Parameters params(tile.format, Bits);
  const int bytes_per_group = param_bytes(tile.format.params);
  for (int begin = 0; begin < tile.head_dim; begin += kColumns) {
    const int count = smaller(kColumns, tile.head_dim - begin);
    const SpreadCodes<Bits> codes(tile, begin, count);
    for (int t = 0; t < tile.tokens; ++t) {
      if (t % tile.group == 0) {
        const int64_t row = int64_t{t / tile.group} * tile.head_dim + begin;
        params.load(tile.params + bytes_per_group * row, 1, count);
      }
      decode_row<const float*>(codes.first + t * codes.stride, params.scale, params.min, count,
                               values + int64_t{t} * stride + begin);
    }
  }
}

void clear_padding(int head_dim, int tokens, float* values) {
  const int stride = padded_dim(head_dim);
  for (int t = 0; t < tokens; ++t) {
    for (int d = head_dim; d < stride; ++d) values[int64_t{t} * stride + d] = 0;
  }
}

}  // namespace

void plain_keys(const PlainTile& tile, float* keys) {
  if (tile.type == Element::fp32) return plain_keys_of<uint32_t>(tile, keys);
  plain_keys_of<uint16_t>(tile, keys);
}

void plain_values(const PlainTile& tile, float* values) {
  const int64_t row_bytes = tile.head_dim * element_bytes(tile.type);
  for (int t = 0; t < tile.tokens; ++t) {
    widen(tile.type, static_cast<const uint8_t*>(tile.rows) + t * row_bytes, tile.head_dim,
          values + int64_t{t} * padded_dim(tile.head_dim));
  }
  clear_padding(tile.head_dim, tile.tokens, values);
}

void packed_keys(const PackedTile& tile, float* keys) {
  if (tile.format.code == CodeKind::uint8) return packed_keys_of<8>(tile, keys);
  if (tile.format.code == CodeKind::uint4) return packed_keys_of<4>(tile, keys);
  packed_keys_of<2>(tile, keys);
}

void packed_values(const PackedTile& tile, float* values) {
  const bool channel = tile.channel_axis;
  if (tile.format.code == CodeKind::uint8) {
    channel ? packed_values_by_channel<8>(tile, values) : packed_values_by_token<8>(tile, values);
  } else if (tile.format.code == CodeKind::uint4) {
    channel ? packed_values_by_channel<4>(tile, values) : packed_values_by_token<4>(tile, values);
  } else {
    channel ? packed_values_by_channel<2>(tile, values) : packed_values_by_token<2>(tile, values);
  }
  clear_padding(tile.head_dim, tile.tokens, values);
}

}  // namespace kvsweep::kernels::KVSWEEP_ISA
