// The Llama family (Touvron et al. 2023; Grouped-query attention, Ainslie et al. 2023):
//   x  = embedding[token]
//   for each layer: x += O attention(RoPE(Q n), RoPE(K n), V n),  n = rms_norm(x)
//                   x += D (silu(G m) * U m),                      m = rms_norm(x)
//   logits = head rms_norm(x)
// Q, K and V are one matrix here, as are G and U: fewer and wider GEMMs, the same numbers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <optional>

#include "core/text.hpp"
#include "worker/model/family.hpp"
#include "worker/model/gemm.hpp"
#include "worker/model/llama_config.hpp"
#include "worker/model/memory.hpp"
#include "worker/model/parallel.hpp"
#include "worker/model/rows.hpp"
#include "worker/model/weights.hpp"

namespace kvsweep::model {
namespace {

constexpr int64_t kLogitRows = 64;  // rows of logits that exist at once
constexpr int64_t kTaskRows = 16;   // rows of one task of row-wise work

struct Layer {
  std::vector<float> attention_norm;  // [hidden]
  std::vector<float> mlp_norm;        // [hidden]
  Linear qkv;                         // hidden -> (heads + 2 kv_heads) head_dim
  Linear out;                         // heads head_dim -> hidden
  Linear gate_up;                     // hidden -> 2 intermediate
  Linear down;                        // intermediate -> hidden
};

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

class Llama final : public Model {
 public:
  Llama(LlamaConfig config, StoredMatrix embedding, std::vector<Layer> layers,
        std::vector<float> norm, Linear head, bool batch_invariant)
      : config_(std::move(config)),
        geometry_(config_.geometry()),
        embedding_(std::move(embedding)),
        layers_(std::move(layers)),
        norm_(std::move(norm)),
        head_(std::move(head)),
        rope_(config_.rope, config_.head_dim),
        batch_invariant_(batch_invariant) {}

  const ModelGeometry& geometry() const override { return geometry_; }
  int64_t vocab_size() const override { return config_.vocab; }
  bool batch_invariant() const override { return batch_invariant_; }
  Status forward(const Batch& batch, AttentionSink& attention, LogitSink& logits) override;

 private:
  int64_t query_width() const { return int64_t{config_.heads} * config_.head_dim; }
  int64_t kv_width() const { return int64_t{config_.kv_heads} * config_.head_dim; }
  void embed(const Batch& batch, float* x) const;
  Status attention_block(int layer, const Batch& batch, float* x, AttentionSink& attention);
  void split_rows(const Batch& batch, const float* qkv, float* q, float* k, float* v) const;
  void mlp_block(const Layer& layer, int64_t rows, float* x);
  Status head_block(const Batch& batch, const float* x, LogitSink& logits);

  LlamaConfig config_;
  ModelGeometry geometry_;
  StoredMatrix embedding_;
  std::vector<Layer> layers_;
  std::vector<float> norm_;
  Linear head_;
  RopeTable rope_;
  bool batch_invariant_;
  Buffer hidden_, normed_, wide_, queries_, keys_, values_, mixed_, delta_, logits_;
};

// work(first, count) over blocks of rows, in parallel.
template <typename Work>
void over_rows(int64_t rows, const Work& work) {
  run_tasks((rows + kTaskRows - 1) / kTaskRows, [&](int64_t task) {
    const int64_t first = task * kTaskRows;
    work(first, std::min(kTaskRows, rows - first));
  });
}

void Llama::embed(const Batch& batch, float* x) const {
  for (size_t row = 0; row < batch.tokens.size(); ++row) {
    embedding_.widen(batch.tokens[row], 1, x + static_cast<int64_t>(row) * config_.hidden);
  }
}

void Llama::split_rows(const Batch& batch, const float* qkv, float* q, float* k, float* v) const {
  const int64_t half = config_.head_dim / 2;
  const int64_t q_width = query_width();
  const int64_t k_width = kv_width();
  const int64_t rows = static_cast<int64_t>(batch.tokens.size());
  over_rows(rows, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) {
      const float* in = qkv + row * (q_width + 2 * k_width);
      const float* angles = rope_.row(batch.positions[static_cast<size_t>(row)]);
      rotate(in, angles, config_.heads, half, q + row * q_width);
      rotate(in + q_width, angles, config_.kv_heads, half, k + row * k_width);
      std::memcpy(v + row * k_width, in + q_width + k_width,
                  static_cast<size_t>(k_width) * sizeof(float));
    }
  });
}

