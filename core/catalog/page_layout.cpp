#include "core/catalog/page_layout.hpp"

#include <algorithm>

namespace kvsweep {
namespace {

constexpr int64_t kAlignment = 16;
constexpr int64_t kRingStep = 32;  // tokens: rings that grow do so by whole steps

int64_t aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// int3 is packed by 32 elements in 12 bytes.
int64_t code_bytes(Codec codec, int64_t head_dim) {
  if (codec == Codec::int3) return (head_dim + 31) / 32 * 12;
  return (head_dim * info(codec).bits + 7) / 8;
}

int param_bytes(const Format& format) {
  const CodecInfo& codec = info(format.codec);
  return format.symmetric ? codec.symmetric_bytes : codec.param_bytes;
}

int params_per_row(const Format& format, int head_dim) {
  if (format.axis == Axis::channel) return head_dim;
  return format.group == 0 ? 1 : (head_dim + format.group - 1) / format.group;
}

struct SideInput {
  Format format;
  Window window;
  int head_dim = 0;
  int first_head = 0;
  int kv_heads = 0;
};

SideLayout side_layout(const SideInput& in, const CacheLayout& layout) {
  const int64_t heads = in.kv_heads;
  const int64_t head_dim = in.head_dim;
  SideLayout side;
  side.format = in.format;
  side.sinks = layout.sinks;
  side.first_head = in.first_head;
  side.kv_heads = in.kv_heads;
  side.head_dim = in.head_dim;
  side.page_tokens = layout.page_tokens;
  side.exact_bytes = heads * head_dim * bytes_of(layout.base);
  if (!in.format.quantized()) {
    side.row_bytes = head_dim * bytes_of(layout.base);
    side.params_offset = aligned(heads * side.page_tokens * side.row_bytes);
    side.page_bytes = side.params_offset;
    return side;  // window {0, 1}: rows are written at once, only sinks are staged
  }
  side.window = in.window;
  side.row_bytes = code_bytes(in.format.codec, head_dim);
  side.param_rows =
      in.format.axis == Axis::channel ? side.page_tokens / in.format.group : side.page_tokens;
  side.params_per_row = params_per_row(in.format, in.head_dim);
  side.param_bytes = param_bytes(in.format);
  side.params_offset = aligned(heads * side.page_tokens * side.row_bytes);
  side.page_bytes = side.params_offset +
                    aligned(heads * side.param_rows * side.params_per_row * side.param_bytes);
  return side;
}

enum class Which : uint8_t { keys, values };

Codec codec_of(const LayerPairs& pairs, Which side, int head) {
  const Pair pair = pairs.of(head);
  return side == Which::keys ? pair.k : pair.v;
}

// The runs of heads that are stored alike, placed at the end of the block.
std::vector<SideLayout> head_runs(const Scheme& scheme, const LayerPairs& pairs,
                                  const LayerGeometry& shape, Which which, CacheLayout& layout) {
  std::vector<SideLayout> runs;
  int first = 0;
  do {
    const Codec codec = codec_of(pairs, which, first);
    int end = pairs.per_head() ? first + 1 : shape.kv_heads;
    while (end < shape.kv_heads && codec_of(pairs, which, end) == codec) ++end;
    const bool keys = which == Which::keys;
    const Format format = keys ? scheme.key_format(codec) : scheme.value_format(codec);
    const Window window = keys ? scheme.key_window(codec) : scheme.value_window(codec);
    SideLayout side = side_layout({format, window, shape.head_dim, first, end - first}, layout);
    side.block_offset = layout.block_bytes;
    layout.block_bytes += side.page_bytes;
    runs.push_back(side);
    first = end;
  } while (first < shape.kv_heads);
  return runs;
}

template <typename Work>
void each_side(const CacheLayout& layout, const Work& work) {
  for (const auto* layers : {&layout.keys, &layout.values}) {
    for (const std::vector<SideLayout>& runs : *layers) {
      for (const SideLayout& side : runs) work(side);
    }
  }
}

}  // namespace

int64_t SideLayout::staging_tokens(int64_t tokens, int64_t prompt) const {
  if (!format.quantized()) return 0;
  const int64_t most = most_exact(window, tokens, prompt);
  if (window.rule == WindowRule::tokens) return most;
  return (most + kRingStep - 1) / kRingStep * kRingStep;
}

int64_t SideLayout::staging_bytes(int64_t tokens, int64_t prompt) const {
  return aligned((sinks + staging_tokens(tokens, prompt)) * exact_bytes);
}

int64_t CacheLayout::deciding_prompt(int64_t tokens, std::optional<int64_t> prompt) const {
  if (prefill != Prefill::exact) return 0;
  return std::max<int64_t>(0, prompt.value_or(tokens) - sinks);
}

int64_t CacheLayout::blocks(int64_t tokens, std::optional<int64_t> prompt) const {
  const int64_t deciding = deciding_prompt(tokens, prompt);
  int64_t most = 0;
  each_side(*this, [&](const SideLayout& side) {
    most = std::max(most, coded_tokens(side.window, tokens - sinks - 1, deciding));
  });
  return (most + page_tokens - 1) / page_tokens;
}

int64_t CacheLayout::staging_bytes(int64_t tokens, std::optional<int64_t> prompt) const {
  const int64_t deciding = deciding_prompt(tokens, prompt);
  int64_t bytes = 0;
  each_side(*this, [&](const SideLayout& side) {
    bytes += side.staging_bytes(std::max<int64_t>(0, tokens - sinks), deciding);
  });
  return bytes;
}

int64_t CacheLayout::bytes(int64_t tokens, int64_t batch, std::optional<int64_t> prompt) const {
  if (tokens <= 0) return 0;
  return batch * (blocks(tokens, prompt) * block_bytes + staging_bytes(tokens, prompt));
}

CacheLayout cache_layout(const PrecisionMap& map, const ModelGeometry& geometry, BaseType base) {
  CacheLayout layout;
  layout.base = base;
  layout.prefill = map.scheme.prefill;
  layout.page_tokens = map.scheme.page_tokens();
  if (!map.is_baseline()) layout.sinks = map.scheme.sinks;
  for (int i = 0; i < geometry.num_layers(); ++i) {
    const LayerGeometry& shape = geometry.layers[i];
    const LayerPairs& pairs = map.layers[static_cast<size_t>(i)];
    layout.keys.push_back(head_runs(map.scheme, pairs, shape, Which::keys, layout));
    layout.values.push_back(head_runs(map.scheme, pairs, shape, Which::values, layout));
  }
  return layout;
}

CacheLayout plain_layout(const CacheLayout& layout) {
  CacheLayout plain;
  plain.base = layout.base;
  plain.page_tokens = layout.page_tokens;
  plain.sinks = layout.sinks;
  for (const std::vector<SideLayout>& runs : layout.keys) {
    const LayerGeometry shape{runs.back().first_head + runs.back().kv_heads, runs.back().head_dim};
    plain.keys.push_back(head_runs({}, {}, shape, Which::keys, plain));
    plain.values.push_back(head_runs({}, {}, shape, Which::values, plain));
  }
  return plain;
}

double effective_bits(const CacheLayout& layout, const ModelGeometry& geometry, int64_t tokens) {
  const double elements =
      static_cast<double>(tokens) * static_cast<double>(geometry.elements_per_token());
  return static_cast<double>(layout.bytes(tokens, 1)) * 8 / elements;
}

double format_bits(const Format& format, int head_dim, BaseType base) {
  if (!format.quantized()) return 8.0 * bytes_of(base);
  const double params = format.axis == Axis::channel
                            ? 1.0 / format.group
                            : static_cast<double>(params_per_row(format, head_dim)) / head_dim;
  return 8.0 * static_cast<double>(code_bytes(format.codec, head_dim)) / head_dim +
         8.0 * param_bytes(format) * params;
}

}  // namespace kvsweep
