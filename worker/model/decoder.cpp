#include "worker/model/decoder.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "worker/model/parallel.hpp"
#include "worker/model/rows.hpp"

namespace kvsweep::model {
namespace {

constexpr int64_t kLogitRows = 64;  // rows of logits that exist at once
constexpr int64_t kTaskRows = 16;   // rows of one task of row-wise work

// Grows, never shrinks; holds room for the padding rows of Linear::apply.
class Buffer {
 public:
  float* rows(int64_t rows, int64_t width) {
    const size_t need = static_cast<size_t>((rows + kPaddingRows) * width);
    if (data_.size() < need) data_.resize(need);
    return data_.data();
  }

 private:
  std::vector<float> data_;
};

class Decoder final : public Model {
 public:
  Decoder(DecoderConfig config, DecoderWeights weights)
      : config_(std::move(config)),
        geometry_(config_.geometry()),
        weights_(std::move(weights)),
        angles_(config_.ropes.size()),
        past_angles_(config_.ropes.size()) {
    for (const RopeConfig& rope : config_.ropes) tables_.emplace_back(rope, config_.head_dim);
  }

  const ModelGeometry& geometry() const override { return geometry_; }
  int64_t vocab_size() const override { return config_.vocab; }
  bool batch_invariant() const override { return weights_.batch_invariant; }
  bool lengths_agree(int64_t a, int64_t b) const override;
  bool has_key_bias() const override;
  Status forward(const Batch& batch, AttentionSink& attention, LogitSink& logits) override;

 private:
  int64_t query_width() const { return int64_t{config_.heads} * config_.head_dim; }
  int64_t kv_width() const { return int64_t{config_.kv_heads} * config_.head_dim; }
  void look_up_angles(const Batch& batch);
  void embed(const Batch& batch, float* x) const;
  float* before(const std::vector<float>& norm, int64_t rows, float* x);
  void add_delta(const std::vector<float>& norm, int64_t rows, float* delta, float* x) const;
  Status attention_block(int index, int64_t rows, float* x, AttentionSink& attention);
  AttentionCall attention_call(int index, int64_t rows);
  void add_key_bias(const DecoderLayer& layer, int64_t rows, float* qkv) const;
  void place_unbiased_keys(int index, int64_t rows, const float* qkv);
  void split_rows(int index, int64_t rows, float* qkv);
  void place(int rope, int64_t row, const float* in, int heads, float* out) const;
  void normalise_heads(const std::vector<float>& norm, int heads, float* x) const;
  void mlp_block(const DecoderLayer& layer, int64_t rows, float* x);
  Status head_block(const Batch& batch, const float* x, LogitSink& logits);

  DecoderConfig config_;
  ModelGeometry geometry_;
  DecoderWeights weights_;
  std::vector<RopeTables> tables_;                 // of config_.ropes
  std::vector<std::vector<const float*>> angles_;  // [ropes][rows of the batch]
  // [ropes][rows of the batch], of all positions so far
  std::vector<std::vector<const float* const*>> past_angles_;
  Buffer hidden_, normed_, wide_, queries_, keys_, unbiased_keys_, values_, mixed_, delta_, logits_;
};

// work(first, count) over blocks of rows, in parallel.
template <typename Work>
void over_rows(int64_t rows, const Work& work) {
  run_tasks((rows + kTaskRows - 1) / kTaskRows, [&](int64_t task) {
    const int64_t first = task * kTaskRows;
    work(first, std::min(kTaskRows, rows - first));
  });
}

bool Decoder::lengths_agree(int64_t a, int64_t b) const {
  return std::all_of(config_.ropes.begin(), config_.ropes.end(), [&](const RopeConfig& rope) {
    return length_class(rope, a) == length_class(rope, b);
  });
}

void Decoder::look_up_angles(const Batch& batch) {
  for (size_t rope = 0; rope < tables_.size(); ++rope) {
    tables_[rope].trim();
    angles_[rope].resize(batch.tokens.size());
    for (size_t row = 0; row < batch.tokens.size(); ++row) {
      angles_[rope][row] = tables_[rope].row(batch.lengths[row], batch.positions[row]);
    }
    if (!has_key_bias()) continue;
    past_angles_[rope].resize(batch.tokens.size());
    for (size_t row = 0; row < batch.tokens.size(); ++row) {
      past_angles_[rope][row] = tables_[rope].rows(batch.lengths[row]);
    }
  }
}

void Decoder::embed(const Batch& batch, float* x) const {
  for (size_t row = 0; row < batch.tokens.size(); ++row) {
    float* out = x + static_cast<int64_t>(row) * config_.hidden;
    weights_.embedding.widen(batch.tokens[row], 1, out);
    if (config_.embedding_scale != 1.0f) multiply(out, config_.embedding_scale, config_.hidden);
  }
}

// x itself when there is no norm.
float* Decoder::before(const std::vector<float>& norm, int64_t rows, float* x) {
  if (norm.empty()) return x;
  const int64_t hidden = config_.hidden;
  float* normed = normed_.rows(rows, hidden);
  over_rows(rows, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) {
      rms_norm(x + row * hidden, norm.data(), config_.rms_eps, hidden, normed + row * hidden);
    }
  });
  return normed;
}

