#!/usr/bin/env python3
"""Write the tiny random Llama models of the tests and what transformers computes with them.

    python3 tests/worker/model/make_tiny_models.py

Needs torch, transformers and safetensors. Writes tests/worker/model/tiny/<variant>/ (config.json,
weights) and tests/worker/model/tiny/golden.json. Together the variants cover: tied and untied
embeddings, biases, grouped and ungrouped heads, a head size that is not hidden / heads, both
spellings of RoPE with all its types, F32, F16 and BF16, one file and shards.
"""
import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import LlamaForCausalLM

HERE = Path(__file__).resolve().parent / "tiny"
VOCAB = 67
COMMON = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
          "vocab_size": VOCAB, "bos_token_id": 1, "eos_token_id": 2, "rms_norm_eps": 1e-5}
VARIANTS = {
    # Old spelling of RoPE, tied, biased attention, 3 query heads on 1 KV head.
    "tied_linear": {
        "config": {"hidden_size": 27, "intermediate_size": 36, "num_hidden_layers": 3,
                   "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 12,
                   "max_position_embeddings": 256, "tie_word_embeddings": True,
                   "attention_bias": True, "mlp_bias": False, "rope_theta": 10000.0,
                   "rope_scaling": {"type": "linear", "factor": 2.5}},
        "dtype": torch.float16, "shards": 1, "seed": 1},
    # New spelling, untied, biased MLP, 4 query heads on 2 KV heads, shards.
    "untied_llama3": {
        "config": {"hidden_size": 24, "intermediate_size": 44, "num_hidden_layers": 3,
                   "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
                   "max_position_embeddings": 512, "tie_word_embeddings": False,
                   "attention_bias": False, "mlp_bias": True,
                   "rope_parameters": {"rope_type": "llama3", "rope_theta": 5000.0, "factor": 8.0,
                                       "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                       "original_max_position_embeddings": 64}},
        "dtype": torch.bfloat16, "shards": 3, "seed": 2},
    # Nothing set that has a default: no kv heads, no head_dim, no RoPE at all.
    "plain": {
        "config": {"hidden_size": 20, "intermediate_size": 23, "num_hidden_layers": 2,
                   "num_attention_heads": 2, "max_position_embeddings": 256},
        "dtype": torch.float32, "shards": 1, "seed": 3},
}
LENGTHS = (1, 5, 33, 150)
NEW_TOKENS = 24


def shapes(config):
    """Name -> shape, in the order of the file."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    heads = config["num_attention_heads"]
    head_dim = config.get("head_dim", hidden // heads)
    q, kv = heads * head_dim, config.get("num_key_value_heads", heads) * head_dim
    out = {"model.embed_tokens.weight": (VOCAB, hidden)}
    for layer in range(config["num_hidden_layers"]):
        base = f"model.layers.{layer}."
        out[base + "input_layernorm.weight"] = (hidden,)
        out[base + "post_attention_layernorm.weight"] = (hidden,)
        for part, name, rows, columns in (
                ("self_attn", "q_proj", q, hidden), ("self_attn", "k_proj", kv, hidden),
                ("self_attn", "v_proj", kv, hidden), ("self_attn", "o_proj", hidden, q),
                ("mlp", "gate_proj", inner, hidden), ("mlp", "up_proj", inner, hidden),
                ("mlp", "down_proj", hidden, inner)):
            out[f"{base}{part}.{name}.weight"] = (rows, columns)
            if config.get("attention_bias" if part == "self_attn" else "mlp_bias"):
                out[f"{base}{part}.{name}.bias"] = (rows,)
    out["model.norm.weight"] = (hidden,)
    if not config.get("tie_word_embeddings"):
        out["lm_head.weight"] = (VOCAB, hidden)
    return out


def make_weights(spec):
    """Large enough that attention and the MLP shape the logits."""
    generator = torch.Generator().manual_seed(spec["seed"])
    weights = {}
    for name, shape in shapes(spec["config"]).items():
        values = torch.randn(shape, generator=generator)
        if "norm" in name:
            values = 1 + 0.2 * values
        elif "bias" in name:
            values = 0.1 * values
        elif "embed" not in name:
            values = values * 1.4 / shape[-1] ** 0.5
        weights[name] = values.to(spec["dtype"])
    return weights


def write_model(folder, spec):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config = COMMON | spec["config"]
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    weights = make_weights(spec)
    if spec["shards"] == 1:
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        return
    names, index = list(weights), {}
    for shard in range(spec["shards"]):
        file = f"model-{shard + 1:05}-of-{spec['shards']:05}.safetensors"
        mine = names[shard::spec["shards"]]
        save_file({name: weights[name] for name in mine}, folder / file, metadata={"format": "pt"})
        index |= {name: file for name in mine}
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": index}, indent=0) + "\n")


def prompt(length, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, VOCAB, (length,), generator=generator).tolist()


@torch.no_grad()
def greedy(model, tokens):
    """Token ids, and the smallest gap between the best two logits on the way."""
    out, gap = [], float("inf")
    for _ in range(NEW_TOKENS):
        row = model(torch.tensor([tokens + out])).logits[0, -1]
        best = torch.topk(row, 2).values
        gap = min(gap, (best[0] - best[1]).item())
        out.append(int(row.argmax()))
    return out, gap


@torch.no_grad()
def measure(folder):
    model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32,
                                             attn_implementation="eager").eval()
    cases = []
    for length in LENGTHS:
        tokens = prompt(length, 100 + length)
        logits = model(torch.tensor([tokens])).logits[0]
        positions = sorted({0, length // 2, length - 1})
        continuation, gap = greedy(model, tokens)
        if gap < 1e-4:
            raise SystemExit(f"{folder.name}, {length} tokens: top two within {gap}; change a seed")
        cases.append({"tokens": tokens, "positions": positions, "greedy": continuation,
                      "logits": [[float(f"{x:.6g}") for x in logits[p].tolist()]
                                 for p in positions]})
    return {"inv_freq": [float(f"{x:.9g}") for x in model.model.rotary_emb.inv_freq.tolist()],
            "cases": cases}


def main():
    golden = {}
    for name, spec in VARIANTS.items():
        write_model(HERE / name, spec)
        golden[name] = measure(HERE / name)
    (HERE / "golden.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