Status Llama::attention_block(int index, const Batch& batch, float* x, AttentionSink& attention) {
  const Layer& layer = layers_[static_cast<size_t>(index)];
  const int64_t rows = static_cast<int64_t>(batch.tokens.size());
  const int64_t hidden = config_.hidden;
  float* normed = normed_.rows(rows, hidden);
  over_rows(rows, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) {
      rms_norm(x + row * hidden, layer.attention_norm.data(), config_.rms_eps, hidden,
               normed + row * hidden);
    }
  });
  float* qkv = wide_.rows(rows, layer.qkv.out());
  layer.qkv.apply(normed, rows, qkv);

  AttentionCall call;
  call.layer = index;
  call.rows = rows;
  call.heads = config_.heads;
  call.kv_heads = config_.kv_heads;
  call.head_dim = config_.head_dim;
  call.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(config_.head_dim)));
  float* q = queries_.rows(rows, query_width());
  float* k = keys_.rows(rows, kv_width());
  float* v = values_.rows(rows, kv_width());
  call.queries = q;
  call.keys = k;
  call.values = v;
  call.out = mixed_.rows(rows, query_width());
  split_rows(batch, qkv, q, k, v);
  KVSWEEP_TRY(attention.attend(call));

  float* delta = delta_.rows(rows, hidden);
  layer.out.apply(call.out, rows, delta);
  add_to(x, delta, rows * hidden);
  return {};
}

void Llama::mlp_block(const Layer& layer, int64_t rows, float* x) {
  const int64_t hidden = config_.hidden;
  const int64_t inner = config_.intermediate;
  float* normed = normed_.rows(rows, hidden);
  over_rows(rows, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) {
      rms_norm(x + row * hidden, layer.mlp_norm.data(), config_.rms_eps, hidden,
               normed + row * hidden);
    }
  });
  float* gate_up = wide_.rows(rows, 2 * inner);
  layer.gate_up.apply(normed, rows, gate_up);
  float* product = mixed_.rows(rows, inner);
  over_rows(rows, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) {
      const float* gate = gate_up + row * 2 * inner;
      silu_times(gate, gate + inner, inner, product + row * inner);
    }
  });
  float* delta = delta_.rows(rows, hidden);
  layer.down.apply(product, rows, delta);
  add_to(x, delta, rows * hidden);
}

Status Llama::head_block(const Batch& batch, const float* x, LogitSink& logits) {
  const int64_t wanted = static_cast<int64_t>(batch.logit_rows.size());
  for (int64_t first = 0; first < wanted; first += kLogitRows) {
    const int64_t count = std::min(kLogitRows, wanted - first);
    float* normed = normed_.rows(count, config_.hidden);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = batch.logit_rows[static_cast<size_t>(first + i)];
      rms_norm(x + row * config_.hidden, norm_.data(), config_.rms_eps, config_.hidden,
               normed + i * config_.hidden);
    }
    float* out = logits_.rows(count, config_.vocab);
    head_.apply(normed, count, out);
    KVSWEEP_TRY(logits.logits(first, count, out));
  }
  return {};
}

Status Llama::forward(const Batch& batch, AttentionSink& attention, LogitSink& logits) {
  const int64_t rows = static_cast<int64_t>(batch.tokens.size());
  if (rows == 0) return {};
  rope_.reserve(1 + *std::max_element(batch.positions.begin(), batch.positions.end()));
  float* x = hidden_.rows(rows, config_.hidden);
  embed(batch, x);
  for (int index = 0; index < config_.layers; ++index) {
    KVSWEEP_TRY(attention_block(index, batch, x, attention));
    mlp_block(layers_[static_cast<size_t>(index)], rows, x);
  }
  return head_block(batch, x, logits);
}

// Reads matrices that are stored apart and packs them as one.
class Packer {
 public:
  Packer(WeightFiles& files, Gemm& gemm) : files_(files), gemm_(gemm) {}

  struct Part {
    std::string name;  // without ".weight"
    int64_t out = 0;
  };
  Result<Linear> linear(const std::vector<Part>& parts, int64_t in, bool biased) {
    int64_t out = 0;
    for (const Part& part : parts) out += part.out;
    weight_.resize(static_cast<size_t>(out * in));
    bias_.resize(static_cast<size_t>(out));
    int64_t row = 0;
    for (const Part& part : parts) {
      KVSWEEP_TRY(files_.read(part.name + ".weight", {part.out, in}, weight_.data() + row * in));
      if (biased) KVSWEEP_TRY(files_.read(part.name + ".bias", {part.out}, bias_.data() + row));
      row += part.out;
    }
    return gemm_.pack(weight_.data(), out, in, biased ? bias_.data() : nullptr);
  }
  Result<std::vector<float>> vector(const std::string& name, int64_t size) {
    std::vector<float> values(static_cast<size_t>(size));
    KVSWEEP_TRY(files_.read(name, {size}, values.data()));
    return values;
  }

