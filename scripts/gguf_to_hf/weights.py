"""model.safetensors from the tensors of a GGUF file."""
import json
import math
import os
import struct

from .reading import ConversionError

LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
TOP_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}


def hugging_face_name(name):
    """blk.3.attn_q.weight -> model.layers.3.self_attn.q_proj.weight; None when unknown."""
    if name in TOP_NAMES:
        return TOP_NAMES[name]
    parts = name.split(".")
    known = len(parts) == 4 and parts[0] == "blk" and parts[1].isdigit() and parts[3] == "weight"
    if not known or parts[2] not in LAYER_NAMES:
        return None
    return f"model.layers.{int(parts[1])}.{LAYER_NAMES[parts[2]]}.weight"


def unpermute(weight, heads):
    """Undo llama.cpp's order of the rows of one head, [0, d/2, 1, d/2+1, ...] -> [0, 1, 2, ...].

    llama.cpp rotates neighbours (2i, 2i+1), transformers rotates (i, i + d/2); the converter of
    llama.cpp moved the rows to match. Example, one head of 4 rows: stored [r0, r2, r1, r3].
    """
    rows = weight.shape[0]
    if rows % (2 * heads) != 0:
        raise ConversionError(f"a projection with {rows} rows does not divide by 2 x {heads} heads")
    paired = weight.reshape(heads, rows // heads // 2, 2, *weight.shape[1:])
    return paired.swapaxes(1, 2).reshape(weight.shape)


def convert_tensor(gguf, tensor, config):
    import numpy as np

    weight = gguf.dequantize(tensor)
    if tensor.name.endswith(".attn_q.weight"):
        weight = unpermute(weight, config["num_attention_heads"])
    elif tensor.name.endswith(".attn_k.weight"):
        weight = unpermute(weight, config["num_key_value_heads"])
    if not np.all(np.abs(weight) <= np.finfo(np.float16).max):  # also false for NaN
        raise ConversionError(f"{gguf.path}: {tensor.name} has a value beyond fp16")
    return np.ascontiguousarray(weight, dtype="<f2")


def expected_names(config):
    layers = (f"model.layers.{i}.{name}.weight"
              for i in range(config["num_hidden_layers"]) for name in LAYER_NAMES.values())
    top = [n for k, n in TOP_NAMES.items()
           if k != "output.weight" or not config["tie_word_embeddings"]]
    return {*top, *layers}


def plan_tensors(gguf, config):
    """[(Hugging Face name, GGUF tensor)] sorted by name; exactly the tensors of the model."""
    plan = []
    for tensor in gguf.tensors:
        name = hugging_face_name(tensor.name)
        if name is None:
            raise ConversionError(f"{gguf.path} holds {tensor.name}, which a plain Llama lacks")
        plan.append((name, tensor))
    wanted = expected_names(config)
    odd = sorted(wanted.symmetric_difference(name for name, _ in plan))
    if odd or len(plan) != len(wanted):
        raise ConversionError(
            f"{gguf.path} does not hold each tensor of its {config['num_hidden_layers']} layers "
            f"once (first in doubt: {odd[0] if odd else 'a repeated name'})")
    return sorted(plan, key=lambda item: item[0])


def write_safetensors(path, gguf, config, metadata):
    plan = plan_tensors(gguf, config)
    header, offset = {"__metadata__": metadata}, 0
    for name, tensor in plan:
        shape = [int(n) for n in reversed(tensor.shape)]
        size = 2 * math.prod(shape)
        header[name] = {"dtype": "F16", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 8)  # keeps the data aligned
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(encoded)))
        file.write(encoded)
        for name, tensor in plan:
            file.write(convert_tensor(gguf, tensor, config).data)
        file.flush()
        os.fsync(file.fileno())
    return len(plan)
