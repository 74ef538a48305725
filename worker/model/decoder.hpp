// One decoder for all families: what differs between them is data (DecoderConfig).
//   x  = embedding[token] s_e
//   for each layer: x += A2(O attention(RoPE(N_q(Q n)), RoPE(N_k(K n)), V n)),  n = A1(x)
//                   x += M2(D (act(G m) * U m)),                                m = M1(x)
//   logits = cap(head N(x))
// A1, A2, M1, M2, N_q, N_k are RMS norms that a family has or has not, N one that all have, act is
// silu (Llama: Touvron et al. 2023, eq. SwiGLU) or gelu_tanh (Gemma 2: Gemma team 2024).
// Q, K and V are one matrix here, as are G and U: fewer and wider GEMMs, the same numbers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "worker/model/decoder_config.hpp"
#include "worker/model/gemm.hpp"
#include "worker/model/model.hpp"
#include "worker/model/rope.hpp"
#include "worker/model/weights.hpp"

namespace kvsweep::model {

// Those that the family lacks are empty.
struct LayerNorms {
  std::vector<float> before_attention;  // [hidden]
  std::vector<float> after_attention;   // [hidden]
  std::vector<float> before_mlp;        // [hidden]
  std::vector<float> after_mlp;         // [hidden]
  std::vector<float> q_norm;            // [head_dim] or [heads head_dim]
  std::vector<float> k_norm;            // [head_dim] or [kv_heads head_dim]
};

struct DecoderLayer {
  LayerNorms norms;
  Linear qkv;                 // hidden -> (heads + 2 kv_heads) head_dim
  Linear out;                 // heads head_dim -> hidden
  Linear gate_up;             // hidden -> 2 intermediate
  Linear down;                // intermediate -> hidden
  std::vector<float> k_bias;  // [kv_heads head_dim], which qkv does not add; empty: none
};

struct DecoderWeights {
  StoredMatrix embedding;  // [vocab, hidden]
  std::vector<DecoderLayer> layers;
  std::vector<float> norm;  // [hidden]
  Linear head;              // hidden -> vocab
  bool batch_invariant = false;
};

// Reads the weights that `config` calls for. Errors as load_model.
Result<DecoderWeights> read_decoder_weights(const std::string& model_dir,
                                            const DecoderConfig& config);

Result<std::unique_ptr<Model>> load_decoder(const std::string& model_dir, DecoderConfig config);

}  // namespace kvsweep::model
