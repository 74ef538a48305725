#include "worker/cache/side.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "worker/cache/simulated.hpp"
#include "worker/codec/hadamard.hpp"

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
  if (format.simulated()) return &reference_codec(format);
  const codec::Codec* codec = codec::find_codec(info(format.codec).name);
  if (codec == nullptr) throw std::logic_error("no encoder for format " + to_string(format));
  return codec;
}

// nvfp4 without calibration has the tensor scale 1, which is part of what that format means
// (docs/decisions/0006). A calibrated format without its constant stays without: the encoder
// refuses it.
codec::Variant variant_of(const codec::Codec* codec, const SideLayout& layout) {
  codec::Variant variant;
  variant.symmetric = layout.format.symmetric;
  variant.calibrated = layout.format.calibrated;
  variant.constant = layout.constant;
  const bool required = codec != nullptr && codec->calibration == codec::Calibration::required;
  if (required && !variant.calibrated) {
    variant.calibrated = true;
    variant.constant = 1.0f;
  }
  return variant;
}

void check_layout(const SideLayout& layout) {
  const Format& format = layout.format;
  const bool tiles = layout.page_tokens % kernels::kTileMultiple == 0 &&
                     layout.page_tokens <= kernels::kMaxTileTokens;
  const bool groups = !format.quantized() || format.simulated() || format.axis == Axis::token ||
                      (format.group > 0 && layout.page_tokens % format.group == 0 &&
                       layout.window.block % format.group == 0);
  if (!tiles || !groups) {
    throw std::logic_error("cache layout that the kernels cannot read: " + to_string(format) +
                           ", pages of " + std::to_string(layout.page_tokens) + " tokens");
  }
}

}  // namespace

Side::Side(const SideLayout& layout, BaseType base, int64_t exact_tokens, SideName name)
    : layout_(&layout),
      base_(base),
      element_(element_of(base)),
      codec_(codec_of(layout.format)),
      variant_(variant_of(codec_, layout)),
      row_bytes_(int64_t{layout.head_dim} * bytes_of(base)),
      exact_tokens_(exact_tokens),
      name_(name),
      coded_(layout.sinks),
      counter_(layout.window, std::max<int64_t>(0, exact_tokens - layout.sinks)) {
  check_layout(layout);
  folds_ = codec_ != nullptr && !layout.format.simulated() &&
           kernels::folds(packed_shape(), name.values);
}

void Side::set_exact_tokens(int64_t tokens) {
  exact_tokens_ = tokens;
  recount_views(tokens_);
}

void Side::bind_staging(uint8_t* staging, int64_t room, bool moved) {
  const uint8_t* old = staging_;
  const int64_t old_room = room_;
  staging_ = staging;
  room_ = room;
  if (moved || old == nullptr) return;
  const int64_t bytes = layout_->exact_bytes;
  std::memcpy(staging_, old, static_cast<size_t>(layout_->sinks * bytes));
  const uint8_t* old_ring = old + layout_->sinks * bytes;
  for (int64_t token = std::max<int64_t>(layout_->sinks, tokens_ - old_room); token < tokens_;
       ++token) {
    std::memcpy(ring_row(token), old_ring + token % old_room * bytes, static_cast<size_t>(bytes));
  }
}

// Where only counting along tells how many tokens are coded, the count after each is kept.
void Side::count_views(int64_t tokens) {
  if (codec_ == nullptr || layout_->window.rule != WindowRule::window_share) return;
  while (static_cast<int64_t>(views_.size()) < slot(tokens)) views_.push_back(counter_.next());
}

void Side::recount_views(int64_t tokens) {
  views_.clear();
  counter_ = CodedTokens(layout_->window, std::max<int64_t>(0, exact_tokens_ - layout_->sinks));
  count_views(tokens);
}

// The end of the coded tokens once `tokens` have come.
int64_t Side::coded_after(int64_t tokens) const {
  const int64_t last = slot(tokens) - 1;
  if (last < 0) return layout_->sinks;
  if (codec_ == nullptr) return tokens;
  const int64_t coded = views_.empty()
                            ? coded_tokens(layout_->window, last, exact_tokens_ - layout_->sinks)
                            : views_[static_cast<size_t>(last)];
  return layout_->sinks + coded;
}

int64_t Side::view(int64_t position) const {
  if (codec_ == nullptr) return position + 1;
  if (position < exact_tokens_) return layout_->sinks;
  return coded_after(position + 1);
}

uint8_t* Side::page_memory(int64_t token) const {
  return (*blocks_)[static_cast<size_t>(slot(token) / layout_->page_tokens)].get() +
         layout_->block_offset;
}

