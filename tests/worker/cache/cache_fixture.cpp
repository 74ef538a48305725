#include "tests/worker/cache/cache_fixture.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "worker/codec/codec.hpp"
#include "worker/codec/hadamard.hpp"
#include "worker/codec/half.hpp"

namespace kvsweep::cache::testing {

std::string Case::text() const {
  std::string s =
      options.name + " prefill " +
      (options.prefill ? std::string(to_string(*options.prefill)) : "default") + " group " +
      (options.group ? std::to_string(*options.group) : "default") + " residual " +
      (options.residual ? std::to_string(*options.residual) : "default") + " base " +
      std::string(to_string(base)) + " query group " + std::to_string(group) + " window " +
      std::to_string(window) + " softcap " + std::to_string(softcap) + " prompt " +
      std::to_string(prompt) + " tokens " + std::to_string(tokens) + " seed " +
      std::to_string(seed) + " sinks " + std::to_string(options.sinks.value_or(0)) + " share " +
      std::to_string(options.share.value_or(0)) +
      (options.symmetric.value_or(false) ? " symmetric" : "") + " hadamard " +
      std::string(to_string(options.hadamard.value_or(Hadamard::none))) + " layers";
  for (size_t i = 0; i < layers.size(); ++i) {
    s += " " + to_string(pairs[i]) + "/" + std::to_string(layers[i].kv_heads) + "x" +
         std::to_string(layers[i].head_dim);
  }
  return s;
}

namespace {

std::vector<float> normals(std::mt19937_64& rng, size_t count) {
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& v : values) v = normal(rng);
  return values;
}

double round_to(BaseType base, float x) {
  if (base == BaseType::fp16) return codec::half_to_float(codec::float_to_half(x));
  if (base == BaseType::bf16) return codec::bf16_to_float(codec::float_to_bf16(x));
  return x;
}

// Step by step: the tokens beside the sinks that are codes after each query. By the rule, tokens
// move to codes in whole blocks while enough others stay exact. (core/window.hpp has formulas.)
std::vector<int64_t> coded_after(const Sequence& setup, const SideLayout& s) {
  const Window& w = s.window;
  const int64_t prompt = setup.scheme.prefill == Prefill::exact ? setup.config.prompt : 0;
  std::vector<int64_t> coded;
  int64_t done = 0;
  for (int64_t p = 0; p < setup.config.tokens; ++p) {
    const int64_t here = p + 1 - s.sinks;  // tokens beside the sinks
    int64_t stay = w.keep;
    if (w.rule == WindowRule::total_share) stay = here * w.share / 10;
    if (w.rule == WindowRule::window_share) stay = (here - done) * w.share / 10;
    const bool waits = w.rule == WindowRule::window_share && p + 1 < prompt;
    while (!waits && here - done - stay >= w.block) done += w.block;
    coded.push_back(done);
  }
  return coded;
}

codec::Variant variant(const SideLayout& s) {
  const codec::Codec& codec = *codec::find_codec(info(s.format.codec).name);
  const bool calibrated = codec.calibration == codec::Calibration::required;
  return {s.format.symmetric, calibrated, calibrated ? 1.0f : 0.0f};
}

const SideLayout& side(const CacheLayout& layout, int layer, bool values, int head) {
  for (const SideLayout& s : runs_of(layout, layer, values)) {
    if (head >= s.first_head && head < s.first_head + s.kv_heads) return s;
  }
  throw std::logic_error("no run holds KV head " + std::to_string(head));
}

codec::RowShape row_shape(const SideLayout& s) {
  const int group =
      s.format.group == 0 || s.format.group > s.head_dim ? s.head_dim : s.format.group;
  return {s.head_dim, group, variant(s)};
}

}  // namespace

const std::vector<SideLayout>& runs_of(const CacheLayout& layout, int layer, bool values) {
  return values ? layout.values[layer] : layout.keys[layer];
}

Sequence::Sequence(const Case& c) : config(c) {
  Result<Scheme> made = make_scheme(c.options);
  if (!made.ok()) throw std::invalid_argument(made.error().message);
  scheme = *made;
  PrecisionMap map{scheme, c.pairs};
  ModelGeometry geometry;
  geometry.layers = c.layers;
  layout = cache_layout(map, geometry, c.base);
  std::mt19937_64 rng(c.seed);
  for (const LayerGeometry& g : c.layers) {
    const size_t count = static_cast<size_t>(c.tokens) * g.kv_heads * g.head_dim;
    keys.push_back(normals(rng, count));
    values.push_back(normals(rng, count));
    queries.push_back(normals(rng, count * c.group));
  }
}

