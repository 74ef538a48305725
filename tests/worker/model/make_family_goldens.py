#!/usr/bin/env python3
"""Write what transformers computes with a small random model of every family: families.json.

    python3 tests/worker/model/make_family_goldens.py

Needs torch, transformers, numpy and safetensors. Weights are not stored: they are a function of the
names of variant and tensor and of the index (`random_tensor`), which tests/worker/engine/
family_models.cpp computes too. Stored per variant: config.json as it is written, the names and
shapes of the tensors, and per prompt the tokens, the logits of every position in some columns (all
columns have their turn) in units of 1e-5, and the greedy continuation.
"""
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils import logging

OUT = Path(__file__).resolve().parent / "families.json"
VOCAB = 41
COLUMNS = 9
NEW_TOKENS = 10
UNIT = 1e-5
SEEDS = 40
BASE = {"vocab_size": VOCAB, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
        "rms_norm_eps": 1e-5, "max_position_embeddings": 128}


def family(architecture, model_type, **fields):
    return BASE | {"architectures": [architecture], "model_type": model_type} | fields


def sizes(hidden, inner, layers, heads, kv_heads, head_dim=None):
    out = {"hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers,
           "num_attention_heads": heads, "num_key_value_heads": kv_heads}
    return out | ({"head_dim": head_dim} if head_dim else {})


def llama(**fields):
    return family("LlamaForCausalLM", "llama", hidden_act="silu", **fields)


def longrope(pairs):
    return {"short_factor": [1.0 + 0.01 * i for i in range(pairs)],
            "long_factor": [1.5 + 0.25 * i for i in range(pairs)]}


YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0,
        "original_max_position_embeddings": 32}
