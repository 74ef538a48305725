// What tests over the table of codecs loop over, and rows and blocks that lie one after the other
// as in a page.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "worker/codec/codec.hpp"

namespace kvsweep::codec::testing {

inline std::vector<Variant> variants(const Codec& codec) {
  std::vector<Variant> all;
  for (const Variant& v :
       {Variant{}, Variant{.symmetric = true}, Variant{.calibrated = true, .constant = 0.0371f}}) {
    if (codec.supports(v)) all.push_back(v);
  }
  return all;
}

// Groups along a row, or lengths of a block.
inline std::vector<int> row_groups(const Codec& codec, int head_dim) {
  if (codec.fixed_group > 0) return {std::min(codec.fixed_group, head_dim)};
  std::vector<int> groups;
  for (int group : {32, 64, 128}) {
    if (group < head_dim) groups.push_back(group);
  }
  groups.push_back(head_dim);
  return groups;
}
inline std::vector<int> block_tokens(const Codec& codec) {
  if (codec.fixed_group > 0) return {codec.fixed_group};
  return {32, 64, 128};
}

struct Layout {
  bool channel = false;
  int head_dim = 0;
  int group = 0;   // along the row, or tokens of a block
  int tokens = 0;  // channel: a multiple of group
  Variant variant;
};

inline std::string text(const Codec& codec, const Layout& l) {
  return std::string(codec.name) + (l.variant.symmetric ? " symmetric" : "") +
         (l.variant.calibrated ? " calibrated" : "") + (l.channel ? " channel" : " token") +
         " head_dim " + std::to_string(l.head_dim) + " group " + std::to_string(l.group) +
         " tokens " + std::to_string(l.tokens);
}

inline int64_t code_bytes(const Codec& codec, const Layout& l) {
  return l.tokens / codec.row_tokens() * codec.row_bytes(l.head_dim);
}
inline int64_t param_groups(const Layout& l) {
  return l.channel ? int64_t{l.tokens} / l.group * l.head_dim
                   : int64_t{l.tokens} * ((l.head_dim + l.group - 1) / l.group);
}
inline int64_t param_bytes(const Codec& codec, const Layout& l) {
  return param_groups(l) * codec.param_bytes(l.variant);
}

// Encodes (or decodes) every row or block of `values` [tokens][head_dim]; stops at a fault, whose
// token then counts from the first.
inline EncodeResult encode(const Codec& codec, const Layout& l, const float* values, uint8_t* codes,
                           uint8_t* params) {
  const int64_t row_bytes = codec.row_bytes(l.head_dim);
  const int step = l.channel ? l.group : 1;
  const int64_t param_step = param_groups(l) / (l.tokens / step) * codec.param_bytes(l.variant);
  for (int t = 0; t < l.tokens; t += step) {
    const float* x = values + int64_t{t} * l.head_dim;
    uint8_t* c = codes + t / codec.row_tokens() * row_bytes;
    uint8_t* p = params + t / step * param_step;
    EncodeResult result =
        l.channel ? codec.encode_block({l.head_dim, l.group, row_bytes, l.variant}, x, c, p)
                  : codec.encode_row({l.head_dim, l.group, l.variant}, x, c, p);
    if (result.ok()) continue;
    result.token += t;
    return result;
  }
  return {};
}

inline std::vector<float> decode(const Codec& codec, const Layout& l, const uint8_t* codes,
                                 const uint8_t* params) {
  std::vector<float> values(static_cast<size_t>(l.tokens) * l.head_dim);
  const int64_t row_bytes = codec.row_bytes(l.head_dim);
  const int step = l.channel ? l.group : 1;
  const int64_t param_step = param_groups(l) / (l.tokens / step) * codec.param_bytes(l.variant);
  for (int t = 0; t < l.tokens; t += step) {
    float* y = values.data() + int64_t{t} * l.head_dim;
    const uint8_t* c = codes + t / codec.row_tokens() * row_bytes;
    const uint8_t* p = params + t / step * param_step;
    if (l.channel) {
      codec.decode_block({l.head_dim, l.group, row_bytes, l.variant}, c, p, y);
    } else {
      codec.decode_row({l.head_dim, l.group, l.variant}, c, p, y);
    }
  }
  return values;
}

}  // namespace kvsweep::codec::testing
