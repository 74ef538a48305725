#!/usr/bin/env python3
"""Write golden/gguf_names.json: what the `gguf` package calls the tensors of each architecture.

    python3 tests/worker/model/make_gguf_names.py

Needs gguf (0.19 was used). llama.cpp's converters take their names from this map. For each
architecture: Hugging Face name -> GGUF name, of the top and of layers 0 and 12.
"""
import json
from pathlib import Path

import gguf

OUT = Path(__file__).resolve().parent / "golden" / "gguf_names.json"
ATTENTION = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"]
MLP = ["mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"]
USUAL = ["input_layernorm", "post_attention_layernorm", *ATTENTION, *MLP]
QK = ["self_attn.q_norm", "self_attn.k_norm"]
GEMMA = [*USUAL, "pre_feedforward_layernorm", "post_feedforward_layernorm"]
PARTS = {
    "llama": USUAL, "qwen2": USUAL, "qwen3": [*USUAL, *QK], "smollm3": USUAL,
    "phi3": ["input_layernorm", "post_attention_layernorm", "self_attn.qkv_proj",
             "self_attn.o_proj", "mlp.gate_up_proj", "mlp.down_proj"],
    "gemma2": GEMMA, "gemma3": [*GEMMA, *QK],
    "olmo2": ["post_attention_layernorm", "post_feedforward_layernorm", *ATTENTION, *MLP, *QK],
}
BIASED = {"llama": ATTENTION + MLP, "qwen2": ATTENTION[:3], "smollm3": ATTENTION}


def main():
    golden = {}
    for name, parts in PARTS.items():
        arch = next(a for a, text in gguf.MODEL_ARCH_NAMES.items() if text == name)
        names = gguf.get_tensor_name_map(arch, 13)
        wanted = ["model.embed_tokens.weight", "model.norm.weight"]
        if not name.startswith("gemma2"):
            wanted.append("lm_head.weight")
        for layer in (0, 12):
            wanted += [f"model.layers.{layer}.{part}.weight" for part in parts]
            wanted += [f"model.layers.{layer}.{part}.bias" for part in BIASED.get(name, [])]
        found = {key: names.get_name(key, try_suffixes=(".weight", ".bias")) for key in wanted}
        missing = [key for key, value in found.items() if value is None]
        if missing:
            raise SystemExit(f"{name}: gguf has no name for {missing}")
        golden[name] = found
    OUT.write_text(json.dumps(golden, separators=(",", ":")) + "\n")
    print(f"{OUT.name}: {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
