#include "worker/model/gguf_names.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

namespace kvsweep::model {
namespace {

struct Pair {
  std::string_view gguf;
  std::string_view hugging_face;
};

constexpr Pair kTop[] = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
};

// The parts of a block that have one name in all architectures.
constexpr Pair kBlock[] = {
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_qkv", "self_attn.qkv_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"attn_norm", "input_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_down", "mlp.down_proj"},
    {"post_attention_norm", "post_attention_layernorm"},
    {"post_ffw_norm", "post_feedforward_layernorm"},
};

// What the configuration already says.
constexpr std::string_view kConsumed[] = {"rope_freqs.weight", "rope_factors_long.weight",
                                          "rope_factors_short.weight"};

bool is_gemma(const std::string& architecture) {
  return architecture == "gemma2" || architecture == "gemma3";
}

// llama.cpp's LlamaModel and those derived from it.
bool interleaves(const std::string& architecture) {
  return architecture == "llama" || architecture == "smollm3";
}

std::optional<std::string_view> find(const Pair* first, const Pair* last, std::string_view name) {
  const Pair* at = std::find_if(first, last, [&](const Pair& pair) { return pair.gguf == name; });
  if (at == last) return std::nullopt;
  return at->hugging_face;
}

std::optional<std::string_view> block_part(const std::string& architecture, std::string_view part) {
  if (part == "ffn_norm") {
    return is_gemma(architecture) ? "pre_feedforward_layernorm" : "post_attention_layernorm";
  }
  if (part == "ffn_up") return architecture == "phi3" ? "mlp.gate_up_proj" : "mlp.up_proj";
  return find(std::begin(kBlock), std::end(kBlock), part);
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 9 && (text.size() == 1 || text[0] != '0') &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// {blk.3, attn_q, .weight} of blk.3.attn_q.weight; the middle is empty at the top.
struct Parts {
  std::string_view layer;
  std::string_view part;
  std::string_view suffix;
};
std::optional<Parts> split(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  Parts parts{"", name.substr(0, dot), name.substr(dot)};
  if (parts.suffix != ".weight" && parts.suffix != ".bias") return std::nullopt;
  if (!parts.part.starts_with("blk.")) return parts;
  const size_t end = parts.part.find('.', 4);
  if (end == std::string_view::npos || !is_number(parts.part.substr(4, end - 4))) {
    return std::nullopt;
  }
  parts.layer = parts.part.substr(4, end - 4);
  parts.part.remove_prefix(end + 1);
  return parts;
}

GgufChange change_of(const std::string& architecture, std::string_view part,
                     std::string_view suffix) {
  if (interleaves(architecture) && part == "attn_q") return GgufChange::query_rows;
  if (interleaves(architecture) && part == "attn_k") return GgufChange::key_rows;
  const bool norm = part.ends_with("norm") && suffix == ".weight";
  return is_gemma(architecture) && norm ? GgufChange::plus_one : GgufChange::none;
}

}  // namespace

GgufName hugging_face_name(const std::string& architecture, const std::string& name) {
  if (std::find(std::begin(kConsumed), std::end(kConsumed), name) != std::end(kConsumed)) {
    return {name, GgufChange::consumed};
  }
  const auto parts = split(name);
  if (!parts) return {name, GgufChange::none};
  const auto known = parts->layer.empty() ? find(std::begin(kTop), std::end(kTop), parts->part)
                                          : block_part(architecture, parts->part);
  if (!known) return {name, GgufChange::none};
  std::string out;
  if (!parts->layer.empty()) out = "model.layers." + std::string(parts->layer) + ".";
  out += std::string(*known) + std::string(parts->suffix);
  return {out, change_of(architecture, parts->part, parts->suffix)};
}

}  // namespace kvsweep::model
