#include "core/catalog/page_layout.hpp"

#include <algorithm>

namespace kvsweep {
namespace {

constexpr int64_t kAlignment = 16;
constexpr int64_t kParamBytes = 4;  // scale and min, fp16 each

int64_t aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

int params_per_row(const Format& format, int head_dim) {
  if (format.axis == Axis::channel) return head_dim;
  return format.group == 0 ? 1 : (head_dim + format.group - 1) / format.group;
}

struct SideInput {
  Format format;
  Window window;
  LayerGeometry layer;
  int page_tokens = 0;
  BaseType base = BaseType::fp16;
};

SideLayout side_layout(const SideInput& in) {
  const int64_t heads = in.layer.kv_heads;
  const int64_t head_dim = in.layer.head_dim;
  SideLayout side;
  side.format = in.format;
  side.kv_heads = in.layer.kv_heads;
  side.head_dim = in.layer.head_dim;
  side.page_tokens = in.page_tokens;
  if (!in.format.quantized()) {
    side.row_bytes = head_dim * bytes_of(in.base);
    side.params_offset = aligned(heads * in.page_tokens * side.row_bytes);
    side.page_bytes = side.params_offset;
    return side;  // window {0, 1}: rows are written at once, nothing is staged
  }
  side.window = in.window;
  side.row_bytes = head_dim * info(in.format.codec).bits / 8;
  side.param_rows =
      in.format.axis == Axis::channel ? in.page_tokens / in.format.group : in.page_tokens;
  side.params_per_row = params_per_row(in.format, in.layer.head_dim);
  side.params_offset = aligned(heads * in.page_tokens * side.row_bytes);
  side.page_bytes =
      side.params_offset + aligned(heads * side.param_rows * side.params_per_row * kParamBytes);
  side.staging_bytes = aligned(heads * in.window.staging_tokens() * head_dim * bytes_of(in.base));
  return side;
}

void place(SideLayout& side, CacheLayout& layout) {
  side.block_offset = layout.block_bytes;
  side.staging_offset = layout.staging_bytes;
  layout.block_bytes += side.page_bytes;
  layout.staging_bytes += side.staging_bytes;
}

}  // namespace

int64_t CacheLayout::blocks(int64_t tokens) const {
  if (tokens <= 0) return 0;
  int64_t most = 0;
  for (const std::vector<SideLayout>* sides : {&keys, &values}) {
    for (const SideLayout& side : *sides) {
      most = std::max(most, coded_tokens(side.window, tokens - 1));
    }
  }
  return (most + page_tokens - 1) / page_tokens;
}

int64_t CacheLayout::bytes(int64_t tokens, int64_t batch) const {
  return batch * (blocks(tokens) * block_bytes + staging_bytes);
}

CacheLayout cache_layout(const PrecisionMap& map, const ModelGeometry& geometry, BaseType base) {
  CacheLayout layout;
  layout.base = base;
  layout.page_tokens = map.scheme.page_tokens();
  for (int i = 0; i < geometry.num_layers(); ++i) {
    const LayerGeometry& layer = geometry.layers[i];
    layout.keys.push_back(
        side_layout({map.key_format(i), map.scheme.k, layer, layout.page_tokens, base}));
    place(layout.keys.back(), layout);
    layout.values.push_back(
        side_layout({map.value_format(i), map.scheme.v, layer, layout.page_tokens, base}));
    place(layout.values.back(), layout);
  }
  return layout;
}

double effective_bits(const CacheLayout& layout, const ModelGeometry& geometry, int64_t tokens) {
  const double elements =
      static_cast<double>(tokens) * static_cast<double>(geometry.elements_per_token());
  return static_cast<double>(layout.bytes(tokens, 1)) * 8 / elements;
}

double format_bits(const Format& format, int head_dim, BaseType base) {
  if (!format.quantized()) return 8.0 * bytes_of(base);
  const double param_bits = 8.0 * kParamBytes;
  const double per_element = format.axis == Axis::channel
                                 ? 1.0 / format.group
                                 : static_cast<double>(params_per_row(format, head_dim)) / head_dim;
  return info(format.codec).bits + param_bits * per_element;
}

}  // namespace kvsweep
