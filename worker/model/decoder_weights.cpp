#include <fmt/format.h>

#include "core/text.hpp"
#include "worker/model/decoder.hpp"
#include "worker/model/memory.hpp"

namespace kvsweep::model {
namespace {

constexpr const char* kEmbedding = "model.embed_tokens";
constexpr const char* kHead = "lm_head";

// Reads matrices that are stored apart and packs them as one.
class Packer {
 public:
  Packer(WeightFiles& files, bool norm_plus_one) : files_(files), plus_one_(norm_plus_one) {}

  bool batch_invariant() const { return gemm_.batch_invariant(); }

  struct Part {
    std::string name;  // without ".weight"
    int64_t out = 0;
  };
  // Rows of a bias that the matrix is not to add: they move to `rows`.
  struct HeldBack {
    int64_t first = 0;
    std::vector<float> rows;
  };
  Result<Linear> linear(const std::vector<Part>& parts, int64_t in, bool biased,
                        HeldBack* held = nullptr) {
    int64_t out = 0;
    for (const Part& part : parts) out += part.out;
    // Sizes come from config.json: nothing larger than the files is ever allocated.
    if (out * in > files_.elements()) {
      return bad_input(
          fmt::format("tensor {}.weight [{}, {}], which config.json calls for, is "
                      "larger than all weight files together",
                      parts.front().name, parts.front().out, in));
    }
    weight_.resize(static_cast<size_t>(out * in));
    bias_.resize(static_cast<size_t>(out));
    int64_t row = 0;
    for (const Part& part : parts) {
      KVSWEEP_TRY(files_.read(part.name + ".weight", {part.out, in}, weight_.data() + row * in));
      if (biased) KVSWEEP_TRY(files_.read(part.name + ".bias", {part.out}, bias_.data() + row));
      row += part.out;
    }
    if (biased && held != nullptr) {
      const auto from = bias_.begin() + held->first;
      std::copy_n(from, held->rows.size(), held->rows.begin());
      std::fill_n(from, held->rows.size(), 0.0f);
    }
    return gemm_.pack(weight_.data(), out, in, biased ? bias_.data() : nullptr);
  }

  Result<std::vector<float>> norm(const std::string& name, int64_t size) {
    std::vector<float> values(static_cast<size_t>(size));
    KVSWEEP_TRY(files_.read(name + ".weight", {size}, values.data()));
    if (plus_one_) {
      for (float& value : values) value = 1.0f + value;
    }
    return values;
  }

 private:
  WeightFiles& files_;
  bool plus_one_;
  Gemm gemm_;
  std::vector<float> weight_;
  std::vector<float> bias_;
};

Result<LayerNorms> read_norms(Packer& packer, const DecoderConfig& config,
                              const std::string& base) {
  LayerNorms out;
  const auto read = [&](const char* name, int64_t size, std::vector<float>& norm) -> Status {
    if (name == nullptr) return {};
    KVSWEEP_ASSIGN(norm, packer.norm(base + name, size));
    return {};
  };
  KVSWEEP_TRY(read(config.norms.before_attention, config.hidden, out.before_attention));
  KVSWEEP_TRY(read(config.norms.after_attention, config.hidden, out.after_attention));
  KVSWEEP_TRY(read(config.norms.before_mlp, config.hidden, out.before_mlp));
  KVSWEEP_TRY(read(config.norms.after_mlp, config.hidden, out.after_mlp));
  if (config.qk_norm == QkNorm::none) return out;
  const bool all = config.qk_norm == QkNorm::all_heads;
  const int64_t dim = config.head_dim;
  KVSWEEP_TRY(read("self_attn.q_norm", all ? config.heads * dim : dim, out.q_norm));
  KVSWEEP_TRY(read("self_attn.k_norm", all ? config.kv_heads * dim : dim, out.k_norm));
  return out;
}

std::vector<Packer::Part> qkv_parts(const DecoderConfig& config, const std::string& base) {
  const int64_t q = int64_t{config.heads} * config.head_dim;
  const int64_t kv = int64_t{config.kv_heads} * config.head_dim;
  const std::string attention = base + "self_attn.";
  if (config.fused) return {{attention + "qkv_proj", q + 2 * kv}};
  return {{attention + "q_proj", q}, {attention + "k_proj", kv}, {attention + "v_proj", kv}};
}

std::vector<Packer::Part> gate_up_parts(const DecoderConfig& config, const std::string& base) {
  if (config.fused) return {{base + "mlp.gate_up_proj", 2 * config.intermediate}};
  return {{base + "mlp.gate_proj", config.intermediate},
          {base + "mlp.up_proj", config.intermediate}};
}

Result<DecoderLayer> read_layer(Packer& packer, const DecoderConfig& config, size_t index) {
  const std::string base = fmt::format("model.layers.{}.", index);
  const int64_t q = int64_t{config.heads} * config.head_dim;
  KVSWEEP_ASSIGN(LayerNorms norms, read_norms(packer, config, base));
  Packer::HeldBack k_bias{q, {}};
  if (config.qkv_bias) k_bias.rows.resize(static_cast<size_t>(config.kv_heads) * config.head_dim);
  KVSWEEP_ASSIGN(Linear qkv,
                 packer.linear(qkv_parts(config, base), config.hidden, config.qkv_bias, &k_bias));
  KVSWEEP_ASSIGN(Linear out,
                 packer.linear({{base + "self_attn.o_proj", config.hidden}}, q, config.out_bias));
  KVSWEEP_ASSIGN(Linear gate_up,
                 packer.linear(gate_up_parts(config, base), config.hidden, config.mlp_bias));
  KVSWEEP_ASSIGN(Linear down, packer.linear({{base + "mlp.down_proj", config.hidden}},
                                            config.intermediate, config.mlp_bias));
  return DecoderLayer{std::move(norms),   std::move(qkv),  std::move(out),
                      std::move(gate_up), std::move(down), std::move(k_bias.rows)};
}

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

Result<DecoderWeights> read_decoder_weights(const std::string& model_dir,
                                            const DecoderConfig& config) {
  KVSWEEP_ASSIGN(WeightFiles files, WeightFiles::open(model_dir));
  KVSWEEP_TRY(check_memory(files, model_dir));
  if (config.tied_embeddings) KVSWEEP_TRY(settle_tied_head(files));

  Packer packer(files, config.norm_plus_one);
  std::vector<DecoderLayer> layers;
  for (size_t index = 0; index < config.layers.size(); ++index) {
    KVSWEEP_ASSIGN(DecoderLayer layer, read_layer(packer, config, index));
    layers.push_back(std::move(layer));
  }
  KVSWEEP_ASSIGN(auto norm, packer.norm("model.norm", config.hidden));
  KVSWEEP_ASSIGN(StoredMatrix embedding,
                 files.stored(std::string(kEmbedding) + ".weight", config.vocab, config.hidden));
  KVSWEEP_ASSIGN(Linear head,
                 packer.linear({{config.tied_embeddings ? kEmbedding : kHead, config.vocab}},
                               config.hidden, false));
  KVSWEEP_TRY(files.check_all_used());
  return DecoderWeights{std::move(embedding), std::move(layers), std::move(norm), std::move(head),
                        packer.batch_invariant()};
}

}  // namespace kvsweep::model
