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

int group_bytes(const Format& format) {
  const CodecInfo& codec = info(format.codec);
  if (format.calibrated) return bytes_beside_constant(format.codec);
  if (format.simulated()) {
    return kvsweep::param_bytes(format.arithmetic) / (format.symmetric ? 2 : 1);
  }
  return format.symmetric ? codec.symmetric_bytes : codec.param_bytes;
}

int params_per_row(const Format& format, int head_dim) {
  if (format.axis == Axis::channel) return head_dim;
  return format.group == 0 ? 1 : (head_dim + format.group - 1) / format.group;
}

struct SideInput {
  Format format;
  Window window;
  float constant = 0;
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
  side.constant = in.constant;
  if (in.format.simulated()) {
    side.row_bytes = head_dim * static_cast<int64_t>(sizeof(float));
    side.params_offset = aligned(heads * side.page_tokens * side.row_bytes);
    side.page_bytes = side.params_offset;
    return side;
  }
  side.row_bytes = code_bytes(in.format.codec, head_dim);
  side.param_rows =
      in.format.axis == Axis::channel ? side.page_tokens / in.format.group : side.page_tokens;
  side.params_per_row = params_per_row(in.format, in.head_dim);
  side.param_bytes = group_bytes(in.format);
  side.params_offset = aligned(heads * side.page_tokens * side.row_bytes);
  side.page_bytes = side.params_offset +
                    aligned(heads * side.param_rows * side.params_per_row * side.param_bytes);
  return side;
}

enum class Which : uint8_t { keys, values };

SideInput input_of(const PrecisionMap& map, int layer, Pair pair, Which which) {
  const Scheme& scheme = map.scheme;
  SideInput in;
  const bool keys = which == Which::keys;
  in.format = keys ? scheme.key_format(pair.k) : scheme.value_format(pair.v);
  in.window = keys ? scheme.key_window(pair.k) : scheme.value_window(pair.v);
  in.constant = keys ? map.key_constant(layer, pair) : map.value_constant(layer, pair);
  return in;
}

void place(SideLayout& side, CacheLayout& layout) {
  side.block_offset = layout.block_bytes;
  layout.block_bytes += side.page_bytes;
}