# Lengths of prompts. A negative one has no greedy continuation: while a sequence grows beyond the
# trained length, transformers changes the frequencies of new keys and keeps the old keys.
USUAL = (1, 37)
VARIANTS = {
    "llama-dynamic": (llama(**sizes(66, 90, 2, 3, 1, 64), max_position_embeddings=32,
                            rope_scaling={"type": "dynamic", "factor": 3.0}), (22, -45)),
    "llama-yarn": (llama(**sizes(80, 70, 3, 2, 1, 80), rope_parameters=YARN | {
        "beta_fast": 16.0, "beta_slow": 1.5}), USUAL),
    "llama-yarn-mscale": (llama(**sizes(48, 50, 2, 2, 2, 96), rope_parameters=YARN | {
        "mscale": 0.8, "mscale_all_dim": 0.4, "truncate": False}), USUAL),
    "mistral-window": (family("MistralForCausalLM", "mistral", hidden_act="silu",
                              **sizes(37, 61, 3, 4, 2, 128), sliding_window=9,
                              rope_theta=10000.0), USUAL),
    "mistral-null": (family("MistralForCausalLM", "mistral", hidden_act="silu",
                            **sizes(50, 45, 2, 5, 1, 96), sliding_window=None,
                            rope_theta=1000000.0), USUAL),
    "qwen2-windows": (family("Qwen2ForCausalLM", "qwen2", hidden_act="silu",
                             **sizes(160, 70, 4, 2, 1), use_sliding_window=True, sliding_window=7,
                             max_window_layers=2, tie_word_embeddings=True,
                             rope_theta=1000000.0), USUAL),
    "qwen2-yarn": (family("Qwen2ForCausalLM", "qwen2", hidden_act="silu",
                          **sizes(128, 33, 2, 2, 2), sliding_window=4096, max_window_layers=1,
                          rope_theta=5000.0, rope_scaling={
                              "type": "yarn", "factor": 4.0,
                              "original_max_position_embeddings": 24}), USUAL),
    "qwen3": (family("Qwen3ForCausalLM", "qwen3", hidden_act="silu", **sizes(44, 58, 3, 4, 2),
                     head_dim=128, attention_bias=True, rope_theta=1000000.0), USUAL),
    "qwen3-types": (family("Qwen3ForCausalLM", "qwen3", hidden_act="silu",
                           **sizes(52, 40, 3, 6, 3, 64), tie_word_embeddings=True,
                           use_sliding_window=True, sliding_window=11, layer_types=[
                               "sliding_attention", "full_attention", "sliding_attention"],
                           rope_theta=10000.0), USUAL),
    "phi3-window": (family("Phi3ForCausalLM", "phi3", hidden_act="silu",
                           **sizes(192, 66, 2, 2, 2), sliding_window=13, rope_theta=10000.0,
                           original_max_position_embeddings=128), USUAL),
    "phi3-longrope": (family("Phi3ForCausalLM", "phi3", hidden_act="silu",
                             **sizes(128, 54, 3, 2, 1), partial_rotary_factor=0.75,
                             tie_word_embeddings=True, original_max_position_embeddings=32,
                             rope_theta=10000.0,
                             rope_scaling={"type": "longrope"} | longrope(24)), (21, 39)),
    "phi3-su": (family("Phi3ForCausalLM", "phi3", hidden_act="silu", **sizes(160, 40, 2, 2, 2),
                       original_max_position_embeddings=28, rope_theta=10000.0,
                       rope_scaling={"type": "su", "original_max_position_embeddings": 28}
                       | longrope(40)), (17, 33)),
    "gemma2": (family("Gemma2ForCausalLM", "gemma2", hidden_activation="gelu_pytorch_tanh",
                      **sizes(44, 60, 4, 2, 1, 256), sliding_window=8, query_pre_attn_scalar=144,
                      attn_logit_softcapping=3.0, final_logit_softcapping=6.0,
                      rope_theta=10000.0), USUAL),
    "gemma2-plain": (family("Gemma2ForCausalLM", "gemma2", **sizes(38, 47, 2, 2, 2, 64),
                            attn_logit_softcapping=None, final_logit_softcapping=None,
                            attention_bias=True, tie_word_embeddings=False,
                            layer_types=["full_attention", "sliding_attention"],
                            sliding_window=16), USUAL),
    "gemma3": (family("Gemma3ForCausalLM", "gemma3_text", hidden_activation="gelu_pytorch_tanh",
                      **sizes(52, 65, 5, 2, 1, 256), sliding_window=6, sliding_window_pattern=3,
                      query_pre_attn_scalar=200, rope_theta=1000000.0,
                      rope_local_base_freq=5000.0,
                      rope_scaling={"rope_type": "linear", "factor": 8.0}), USUAL),
    "gemma3-types": (family("Gemma3ForCausalLM", "gemma3_text", **sizes(48, 35, 3, 4, 2, 80),
                            sliding_window=12, final_logit_softcapping=5.0,
                            layer_types=["full_attention", "sliding_attention",
                                         "sliding_attention"],
                            rope_parameters={
                                "full_attention": YARN,
                                "sliding_attention": {"rope_type": "default",
                                                      "rope_theta": 2000.0}}), USUAL),
    "smollm3": (family("SmolLM3ForCausalLM", "smollm3", hidden_act="silu",
                       **sizes(128, 55, 4, 2, 1), no_rope_layers=[1, 0, 1, 0, 0],
                       rope_theta=5000000.0, tie_word_embeddings=True), USUAL),
    "smollm3-windows": (family("SmolLM3ForCausalLM", "smollm3", hidden_act="silu",
                               **sizes(160, 42, 4, 2, 2), no_rope_layer_interval=2,
                               use_sliding_window=True, sliding_window=10, attention_bias=True,
                               mlp_bias=True, tie_word_embeddings=False), USUAL),
    "olmo2": (family("Olmo2ForCausalLM", "olmo2", hidden_act="silu", **sizes(256, 60, 3, 2, 1),
                     rope_theta=500000.0), USUAL),
    "olmo2-llama3": (family("Olmo2ForCausalLM", "olmo2", hidden_act="silu",
                            **sizes(192, 52, 2, 3, 3), attention_bias=True, rope_parameters={
                                "rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0,
                                "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                "original_max_position_embeddings": 48}), USUAL),
}


def fnv1a(text):
    value = 0xcbf29ce484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return value


def uniform(name, count):
    """float32 in [-1, 1), multiples of 2^-23: SplitMix64 (Steele et al. 2014) from FNV-1a."""
    with np.errstate(over="ignore"):
        state = np.uint64(fnv1a(name)) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(
            0x9e3779b97f4a7c15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
        state ^= state >> np.uint64(31)
    return ((state >> np.uint64(40)).astype(np.int64) - (1 << 23)).astype(np.float32) * np.float32(
        2.0 ** -23)


def random_tensor(variant, name, shape, plus_one):
    """Large enough that attention and the MLP shape the logits."""
    values = uniform(f"{variant}/{name}", int(np.prod(shape))).reshape(shape)
    if "norm" in name:
        values = values * np.float32(0.5)
        return values if plus_one else np.float32(1.0) + values
    if name.endswith(".bias"):
        return values * np.float32(0.25)
    if "embed" in name:
        return values * np.float32(5.0 / shape[-1] ** 0.5)
    return values * np.float32(2.5 / shape[-1] ** 0.5)


def prompt(variant, length, seed):
    values = uniform(f"{variant}/prompt {length} {seed}", length)
    return [int(3 + (x + 1) / 2 * (VOCAB - 3)) for x in values.tolist()]


@torch.no_grad()
def greedy(model, tokens):
    """Token ids, and the smallest gap between the best two logits on the way."""
    out, gap = [], float("inf")
    for _ in range(NEW_TOKENS):
        row = model(torch.tensor([tokens + out]), use_cache=False).logits[0, -1]
        best = torch.topk(row, 2).values
        gap = min(gap, (best[0] - best[1]).item())
        out.append(int(row.argmax()))
    return out, gap


def clear_case(model, variant, length):
    """A prompt whose greedy continuation no rounding changes."""
    if length < 0:
        return prompt(variant, -length, 0), []
    for seed in range(SEEDS):
        tokens = prompt(variant, length, seed)
        continuation, gap = greedy(model, tokens)
        if gap > 5e-3:
            return tokens, continuation
    raise SystemExit(f"{variant}: no prompt of {length} tokens with clear choices")


@torch.no_grad()
def measure(variant, config, lengths):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "config.json").write_text(json.dumps(config))
        shapes = {name: tuple(value.shape) for name, value in AutoModelForCausalLM.from_config(
            AutoConfig.from_pretrained(folder)).state_dict().items()}
        if AutoConfig.from_pretrained(folder).tie_word_embeddings:
            shapes.pop("lm_head.weight", None)
        plus_one = variant.startswith("gemma")
        save_file({name: random_tensor(variant, name, shape, plus_one)
                   for name, shape in shapes.items()}, path / "model.safetensors",
                  metadata={"format": "pt"})
        model = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager").eval()
    largest, cases = 0.0, []
    for length in lengths:
        tokens, continuation = clear_case(model, variant, length)
        logits = model(torch.tensor([tokens]), use_cache=False).logits[0].double()
        largest = max(largest, logits.abs().max().item())
        kept = [[round(logits[position, (position * COLUMNS + i) % VOCAB].item() / UNIT)
                 for i in range(COLUMNS)] for position in range(len(tokens))]
        cases.append({"tokens": tokens, "greedy": continuation, "logits": kept})
    print(f"{variant:20} largest logit {largest:8.3f}", file=sys.stderr)
    return {"config": config, "tensors": compact(shapes), "cases": cases}


def compact(shapes):
    """All layers have the tensors of layer 0."""
    layers = {name.split(".")[2] for name in shapes if name.startswith("model.layers.")}
    out = {name: shape for name, shape in shapes.items()
           if not name.startswith("model.layers.") or name.startswith("model.layers.0.")}
    for name, shape in shapes.items():
        parts = name.split(".")
        if name.startswith("model.layers."):
            first = ".".join(parts[:2] + ["0"] + parts[3:])
            assert out[first] == shape and len(layers) * len(
                [n for n in out if n.startswith("model.layers.0.")]) == len(
                    [n for n in shapes if n.startswith("model.layers.")]), name
    return out


def main():
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    golden = {name: measure(name, *spec) for name, spec in VARIANTS.items()}
    lines = [f'"{name}":' + json.dumps(value, separators=(",", ":"))
             for name, value in golden.items()]
    OUT.write_text("{" + ",\n".join(lines) + "}\n")
    print(f"{OUT}: {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