const uint8_t* Side::page(int64_t token) const {
  return page_memory(token);
}

uint8_t* Side::code_row(int64_t token, int head) const {
  const int64_t row = int64_t{head} * layout_->page_tokens + slot(token) % layout_->page_tokens;
  return page_memory(token) + row * layout_->row_bytes;
}

uint8_t* Side::param_row(int64_t token, int head) const {
  const int64_t in_page = slot(token) % layout_->page_tokens;
  const int64_t row = in_page / token_group();
  const int64_t group = (int64_t{head} * layout_->param_rows + row) * layout_->params_per_row;
  return page_memory(token) + layout_->params_offset + layout_->param_bytes * group;
}

uint8_t* Side::sink_row(int64_t token) const {
  return staging_ + token * layout_->exact_bytes;
}

uint8_t* Side::ring_row(int64_t token) const {
  return staging_ + (layout_->sinks + token % room_) * layout_->exact_bytes;
}

const uint8_t* Side::exact_row(int64_t token, int head) const {
  const int64_t in_token = head * row_bytes_;
  if (token < layout_->sinks) return sink_row(token) + in_token;
  if (!scratch_.empty() && token >= scratch_begin_) {
    return scratch_.data() + (token - scratch_begin_) * layout_->exact_bytes + in_token;
  }
  return ring_row(token) + in_token;
}

Status Side::append(const float* rows, int64_t tokens, Work* work) {
  const int64_t sinks = std::clamp<int64_t>(layout_->sinks - tokens_, 0, tokens);
  const int64_t width = int64_t{layout_->kv_heads} * layout_->head_dim;
  KVSWEEP_TRY(append_sinks(rows, sinks));
  const int64_t first = tokens_ + sinks;
  const int64_t rest = tokens - sinks;
  if (codec_ == nullptr) {
    KVSWEEP_TRY(append_to_pages(rows + sinks * width, first, rest));
    coded_ = std::max<int64_t>(coded_, first + rest);
  } else if (rest > 0) {
    KVSWEEP_TRY(append_to_scratch(rows + sinks * width, first, rest, work));
    count_views(first + rest);
    const int64_t to = coded_after(first + rest);
    KVSWEEP_TRY(encode(coded_, to, &work->wide));
    coded_ = to;
  }
  pending_ = tokens;
  return {};
}

Status Side::append_sinks(const float* rows, int64_t tokens) {
  if (tokens == 0) return {};
  const int64_t count = tokens * layout_->kv_heads * layout_->head_dim;
  if (kernels::cpu_ops().narrow(element_, rows, count, sink_row(tokens_))) return {};
  return not_finite(rows, tokens_);
}

Status Side::append_to_pages(const float* rows, int64_t first, int64_t tokens) {
  const kernels::CpuOps& ops = kernels::cpu_ops();
  bool finite = true;
  for (int64_t t = 0; t < tokens; ++t) {
    for (int head = 0; head < layout_->kv_heads; ++head) {
      const float* row = rows + (t * layout_->kv_heads + head) * layout_->head_dim;
      finite &= ops.narrow(element_, row, layout_->head_dim, code_row(first + t, head));
    }
  }
  if (!finite) return not_finite(rows, first);
  return {};
}

Status Side::append_to_scratch(const float* rows, int64_t first, int64_t tokens, Work* work) {
  if (scratch_.empty()) {
    scratch_.swap(work->scratch);
    scratch_.clear();
    scratch_begin_ = first;
  }
  const int64_t at = (first - scratch_begin_) * layout_->exact_bytes;
  scratch_.resize(static_cast<size_t>(at + tokens * layout_->exact_bytes));
  const int64_t count = tokens * layout_->kv_heads * layout_->head_dim;
  if (!kernels::cpu_ops().narrow(element_, rows, count, scratch_.data() + at)) {
    return not_finite(rows, first);
  }
  return {};
}

// Tokens that are coded together: a whole group of the channel axis, or one.
int Side::token_group() const {
  return layout_->format.axis == Axis::channel ? layout_->format.group : 1;
}

// Channels that share parameters on the token axis.
int Side::channel_group() const {
  const int group = layout_->format.group;
  return group == 0 ? layout_->head_dim : std::min(group, layout_->head_dim);
}

Status Side::encode(int64_t from, int64_t to, std::vector<float>* wide) {
  if (layout_->format.simulated()) return encode_simulated(from, to, wide);
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
  if (layout_->format.hadamard) codec::hadamard(wide->data(), count, head_dim);
  uint8_t* codes = code_row(token, head);
  uint8_t* params = param_row(token, head);
  codec::EncodeResult result;
  if (layout_->format.axis == Axis::channel) {
    const codec::BlockShape shape{head_dim, count, layout_->row_bytes, variant_};
    result = codec_->encode_block(shape, wide->data(), codes, params);
  } else {
    result = codec_->encode_row({head_dim, channel_group(), variant_}, wide->data(), codes, params);
  }
  if (!result.ok()) return fault(result, token, head);
  return {};
}

