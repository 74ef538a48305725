#include "worker/kernels/int4_attention.hpp"

namespace kvsweep::kernels {
namespace {

std::string refuse(const char* name, int64_t value, const char* allowed) {
  return std::string("INT4 scores: ") + name + " is " + std::to_string(value) + "; it must be " +
         allowed + ".";
}

std::string check_shape(const Int4PageShape& shape) {
  if (shape.kv_heads < 1 || shape.kv_heads > 65535) {
    return refuse("kv_heads", shape.kv_heads, "1 to 65535");
  }
  if (shape.page_tokens < 1) return refuse("page_tokens", shape.page_tokens, "at least 1");
  if (shape.head_dim < 8 || shape.head_dim > 512 || shape.head_dim % 8 != 0) {
    return refuse("head_dim", shape.head_dim, "a multiple of 8 from 8 to 512");
  }
  const bool whole_head = shape.param_group == shape.head_dim;
  if (!whole_head &&
      (shape.param_group < 8 || shape.param_group > shape.head_dim || shape.param_group % 8 != 0)) {
    return refuse("param_group", shape.param_group, "a multiple of 8 up to head_dim");
  }
  const int64_t code_bytes = shape.row_bytes() * shape.page_tokens * shape.kv_heads;
  if (shape.params_offset < code_bytes || shape.params_offset % 4 != 0) {
    return refuse("params_offset", shape.params_offset, "a multiple of 4 behind the codes");
  }
  return "";
}

}  // namespace

int64_t Int4PageShape::page_bytes() const {
  return params_offset + int64_t{4} * params_per_row() * page_tokens * kv_heads;
}

std::string check_int4_scores(const Int4Scores& args) {
  if (std::string wrong = check_shape(args.shape); !wrong.empty()) return wrong;
  if (args.query_group < 1 || args.query_group > 64) {
    return refuse("query_group", args.query_group, "1 to 64");
  }
  constexpr int64_t kMaxTokens = int64_t{1} << 31;
  if (args.tokens < 0 || args.tokens > kMaxTokens) {
    return refuse("tokens", args.tokens, "0 to 2147483648");
  }
  return "";
}

}  // namespace kvsweep::kernels