// The runs of heads that are stored alike, placed at the end of the block. Keys of a layer lack
// their bias in all runs or in none, since attention is given them so.
std::vector<SideLayout> head_runs(const PrecisionMap& map, int layer, const LayerGeometry& shape,
                                  Which which, CacheLayout& layout) {
  const LayerPairs& pairs = map.layers[static_cast<size_t>(layer)];
  const auto codec_of = [&](int head) {
    const Pair pair = pairs.of(head);
    return which == Which::keys ? pair.k : pair.v;
  };
  std::vector<SideLayout> runs;
  bool unbiased = false;
  int first = 0;
  do {
    int end = pairs.per_head() ? first + 1 : shape.kv_heads;
    while (end < shape.kv_heads && codec_of(end) == codec_of(first)) ++end;
    SideInput in = input_of(map, layer, pairs.of(first), which);
    in.head_dim = shape.head_dim;
    in.first_head = first;
    in.kv_heads = end - first;
    runs.push_back(side_layout(in, layout));
    place(runs.back(), layout);
    unbiased = unbiased || in.format.unbiased;
    first = end;
  } while (first < shape.kv_heads);
  for (SideLayout& run : runs) run.format.unbiased = unbiased;
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

int64_t SideLayout::published_bytes(int64_t coded) const {
  const int64_t elements = coded * kv_heads * head_dim;
  if (format.arithmetic == Arithmetic::pack11) {
    const int64_t words = elements / kPackedTokens;
    return words * (static_cast<int64_t>(sizeof(uint32_t)) + group_bytes(format));
  }
  const int64_t group = format.group == 0 ? head_dim : format.group;
  return (elements * info(format.codec).bits + 7) / 8 +
         (elements + group - 1) / group * group_bytes(format);
}

int64_t SideLayout::staging_tokens(int64_t tokens, int64_t prompt) const {
  if (!format.quantized()) return 0;
  const int64_t most = most_exact(window, tokens, prompt);
  if (window.rule == WindowRule::tokens || window.rule == WindowRule::recode) return most;
  return (most + kRingStep - 1) / kRingStep * kRingStep;
}

int64_t SideLayout::staging_bytes(int64_t tokens, int64_t prompt) const {
  return aligned((sinks + staging_tokens(tokens, prompt)) * exact_bytes);
}

int64_t CacheLayout::longest_chunk(int64_t tokens, int64_t prompt, int64_t wanted) const {
  bool recodes = false;
  each_side(*this, [&](const SideLayout& side) {
    recodes = recodes || side.window.rule == WindowRule::recode;
  });
  if (!recodes) return wanted;
  return std::min(wanted, tokens < prompt ? prompt - tokens : 1);
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

int64_t CacheLayout::allocated_bytes(int64_t tokens, std::optional<int64_t> prompt) const {
  if (tokens <= 0) return 0;
  return blocks(tokens, prompt) * block_bytes + staging_bytes(tokens, prompt);
}

int64_t CacheLayout::bytes(int64_t tokens, int64_t batch, std::optional<int64_t> prompt) const {
  int64_t bytes = allocated_bytes(tokens, prompt);
  const int64_t length = std::max<int64_t>(0, tokens - sinks);
  const int64_t deciding = deciding_prompt(tokens, prompt);
  each_side(*this, [&](const SideLayout& side) {
    if (tokens <= 0 || !side.format.simulated()) return;
    const int64_t coded = coded_tokens(side.window, length - 1, deciding);
    bytes -= blocks(tokens, prompt) * side.page_bytes + side.staging_bytes(length, deciding);
    bytes += side.published_bytes(coded) + (tokens - coded) * side.exact_bytes;
  });
  return batch * bytes;
}

CacheLayout cache_layout(const PrecisionMap& map, const ModelGeometry& geometry, BaseType base) {
  CacheLayout layout;
  layout.base = base;
  layout.prefill = map.scheme.prefill;
  layout.page_tokens = map.scheme.page_tokens();
  if (!map.is_baseline()) layout.sinks = map.scheme.sinks;
  for (int i = 0; i < geometry.num_layers(); ++i) {
    const LayerGeometry& shape = geometry.layers[i];
    layout.keys.push_back(head_runs(map, i, shape, Which::keys, layout));
    layout.values.push_back(head_runs(map, i, shape, Which::values, layout));
  }
  return layout;
}

CacheLayout plain_layout(const CacheLayout& layout) {
  CacheLayout plain;
  plain.base = layout.base;
  plain.page_tokens = layout.page_tokens;
  plain.sinks = layout.sinks;
  const auto add = [&](const std::vector<SideLayout>& runs) {
    SideInput in;
    in.format.unbiased = runs.front().format.unbiased;
    in.head_dim = runs.back().head_dim;
    in.kv_heads = runs.back().first_head + runs.back().kv_heads;
    std::vector<SideLayout> all = {side_layout(in, plain)};
    place(all.front(), plain);
    return all;
  };
  for (size_t i = 0; i < layout.keys.size(); ++i) {
    plain.keys.push_back(add(layout.keys[i]));
    plain.values.push_back(add(layout.values[i]));
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
  if (format.arithmetic == Arithmetic::pack11) {
    return 8.0 * (static_cast<double>(sizeof(uint32_t)) + group_bytes(format)) / kPackedTokens;
  }
  const double params = format.axis == Axis::channel
                            ? 1.0 / format.group
                            : static_cast<double>(params_per_row(format, head_dim)) / head_dim;
  return 8.0 * static_cast<double>(code_bytes(format.codec, head_dim)) / head_dim +
         8.0 * group_bytes(format) * params;
}

}  // namespace kvsweep