float Sequence::scale(int layer) const {
  return 1.0f / std::sqrt(static_cast<float>(config.layers[layer].head_dim));
}

Outputs empty_outputs(const Sequence& setup) {
  Outputs out;
  for (const auto& q : setup.queries) out.emplace_back(q.size(), -99.0f);
  return out;
}

namespace {

Status run_layers(const Sequence& setup, int64_t tokens, KvCache& cache, Outputs& out) {
  const int64_t first = cache.tokens();
  const int group = setup.config.group;
  for (int layer = 0; layer < setup.num_layers(); ++layer) {
    const auto [heads, head_dim] = setup.config.layers[layer];
    const int64_t token_floats = int64_t{heads} * head_dim;
    KVSWEEP_TRY(cache.append(layer, {setup.keys[layer].data() + first * token_floats,
                                     setup.values[layer].data() + first * token_floats, tokens}));
    for (int head = 0; head < heads; ++head) {
      const int64_t at = (first * heads + head) * group * head_dim;
      KvCache::Queries queries;
      queries.q = setup.queries[layer].data() + at;
      queries.out = out[layer].data() + at;
      queries.token_stride = token_floats * group;
      queries.head_stride = head_dim;
      queries.group = group;
      queries.scale = setup.scale(layer);
      queries.window = setup.config.window;
      queries.softcap = setup.config.softcap;
      cache.attend(layer, head, queries);
    }
    cache.end_layer(layer);
  }
  return {};
}

}  // namespace

Status open_held_chunk(const Sequence& setup, int64_t tokens, KvCache& cache, Outputs& out) {
  KVSWEEP_TRY(cache.begin_chunk(tokens, true));
  return run_layers(setup, tokens, cache, out);
}

Status run_chunk(const Sequence& setup, int64_t tokens, KvCache& cache, Outputs& out) {
  KVSWEEP_TRY(cache.begin_chunk(tokens));
  KVSWEEP_TRY(run_layers(setup, tokens, cache, out));
  cache.end_chunk();
  return {};
}

int64_t expected_bytes(const Sequence& setup, int64_t tokens) {
  return setup.layout.bytes(tokens, 1, setup.config.prompt);
}

Outputs run_chunks(const Sequence& setup, const std::vector<int64_t>& sizes, KvCache& cache) {
  Outputs out = empty_outputs(setup);
  for (size_t i = 0; cache.tokens() < setup.config.tokens; ++i) {
    const int64_t left = setup.config.tokens - cache.tokens();
    const Status status = run_chunk(setup, std::min(sizes[i % sizes.size()], left), cache, out);
    if (!status.ok()) throw std::runtime_error(status.error().message);
    EXPECT_EQ(cache.bytes(), expected_bytes(setup, cache.tokens())) << "at " << cache.tokens();
  }
  return out;
}

namespace {

// Codes and decodes `run` rows of one head: what the pages say of them.
std::vector<float> through_codec(const SideLayout& s, int run, std::vector<float> in) {
  const codec::Codec& codec = *codec::find_codec(info(s.format.codec).name);
  if (s.format.hadamard) codec::hadamard(in.data(), run, s.head_dim);
  std::vector<float> out(in.size());
  std::vector<uint8_t> codes(in.size() + 64 * static_cast<size_t>(run));
  std::vector<uint8_t> params(8 * in.size());
  if (s.format.axis == Axis::channel) {
    const codec::BlockShape shape{s.head_dim, run, s.row_bytes, variant(s)};
    EXPECT_TRUE(codec.encode_block(shape, in.data(), codes.data(), params.data()).ok());
    codec.decode_block(shape, codes.data(), params.data(), out.data());
  } else {
    EXPECT_TRUE(codec.encode_row(row_shape(s), in.data(), codes.data(), params.data()).ok());
    codec.decode_row(row_shape(s), codes.data(), params.data(), out.data());
  }
  return out;
}

int run_of(const SideLayout& s) {
  return s.format.axis == Axis::channel ? s.format.group : 1;
}

}  // namespace