// The ring holds the newest tokens, coded or not: a crop may make them exact again.
void Side::end_chunk(Work* work) {
  const int64_t end = tokens_ + pending_;
  if (codec_ != nullptr) {
    const auto bytes = static_cast<size_t>(layout_->exact_bytes);
    const int64_t from = std::max<int64_t>({tokens_, layout_->sinks, end - room_});
    for (int64_t token = from; token < end; ++token) {
      std::memcpy(ring_row(token), exact_row(token, 0), bytes);
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

void Side::read_originals(std::vector<float>* rows) const {
  if (codec_ != nullptr) throw std::logic_error("the originals of coded tokens are gone");
  const int64_t head_dim = layout_->head_dim;
  rows->resize(static_cast<size_t>(tokens_ * layout_->kv_heads * head_dim));
  float* to = rows->data();
  for (int64_t token = 0; token < tokens_; ++token) {
    for (int head = 0; head < layout_->kv_heads; ++head, to += head_dim) {
      const bool sink = token < layout_->sinks;
      const uint8_t* row = sink ? exact_row(token, head) : code_row(token, head);
      kernels::cpu_ops().widen(element_, row, head_dim, to);
    }
  }
}

bool Side::can_crop(int64_t tokens) const {
  if (codec_ == nullptr || tokens <= layout_->sinks) return true;
  if (!scratch_.empty()) return true;  // the whole prompt is still there
  if (tokens < exact_tokens_) return false;
  const int64_t coded = coded_after(tokens);
  if (layout_->window.rule == WindowRule::recode) return coded == coded_;
  const int64_t oldest = std::max<int64_t>(layout_->sinks, tokens_ - room_);
  return coded == tokens || coded == coded_ || coded >= oldest;
}

void Side::crop(int64_t tokens) {
  tokens_ = tokens;
  forget(tokens);
}

// Codes that are not counted any more are written again before they are read.
void Side::keep(int64_t tokens) {
  pending_ = tokens;
  forget(tokens_ + tokens);
}

// What is counted along, and scratch, of the tokens from `tokens` on.
void Side::forget(int64_t tokens) {
  if (static_cast<int64_t>(views_.size()) > slot(tokens)) recount_views(tokens);
  coded_ = codec_ == nullptr ? std::max<int64_t>(layout_->sinks, tokens) : coded_after(tokens);
  if (!scratch_.empty()) {
    const int64_t kept = std::max<int64_t>(0, tokens - scratch_begin_);
    scratch_.resize(static_cast<size_t>(kept * layout_->exact_bytes));
  }
}

kernels::PackedTile Side::packed_shape() const {
  kernels::PackedTile packed;
  packed.format = codec_->packed(variant_);
  packed.channel_axis = layout_->format.axis == Axis::channel;
  packed.group = packed.channel_axis ? layout_->format.group : channel_group();
  packed.head_dim = layout_->head_dim;
  packed.tokens = layout_->page_tokens;
  return packed;
}

kernels::PackedTile Side::packed_tile(int64_t start, int layer_head) const {
  const int head = layer_head - layout_->first_head;
  kernels::PackedTile packed = packed_shape();
  packed.codes = code_row(start, head);
  packed.params = param_row(start, head);
  return packed;
}

void Side::page_tile(int64_t start, int layer_head, float* tile) const {
  const int head = layer_head - layout_->first_head;
  const kernels::CpuOps& ops = kernels::cpu_ops();
  if (codec_ == nullptr) {
    const kernels::PlainTile plain{element_, code_row(start, head), layout_->head_dim,
                                   layout_->page_tokens};
    return name_.values ? ops.plain_values(plain, tile) : ops.plain_keys(plain, tile);
  }
  if (layout_->format.simulated()) {
    const kernels::PlainTile plain{kernels::Element::fp32, code_row(start, head), layout_->head_dim,
                                   layout_->page_tokens};
    return name_.values ? ops.plain_values(plain, tile) : ops.plain_keys(plain, tile);
  }
  const kernels::PackedTile packed = packed_tile(start, layer_head);
  name_.values ? ops.packed_values(packed, tile) : ops.packed_keys(packed, tile);
}

void Side::exact_tile(const ExactRows& range, int layer_head, std::vector<uint8_t>* rows,
                      float* tile) const {
  const int head = layer_head - layout_->first_head;
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
