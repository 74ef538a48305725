#include "worker/cache/side.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

namespace kvsweep::cache {
namespace {

kernels::Element element_of(BaseType base) {
  switch (base) {
    case BaseType::fp32:
      return kernels::Element::fp32;
    case BaseType::fp16:
      return kernels::Element::fp16;
    case BaseType::bf16:
      break;
  }
  return kernels::Element::bf16;
}

const codec::Codec* codec_of(const Format& format) {
  if (!format.quantized()) return nullptr;
  const codec::Codec* codec = codec::find_codec(info(format.codec).name);
  if (codec == nullptr || format.symmetric) {
    throw std::logic_error("no encoder for format " + to_string(format));
  }
  return codec;
}

void check_layout(const SideLayout& layout) {
  const Format& format = layout.format;
  const bool tiles = layout.page_tokens % kernels::kTileMultiple == 0 &&
                     layout.page_tokens <= kernels::kMaxTileTokens;
  const bool groups = !format.quantized() || format.axis == Axis::token ||
                      (format.group > 0 && layout.page_tokens % format.group == 0 &&
                       layout.window.block % format.group == 0);
  if (!tiles || !groups) {
    throw std::logic_error("cache layout that the kernels cannot read: " + to_string(format) +
                           ", pages of " + std::to_string(layout.page_tokens) + " tokens");
  }
}

}  // namespace

Side::Side(const SideLayout& layout, BaseType base, int64_t exact_tokens, SideName name,
           const Memory& memory)
    : layout_(&layout),
      base_(base),
      element_(element_of(base)),
      codec_(codec_of(layout.format)),
      row_bytes_(int64_t{layout.head_dim} * bytes_of(base)),
      exact_tokens_(exact_tokens),
      name_(name),
      memory_(&memory) {
  check_layout(layout);
}

int64_t Side::view(int64_t position) const {
  if (codec_ == nullptr) return position + 1;
  if (position < exact_tokens_) return 0;
  return coded_tokens(layout_->window, position);
}

uint8_t* Side::page_memory(int64_t token) const {
  const auto block = static_cast<size_t>(token / layout_->page_tokens);
  if (block >= memory_->blocks.size()) return nullptr;
  return memory_->blocks[block] + layout_->block_offset;
}

const uint8_t* Side::page(int64_t token) const {
  return page_memory(token);
}

uint8_t* Side::code_row(int64_t token, int head) const {
  const int64_t row = int64_t{head} * layout_->page_tokens + token % layout_->page_tokens;
  return page_memory(token) + row * layout_->row_bytes;
}

uint8_t* Side::param_row(int64_t token, int head) const {
  const int64_t in_page = token % layout_->page_tokens;
  const int64_t row =
      layout_->format.axis == Axis::channel ? in_page / layout_->format.group : in_page;
  const int64_t pair = (int64_t{head} * layout_->param_rows + row) * layout_->params_per_row;
  return page_memory(token) + layout_->params_offset + codec_->param_bytes({}) * pair;
}

uint8_t* Side::ring_row(int64_t token, int head) const {
  const int64_t capacity = layout_->window.staging_tokens();
  const int64_t row = head * capacity + token % capacity;
  return memory_->staging + layout_->staging_offset + row * row_bytes_;
}

const uint8_t* Side::exact_row(int64_t token, int head) const {
  if (!scratch_.empty() && token >= scratch_begin_) {
    const int64_t row = (token - scratch_begin_) * layout_->kv_heads + head;
    return scratch_.data() + row * row_bytes_;
  }
  return ring_row(token, head);
}

Status Side::append(const float* rows, int64_t tokens, Work* work) {
  if (codec_ == nullptr) {
    KVSWEEP_TRY(append_to_pages(rows, tokens));
    coded_ = tokens_ + tokens;
  } else {
    KVSWEEP_TRY(append_to_scratch(rows, tokens, work));
    const int64_t to = coded_tokens(layout_->window, tokens_ + tokens - 1);
    KVSWEEP_TRY(encode(coded_, to, &work->wide));
    coded_ = to;
  }
  pending_ = tokens;
  return {};
}

Status Side::append_to_pages(const float* rows, int64_t tokens) {
  const kernels::CpuOps& ops = kernels::cpu_ops();
  bool finite = true;
  for (int64_t t = 0; t < tokens; ++t) {
    for (int head = 0; head < layout_->kv_heads; ++head) {
      const float* row = rows + (t * layout_->kv_heads + head) * layout_->head_dim;
      finite &= ops.narrow(element_, row, layout_->head_dim, code_row(tokens_ + t, head));
    }
  }
  if (!finite) return not_finite(rows, tokens_);
  return {};
}

Status Side::append_to_scratch(const float* rows, int64_t tokens, Work* work) {
  if (scratch_.empty()) {
    scratch_.swap(work->scratch);
    scratch_.clear();
    scratch_begin_ = tokens_;
  }
  const int64_t token_bytes = layout_->kv_heads * row_bytes_;
  const int64_t at = (tokens_ - scratch_begin_) * token_bytes;
  scratch_.resize(static_cast<size_t>(at + tokens * token_bytes));
  const int64_t count = tokens * layout_->kv_heads * layout_->head_dim;
  if (!kernels::cpu_ops().narrow(element_, rows, count, scratch_.data() + at)) {
    return not_finite(rows, tokens_);
  }
  return {};
}

// Tokens that are coded together: a whole group of the channel axis, or one.
int Side::token_group() const {
  return layout_->format.axis == Axis::channel ? layout_->format.group : 1;
}

Status Side::encode(int64_t from, int64_t to, std::vector<float>* wide) {
  const int step = token_group();
  for (int64_t token = from; token < to; token += step) {
    for (int head = 0; head < layout_->kv_heads; ++head) {
      KVSWEEP_TRY(encode_run(token, step, head, wide));
    }
  }
  return {};
}

Status Side::encode_run(int64_t token, int count, int head, std::vector<float>* wide) {
  const int head_dim = layout_->head_dim;
  wide->resize(static_cast<size_t>(count) * head_dim);
  for (int i = 0; i < count; ++i) {
    kernels::cpu_ops().widen(element_, exact_row(token + i, head), head_dim,
                             wide->data() + int64_t{i} * head_dim);
  }
  uint8_t* codes = code_row(token, head);
  uint8_t* params = param_row(token, head);
  codec::EncodeResult result;
  if (layout_->format.axis == Axis::channel) {
    const codec::BlockShape shape{head_dim, count, layout_->row_bytes};
    result = codec_->encode_block(shape, wide->data(), codes, params);
  } else {
    const int group = layout_->format.group;
    const codec::RowShape shape{head_dim, group == 0 ? head_dim : std::min(group, head_dim)};
    result = codec_->encode_row(shape, wide->data(), codes, params);
  }
  if (!result.ok()) return fault(result, token, head);
  return {};
}

void Side::end_chunk(Work* work) {
  const int64_t end = tokens_ + pending_;
  if (codec_ != nullptr) {
    for (int64_t token = std::max(coded_, tokens_); token < end; ++token) {
      for (int head = 0; head < layout_->kv_heads; ++head) {
        std::memcpy(ring_row(token, head), exact_row(token, head), static_cast<size_t>(row_bytes_));
      }
    }
    if (end >= exact_tokens_) {
      if (tokens_ >= exact_tokens_) work->scratch.swap(scratch_);
      // The originals of a whole prompt are given back to the system, not kept as spare memory.
      std::vector<uint8_t>().swap(scratch_);
    }
  }
  tokens_ = end;
  pending_ = 0;
}

void Side::page_tile(int64_t start, int head, float* tile) const {
  const kernels::CpuOps& ops = kernels::cpu_ops();
  if (codec_ == nullptr) {
    const kernels::PlainTile plain{element_, code_row(start, head), layout_->head_dim,
                                   layout_->page_tokens};
    return name_.values ? ops.plain_values(plain, tile) : ops.plain_keys(plain, tile);
  }
  kernels::PackedTile packed;
  packed.format = codec_->packed({});
  packed.channel_axis = layout_->format.axis == Axis::channel;
  packed.group = layout_->format.group == 0 ? layout_->head_dim : layout_->format.group;
  packed.head_dim = layout_->head_dim;
  packed.tokens = layout_->page_tokens;
  packed.codes = code_row(start, head);
  packed.params = param_row(start, head);
  if (!packed.channel_axis) packed.group = std::min(packed.group, packed.head_dim);
  name_.values ? ops.packed_values(packed, tile) : ops.packed_keys(packed, tile);
}

void Side::exact_tile(const ExactRows& range, int head, std::vector<uint8_t>* rows,
                      float* tile) const {
  const auto bytes = static_cast<size_t>(layout_->page_tokens * row_bytes_);
  rows->assign(bytes, 0);
  for (int64_t token = range.from; token < range.to; ++token) {
    std::memcpy(rows->data() + (token - range.start) * row_bytes_, exact_row(token, head),
                static_cast<size_t>(row_bytes_));
  }
  const kernels::CpuOps& ops = kernels::cpu_ops();
  const kernels::PlainTile plain{element_, rows->data(), layout_->head_dim, layout_->page_tokens};
  name_.values ? ops.plain_values(plain, tile) : ops.plain_keys(plain, tile);
}

}  // namespace kvsweep::cache