namespace {

void materialise_run(const Sequence& setup, const SideLayout& s, int layer_heads, Materialised& m) {
  const int64_t tokens = setup.config.tokens;
  const int64_t coded =
      s.format.quantized() ? coded_after(setup, s).back() : std::max<int64_t>(0, tokens - s.sinks);
  m.coded.insert(m.coded.end(), static_cast<size_t>(s.kv_heads), coded);
  if (!s.format.quantized()) return;
  const int run = run_of(s);
  const auto at = [&](int64_t token, int head) {
    return (token * layer_heads + s.first_head + head) * s.head_dim;
  };
  std::vector<float> in(static_cast<size_t>(run) * s.head_dim);
  const size_t begin = m.paged.size();
  m.paged.resize(begin + static_cast<size_t>(coded) * s.kv_heads * s.head_dim);
  for (int64_t t = s.sinks; t < s.sinks + coded; t += run) {
    for (int head = 0; head < s.kv_heads; ++head) {
      for (int i = 0; i < run; ++i) {
        for (int d = 0; d < s.head_dim; ++d) in[i * s.head_dim + d] = m.exact[at(t + i, head) + d];
      }
      std::vector<float> out = through_codec(s, run, in);
      std::vector<float> turned = out;
      if (s.format.hadamard) codec::hadamard(turned.data(), run, s.head_dim);
      for (int i = 0; i < run; ++i) {
        for (int d = 0; d < s.head_dim; ++d) {
          m.decoded[at(t + i, head) + d] = turned[i * s.head_dim + d];
          const int64_t row = (t + i - s.sinks) * s.kv_heads + head;
          m.paged[begin + static_cast<size_t>(row * s.head_dim + d)] = out[i * s.head_dim + d];
        }
      }
    }
  }
}

}  // namespace

Materialised materialise(const Sequence& setup, int layer, bool values) {
  const std::vector<float>& rows = values ? setup.values[layer] : setup.keys[layer];
  Materialised m;
  for (float x : rows) m.exact.push_back(round_to(setup.config.base, x));
  m.decoded = m.exact;
  const int heads = setup.config.layers[layer].kv_heads;
  for (const SideLayout& s : runs_of(setup.layout, layer, values)) {
    materialise_run(setup, s, heads, m);
  }
  return m;
}

namespace {

// Pages of one run: [coded][heads][head_dim].
std::vector<double> decode_run(const SideLayout& s, const KvCache& cache, int layer, bool values) {
  if (!s.format.quantized()) return {};
  const codec::Codec& codec = *codec::find_codec(info(s.format.codec).name);
  const int run = run_of(s);
  const int64_t coded = cache.coded(layer, values, s.first_head);
  std::vector<double> decoded(static_cast<size_t>(coded) * s.kv_heads * s.head_dim);
  std::vector<float> out(static_cast<size_t>(run) * s.head_dim);
  for (int64_t t = 0; t < coded; t += run) {
    const uint8_t* page = cache.page(layer, values, s.sinks + t, s.first_head);
    const int64_t in_page = t % s.page_tokens;
    for (int head = 0; head < s.kv_heads; ++head) {
      const uint8_t* codes = page + (head * s.page_tokens + in_page) * s.row_bytes;
      const int64_t group = (int64_t{head} * s.param_rows + in_page / run) * s.params_per_row;
      const uint8_t* params = page + s.params_offset + s.param_bytes * group;
      if (s.format.axis == Axis::channel) {
        codec.decode_block({s.head_dim, run, s.row_bytes, variant(s)}, codes, params, out.data());
      } else {
        codec.decode_row(row_shape(s), codes, params, out.data());
      }
      for (int i = 0; i < run; ++i) {
        for (int d = 0; d < s.head_dim; ++d) {
          decoded[((t + i) * s.kv_heads + head) * s.head_dim + d] = out[i * s.head_dim + d];
        }
      }
    }
  }
  return decoded;
}

}  // namespace

std::vector<double> decode_pages(const Sequence& setup, const KvCache& cache, int layer,
                                 bool values) {
  std::vector<double> all;
  for (const SideLayout& s : runs_of(setup.layout, layer, values)) {
    const std::vector<double> decoded = decode_run(s, cache, layer, values);
    all.insert(all.end(), decoded.begin(), decoded.end());
  }
  return all;
}

