#!/usr/bin/env python3
"""Write golden/quantized_weights.json: 4-bit layers packed here from codes, zeros and scales.

    python3 tests/worker/model/make_quantized_goldens.py

Needs numpy. The packing is that of the published tools, written again: AutoAWQ's "gemm" (word bits
4 i hold output [0, 2, 4, 6, 1, 3, 5, 7][i] of eight) and AutoGPTQ's (word bits 4 i hold input i of
eight; zeros less one, except in gptq_v2). The values are scale (code - zero), before any packing.
"""
import hashlib
import json
from pathlib import Path

import numpy as np

OUT = Path(__file__).resolve().parent / "golden" / "quantized_weights.json"
AWQ = [0, 2, 4, 6, 1, 3, 5, 7]
IN, OUTPUTS = 32, 8


def pack(codes, order):
    """[rows, 8 n] -> int32 [rows, n]; bits 4 i of a word hold column order[i] of its eight."""
    words = np.zeros((codes.shape[0], codes.shape[1] // 8), np.uint32)
    for i, column in enumerate(order):
        words |= codes[:, column::8].astype(np.uint32) << np.uint32(4 * i)
    return words.view(np.int32)


def case(name, method, group, seed, desc_act=False, symmetric=False, version=None):
    random = np.random.default_rng(seed)
    size = group if group > 0 else IN
    groups = -(-IN // size)
    codes = random.integers(0, 16, (IN, OUTPUTS))
    zeros = np.full((groups, OUTPUTS), 8) if symmetric else random.integers(1, 16, (groups, OUTPUTS))
    scales = np.float16(random.uniform(0.001, 0.1, (groups, OUTPUTS)))
    g_idx = np.arange(IN) // size
    if desc_act:
        g_idx = random.permutation(g_idx)
    values = scales[g_idx].astype(np.float32) * (codes - zeros[g_idx]).astype(np.float32)
    config = {"quant_method": method, "bits": 4, "group_size": group}
    tensors = {"scales": {"shape": list(scales.shape), "half": scales.view(np.uint16).ravel().tolist()}}
    if method == "awq":
        config |= {"zero_point": True, "version": "gemm"}
        words, packed_zeros = pack(codes, AWQ), pack(zeros, AWQ)
    else:
        config |= {"desc_act": desc_act, "sym": symmetric}
        if version:
            config["checkpoint_format"] = version
        words = np.ascontiguousarray(pack(codes.T, range(8)).T)
        packed_zeros = pack(zeros - (version != "gptq_v2"), range(8))
        tensors["g_idx"] = {"shape": [IN], "word": g_idx.tolist()}
    tensors["qweight"] = {"shape": list(words.shape), "word": words.ravel().tolist()}
    tensors["qzeros"] = {"shape": list(packed_zeros.shape), "word": packed_zeros.ravel().tolist()}
    return {"name": name, "config": config, "tensors": tensors,
            "sha256": hashlib.sha256(np.ascontiguousarray(values.T).tobytes()).hexdigest(),
            "first": [float(x) for x in values.T.ravel()[:4]]}


def main():
    cases = [case("awq", "awq", 8, 1), case("awq_whole", "awq", -1, 2),
             case("gptq", "gptq", 8, 3), case("gptq_symmetric", "gptq", 8, 4, symmetric=True),
             case("gptq_desc_act", "gptq", 8, 5, desc_act=True, version="gptq"),
             case("gptq_v2", "gptq", 8, 6, version="gptq_v2"), case("gptq_whole", "gptq", -1, 7)]
    OUT.write_text(json.dumps({"in": IN, "out": OUTPUTS, "cases": cases},
                              separators=(",", ":")) + "\n")
    print(f"{OUT.name}: {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