// x += delta, or its norm when there is one.
void Decoder::add_delta(const std::vector<float>& norm, int64_t rows, float* delta,
                        float* x) const {
  const int64_t hidden = config_.hidden;
  if (!norm.empty()) {
    over_rows(rows, [&](int64_t first, int64_t count) {
      for (int64_t row = first; row < first + count; ++row) {
        float* at = delta + row * hidden;
        rms_norm(at, norm.data(), config_.rms_eps, hidden, at);
      }
    });
  }
  add_to(x, delta, rows * hidden);
}

void Decoder::normalise_heads(const std::vector<float>& norm, int heads, float* x) const {
  const int64_t width = static_cast<int64_t>(norm.size());
  if (width == 0) return;
  for (int64_t at = 0; at < int64_t{heads} * config_.head_dim; at += width) {
    rms_norm(x + at, norm.data(), config_.rms_eps, width, x + at);
  }
}

// Rotates the heads of one row, or copies what does not rotate.
void Decoder::place(int rope, int64_t row, const float* in, int heads, float* out) const {
  const int64_t width = int64_t{heads} * config_.head_dim;
  const int channels = rope < 0 ? 0 : tables_[static_cast<size_t>(rope)].rotary_channels();
  if (channels < config_.head_dim) {
    std::memcpy(out, in, static_cast<size_t>(width) * sizeof(float));
  }
  if (channels == 0) return;
  const float* angles = angles_[static_cast<size_t>(rope)][static_cast<size_t>(row)];
  if (channels == config_.head_dim) {
    rotate(in, angles, heads, channels / 2, out);
    return;
  }
  for (int64_t at = 0; at < width; at += config_.head_dim) {
    rotate(in + at, angles, 1, channels / 2, out + at);
  }
}

// Norms of keys are not linear: what they change cannot be taken apart.
bool Decoder::has_key_bias() const {
  return std::all_of(weights_.layers.begin(), weights_.layers.end(), [](const DecoderLayer& layer) {
    return !layer.k_bias.empty() && layer.norms.k_norm.empty();
  });
}

void Decoder::add_key_bias(const DecoderLayer& layer, int64_t rows, float* qkv) const {
  const int64_t width = layer.qkv.out();
  for (int64_t row = 0; row < rows; ++row) {
    add_to(qkv + row * width + query_width(), layer.k_bias.data(), kv_width());
  }
}

void Decoder::place_unbiased_keys(int index, int64_t rows, const float* qkv) {
  const int rope = config_.layers[static_cast<size_t>(index)].rope;
  const int64_t width = query_width() + 2 * kv_width();
  float* out = unbiased_keys_.rows(rows, kv_width());
  over_rows(rows, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) {
      place(rope, row, qkv + row * width + query_width(), config_.kv_heads, out + row * kv_width());
    }
  });
}

void Decoder::split_rows(int index, int64_t rows, float* qkv) {
  const DecoderLayer& layer = weights_.layers[static_cast<size_t>(index)];
  const int rope = config_.layers[static_cast<size_t>(index)].rope;
  const int64_t q_width = query_width();
  const int64_t k_width = kv_width();
  float* q = queries_.rows(rows, q_width);
  float* k = keys_.rows(rows, k_width);
  float* v = values_.rows(rows, k_width);
  over_rows(rows, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) {
      float* in = qkv + row * (q_width + 2 * k_width);
      normalise_heads(layer.norms.q_norm, config_.heads, in);
      normalise_heads(layer.norms.k_norm, config_.kv_heads, in + q_width);
      place(rope, row, in, config_.heads, q + row * q_width);
      place(rope, row, in + q_width, config_.kv_heads, k + row * k_width);
      std::memcpy(v + row * k_width, in + q_width + k_width,
                  static_cast<size_t>(k_width) * sizeof(float));
    }
  });
}