namespace {

// The rows that a query sees of which `coded` tokens beside the sinks are codes.
const double* row(const Sequence& setup, const Materialised& m, int64_t j, int64_t coded,
                  int64_t index, int head_dim) {
  const int64_t sinks = setup.layout.sinks;
  const bool paged = j >= sinks && j < sinks + coded;
  return (paged ? m.decoded.data() : m.exact.data()) + index * head_dim;
}

struct Views {
  std::vector<int64_t> keys;
  std::vector<int64_t> values;
};

Views views(const Sequence& setup, int layer, int head) {
  Views v{coded_after(setup, side(setup.layout, layer, false, head)),
          coded_after(setup, side(setup.layout, layer, true, head))};
  if (setup.scheme.prefill == Prefill::exact) {
    const int64_t prompt = std::min(setup.config.prompt, setup.config.tokens);
    for (int64_t p = 0; p < prompt; ++p) v.keys[p] = v.values[p] = 0;
  }
  return v;
}

void brute_force_layer(const Sequence& setup, int layer, std::vector<float>& out) {
  const auto [heads, head_dim] = setup.config.layers[layer];
  const int group = setup.config.group;
  const Materialised k = materialise(setup, layer, false);
  const Materialised v = materialise(setup, layer, true);
  for (int h = 0; h < heads * group; ++h) {
    const Views view = views(setup, layer, h / group);
    for (int64_t p = 0; p < setup.config.tokens; ++p) {
      const int64_t at = (p * heads * group + h) * head_dim;
      const float* q = setup.queries[layer].data() + at;
      std::vector<double> weights(p + 1);
      double max = -1e300, sum = 0;
      const int64_t window = setup.config.window;
      const int64_t oldest = window > 0 ? std::max<int64_t>(0, p + 1 - window) : 0;
      for (int64_t j = oldest; j <= p; ++j) {
        const double* key = row(setup, k, j, view.keys[p], j * heads + h / group, head_dim);
        double dot = 0;
        for (int d = 0; d < head_dim; ++d) dot += q[d] * key[d];
        weights[j] = dot * setup.scale(layer);
        const double cap = setup.config.softcap;
        if (cap > 0) weights[j] = cap * std::tanh(weights[j] / cap);
        max = std::max(max, weights[j]);
      }
      for (int64_t j = oldest; j <= p; ++j) sum += weights[j] = std::exp(weights[j] - max);
      std::vector<double> mean(head_dim, 0.0);
      for (int64_t j = 0; j <= p; ++j) {
        const double* value = row(setup, v, j, view.values[p], j * heads + h / group, head_dim);
        for (int d = 0; d < head_dim; ++d) mean[d] += weights[j] / sum * value[d];
      }
      for (int d = 0; d < head_dim; ++d) out[at + d] = static_cast<float>(mean[d]);
    }
  }
}

}  // namespace

Outputs brute_force(const Sequence& setup) {
  Outputs out = empty_outputs(setup);
  for (int layer = 0; layer < setup.num_layers(); ++layer) {
    brute_force_layer(setup, layer, out[layer]);
  }
  return out;
}

double max_difference(const Outputs& a, const Outputs& b) {
  double most = 0;
  for (size_t layer = 0; layer < a.size(); ++layer) {
    for (size_t i = 0; i < a[layer].size(); ++i) {
      const double gap = std::fabs(double(a[layer][i]) - double(b[layer][i]));
      if (!(gap <= most)) most = gap;  // a NaN stays
    }
  }
  return most;
}

std::vector<uint8_t> page_bytes(const Sequence& setup, const KvCache& cache) {
  std::vector<uint8_t> bytes;
  const int64_t blocks = setup.layout.blocks(cache.tokens(), setup.config.prompt);
  for (int64_t b = 0; b < blocks; ++b) {
    for (int layer = 0; layer < setup.num_layers(); ++layer) {
      for (bool values : {false, true}) {
        const int64_t token = setup.layout.sinks + b * setup.layout.page_tokens;
        for (const SideLayout& s : runs_of(setup.layout, layer, values)) {
          const uint8_t* page = cache.page(layer, values, token, s.first_head);
          bytes.insert(bytes.end(), page, page + s.page_bytes);
        }
      }
    }
  }
  return bytes;
}

std::vector<int64_t> random_chunks(int64_t tokens, uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::vector<int64_t> sizes;
  for (int64_t done = 0; done < tokens; done += sizes.back()) {
    const int64_t most = rng() % 3 == 0 ? 5 : 90;
    sizes.push_back(1 + static_cast<int64_t>(rng() % most));
  }
  return sizes;
}

}  // namespace kvsweep::cache::testing
