// How a simulated side codes: in floats, and all of its history where the scheme says so.
#include <cstring>

#include "worker/cache/side.hpp"
#include "worker/cache/simulated.hpp"

namespace kvsweep::cache {

// A coded token as its page has it, another as it came.
void Side::read_row(int64_t token, int head, float* row) const {
  if (token < coded_) {
    std::memcpy(row, code_row(token, head), static_cast<size_t>(layout_->row_bytes));
  } else {
    kernels::cpu_ops().widen(element_, exact_row(token, head), layout_->head_dim, row);
  }
}

Status Side::encode_simulated(int64_t from, int64_t to, std::vector<float>* wide) {
  if (from == to) return {};
  if (layout_->window.rule == WindowRule::recode) return encode_history(to, wide);
  const int head_dim = layout_->head_dim;
  const int step = layout_->format.group;
  wide->resize(static_cast<size_t>(step) * head_dim);
  for (int64_t token = from; token < to; token += step) {
    for (int head = 0; head < layout_->kv_heads; ++head) {
      for (int i = 0; i < step; ++i) {
        read_row(token + i, head, wide->data() + int64_t{i} * head_dim);
      }
      const codec::EncodeResult result = code_block(layout_->format, head_dim, wide->data());
      if (!result.ok()) return fault(result, token, head);
      for (int i = 0; i < step; ++i) {
        std::memcpy(code_row(token + i, head), wide->data() + int64_t{i} * head_dim,
                    static_cast<size_t>(layout_->row_bytes));
      }
    }
  }
  return {};
}

// The tokens before `to`, coded ones a second time.
Status Side::encode_history(int64_t to, std::vector<float>* wide) {
  const int heads = layout_->kv_heads;
  const int head_dim = layout_->head_dim;
  wide->resize(static_cast<size_t>(to * heads * head_dim));
  const auto row = [&](int64_t token, int head) {
    return wide->data() + (token * heads + head) * head_dim;
  };
  for (int64_t token = 0; token < to; ++token) {
    for (int head = 0; head < heads; ++head) read_row(token, head, row(token, head));
  }
  int head = 0;
  const codec::EncodeResult result =
      recode(layout_->format, {to, heads, head_dim}, wide->data(), &head);
  if (!result.ok()) return fault(result, 0, head);
  for (int64_t token = 0; token < to; ++token) {
    for (head = 0; head < heads; ++head) {
      std::memcpy(code_row(token, head), row(token, head), static_cast<size_t>(layout_->row_bytes));
    }
  }
  return {};
}

}  // namespace kvsweep::cache