AttentionCall Decoder::attention_call(int index, int64_t rows) {
  AttentionCall call;
  call.layer = index;
  call.rows = rows;
  call.heads = config_.heads;
  call.kv_heads = config_.kv_heads;
  call.head_dim = config_.head_dim;
  call.scale = config_.query_scale;
  call.window = config_.layers[static_cast<size_t>(index)].window;
  call.softcap = config_.score_cap;
  call.queries = queries_.rows(rows, query_width());
  call.keys = keys_.rows(rows, kv_width());
  call.values = values_.rows(rows, kv_width());
  call.out = mixed_.rows(rows, query_width());
  const int rope = config_.layers[static_cast<size_t>(index)].rope;
  if (has_key_bias()) {
    call.key_bias = weights_.layers[static_cast<size_t>(index)].k_bias.data();
    if (rope >= 0) {
      call.rotary_channels = tables_[static_cast<size_t>(rope)].rotary_channels();
      call.angles = past_angles_[static_cast<size_t>(rope)].data();
    }
  }
  return call;
}

Status Decoder::attention_block(int index, int64_t rows, float* x, AttentionSink& attention) {
  const DecoderLayer& layer = weights_.layers[static_cast<size_t>(index)];
  const float* normed = before(layer.norms.before_attention, rows, x);
  float* qkv = wide_.rows(rows, layer.qkv.out());
  layer.qkv.apply(normed, rows, qkv);
  const bool unbiased = has_key_bias() && attention.wants_unbiased_keys(index);
  if (unbiased) place_unbiased_keys(index, rows, qkv);
  if (!layer.k_bias.empty()) add_key_bias(layer, rows, qkv);
  split_rows(index, rows, qkv);
  AttentionCall call = attention_call(index, rows);
  if (unbiased) call.unbiased_keys = unbiased_keys_.rows(rows, kv_width());
  KVSWEEP_TRY(attention.attend(call));
  float* delta = delta_.rows(rows, config_.hidden);
  layer.out.apply(call.out, rows, delta);
  add_delta(layer.norms.after_attention, rows, delta, x);
  return {};
}

void Decoder::mlp_block(const DecoderLayer& layer, int64_t rows, float* x) {
  const int64_t inner = config_.intermediate;
  const float* normed = before(layer.norms.before_mlp, rows, x);
  float* gate_up = wide_.rows(rows, 2 * inner);
  layer.gate_up.apply(normed, rows, gate_up);
  float* product = mixed_.rows(rows, inner);
  const auto gated = config_.activation == Activation::silu ? silu_times : gelu_tanh_times;
  over_rows(rows, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) {
      const float* gate = gate_up + row * 2 * inner;
      gated(gate, gate + inner, inner, product + row * inner);
    }
  });
  float* delta = delta_.rows(rows, config_.hidden);
  layer.down.apply(product, rows, delta);
  add_delta(layer.norms.after_mlp, rows, delta, x);
}

Status Decoder::head_block(const Batch& batch, const float* x, LogitSink& logits) {
  const int64_t wanted = static_cast<int64_t>(batch.logit_rows.size());
  for (int64_t first = 0; first < wanted; first += kLogitRows) {
    const int64_t count = std::min(kLogitRows, wanted - first);
    float* normed = normed_.rows(count, config_.hidden);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = batch.logit_rows[static_cast<size_t>(first + i)];
      rms_norm(x + row * config_.hidden, weights_.norm.data(), config_.rms_eps, config_.hidden,
               normed + i * config_.hidden);
    }
    float* out = logits_.rows(count, config_.vocab);
    weights_.head.apply(normed, count, out);
    if (config_.logit_cap > 0) soft_cap(out, config_.logit_cap, count * config_.vocab);
    KVSWEEP_TRY(logits.logits(first, count, out));
  }
  return {};
}

Status Decoder::forward(const Batch& batch, AttentionSink& attention, LogitSink& logits) {
  const int64_t rows = static_cast<int64_t>(batch.tokens.size());
  if (rows == 0) return {};
  if (batch.lengths.size() != batch.tokens.size()) {
    throw std::logic_error("Batch::lengths must have one entry for each row");
  }
  look_up_angles(batch);
  float* x = hidden_.rows(rows, config_.hidden);
  embed(batch, x);
  for (size_t index = 0; index < weights_.layers.size(); ++index) {
    KVSWEEP_TRY(attention_block(static_cast<int>(index), rows, x, attention));
    mlp_block(weights_.layers[index], rows, x);
  }
  return head_block(batch, x, logits);
}

}  // namespace

Result<std::unique_ptr<Model>> load_decoder(const std::string& model_dir, DecoderConfig config) {
  KVSWEEP_ASSIGN(DecoderWeights weights, read_decoder_weights(model_dir, config));
  return std::unique_ptr<Model>(std::make_unique<Decoder>(std::move(config), std::move(weights)));
}

}  // namespace kvsweep::model
