// Model: a transformer from a Hugging Face folder, computing in fp32 on the CPU. It knows nothing
// of caches: attention is the caller's (AttentionSink), so that every sequence of a batch can have
// its own packed KV cache.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/geometry.hpp"
#include "core/result.hpp"

namespace kvsweep::model {

// One forward pass over the rows (tokens) of any number of sequences, one after the other.
struct Batch {
  std::vector<int32_t> tokens;     // [rows], ids below vocab_size()
  std::vector<int32_t> positions;  // [rows], in the row's own sequence, from 0
  // [rows], tokens that the row's sequence may have in the end: some RoPE types depend on it. The
  // same for all rows that a sequence ever has, in whatever batches.
  std::vector<int32_t> lengths;
  std::vector<int32_t> logit_rows;  // rows whose logits are wanted, ascending
};

// What one layer asks of attention. Pointers are valid during the call.
struct AttentionCall {
  int layer = 0;
  int64_t rows = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  float scale = 1.0f;              // multiplies q·k
  int64_t window = 0;              // tokens a query sees, itself included; 0: all
  float softcap = 0.0f;            // scaled scores s become cap tanh(s / cap); 0: no cap
  const float* queries = nullptr;  // [rows, heads, head_dim], after RoPE
  const float* keys = nullptr;     // [rows, kv_heads, head_dim], after RoPE
  const float* values = nullptr;   // [rows, kv_heads, head_dim]
  float* out = nullptr;            // [rows, heads, head_dim], all of it must be written

  // The bias b of the key projection, where it can be left out: RoPE is linear, so a key is
  // RoPE(W x, p) + RoPE(b, p). nullptr where there is none, or where keys are normalised after it.
  const float* key_bias = nullptr;       // [kv_heads, head_dim], before RoPE
  const float* unbiased_keys = nullptr;  // [rows, kv_heads, head_dim], RoPE(W x, p), where the sink
                                         // wants them beside `keys`
  int rotary_channels = 0;               // that RoPE turns, in pairs (i, i + rotary_channels / 2)
  // angles[row][p] of positions 0 .. the row's own: rotary_channels / 2 cosines, then the sines, as
  // the row's sequence has them. nullptr without rotation.
  const float* const* const* angles = nullptr;
};

class AttentionSink {
 public:
  virtual ~AttentionSink() = default;
  // An error ends the forward pass and is its result.
  virtual Status attend(const AttentionCall& call) = 0;
  // Whether it wants this layer's keys without their bias too. Asked before each call of `attend`;
  // granted where the model has a key bias (Model::has_key_bias).
  virtual bool wants_unbiased_keys(int layer) const {
    static_cast<void>(layer);
    return false;
  }
};

// Receives logits in blocks, so that [rows, vocab] never exists at once.
class LogitSink {
 public:
  virtual ~LogitSink() = default;
  // logits [count, vocab] of batch.logit_rows[first .. first + count); valid during the call.
  virtual Status logits(int64_t first, int64_t count, const float* logits) = 0;
};

// Not thread-safe: a forward pass uses buffers of the model. It runs on `LoadOptions::threads`
// threads, whose number never changes a result.
class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelGeometry& geometry() const = 0;
  virtual int64_t vocab_size() const = 0;

  // Whether a row's results were found, at load and for the shapes of this model, not to depend on
  // how many rows are computed together or where the row stands among them.
  virtual bool batch_invariant() const = 0;

  // Whether two sequences that differ only in their Batch::lengths have equal keys at equal
  // positions, so that one may take over the other's.
  virtual bool lengths_agree(int64_t a, int64_t b) const = 0;

  // Whether every layer has a key bias that AttentionCall can give apart from the keys.
  virtual bool has_key_bias() const = 0;

  virtual Status forward(const Batch& batch, AttentionSink& attention, LogitSink& logits) = 0;
};

struct LoadOptions {
  int threads = 1;
};

// Reads DIR/config.json and the weights. bad_input names file, field or tensor, what was found and
// what is expected; oom when the weights in fp32 exceed the memory that is free.
Result<std::unique_ptr<Model>> load_model(const std::string& model_dir, const LoadOptions& options);

// What load_model would refuse before it reads weights: the folder, config.json, the family's
// rules, headers and sizes of the weight files. Cheap, whatever the model's size.
Status check_model(const std::string& model_dir);

// Architectures that load_model knows, as config.json spells them.
std::vector<std::string> architectures();

}  // namespace kvsweep::model