 private:
  WeightFiles& files_;
  Gemm& gemm_;
  std::vector<float> weight_;
  std::vector<float> bias_;
};

Result<Layer> read_layer(Packer& packer, const LlamaConfig& config, int index) {
  const std::string base = fmt::format("model.layers.{}.", index);
  const std::string attention = base + "self_attn.";
  const std::string mlp = base + "mlp.";
  const int64_t q = int64_t{config.heads} * config.head_dim;
  const int64_t kv = int64_t{config.kv_heads} * config.head_dim;
  KVSWEEP_ASSIGN(auto attention_norm,
                 packer.vector(base + "input_layernorm.weight", config.hidden));
  KVSWEEP_ASSIGN(auto mlp_norm,
                 packer.vector(base + "post_attention_layernorm.weight", config.hidden));
  KVSWEEP_ASSIGN(Linear qkv, packer.linear({{attention + "q_proj", q},
                                            {attention + "k_proj", kv},
                                            {attention + "v_proj", kv}},
                                           config.hidden, config.attention_bias));
  KVSWEEP_ASSIGN(Linear out,
                 packer.linear({{attention + "o_proj", config.hidden}}, q, config.attention_bias));
  KVSWEEP_ASSIGN(Linear gate_up, packer.linear({{mlp + "gate_proj", config.intermediate},
                                                {mlp + "up_proj", config.intermediate}},
                                               config.hidden, config.mlp_bias));
  KVSWEEP_ASSIGN(Linear down, packer.linear({{mlp + "down_proj", config.hidden}},
                                            config.intermediate, config.mlp_bias));
  return Layer{std::move(attention_norm), std::move(mlp_norm), std::move(qkv), std::move(out),
               std::move(gate_up),        std::move(down)};
}

constexpr const char* kEmbedding = "model.embed_tokens";
constexpr const char* kHead = "lm_head";

Status check_memory(const WeightFiles& files, const std::string& model_dir) {
  // Packed weights are fp32; the embedding table stays beside the head made from it.
  const int64_t need = files.elements() * 5;
  const int64_t have = available_memory();
  if (need <= have) return {};
  return Error{ErrorCode::oom,
               fmt::format("the weights of {} need about {} in fp32, but only {} of memory are "
                           "free; use a machine with more memory or a smaller model",
                           model_dir, human_bytes(static_cast<double>(need)),
                           human_bytes(static_cast<double>(have)))};
}

Status settle_tied_head(WeightFiles& files) {
  const std::string head = std::string(kHead) + ".weight";
  if (!files.has(head)) return {};
  if (!files.same_bytes(head, std::string(kEmbedding) + ".weight")) {
    return bad_input(
        "lm_head.weight differs from model.embed_tokens.weight although config.json "
        "says tie_word_embeddings; set that to false or remove the tensor");
  }
  files.ignore(head);
  return {};
}

}  // namespace

Result<std::unique_ptr<Model>> load_llama(const FamilyContext& context) {
  KVSWEEP_ASSIGN(const LlamaConfig config, read_llama_config(context.config));
  if (checking_only()) return std::unique_ptr<Model>();
  KVSWEEP_ASSIGN(WeightFiles files, WeightFiles::open(context.model_dir));
  KVSWEEP_TRY(check_memory(files, context.model_dir));
  if (config.tied_embeddings) KVSWEEP_TRY(settle_tied_head(files));

  Gemm gemm;
  Packer packer(files, gemm);
  std::vector<Layer> layers;
  for (int index = 0; index < config.layers; ++index) {
    KVSWEEP_ASSIGN(Layer layer, read_layer(packer, config, index));
    layers.push_back(std::move(layer));
  }
  KVSWEEP_ASSIGN(auto norm, packer.vector("model.norm.weight", config.hidden));
  KVSWEEP_ASSIGN(StoredMatrix embedding,
                 files.stored(std::string(kEmbedding) + ".weight", config.vocab, config.hidden));
  KVSWEEP_ASSIGN(Linear head,
                 packer.linear({{config.tied_embeddings ? kEmbedding : kHead, config.vocab}},
                               config.hidden, false));
  KVSWEEP_TRY(files.check_all_used());
  return std::unique_ptr<Model>(std::make_unique<Llama>(config, std::move(embedding),
                                                        std::move(layers), std::move(norm),
                                                        std::move(head), gemm.batch_invariant()));
}

}  // namespace kvsweep::model
