#!/usr/bin/env python3
"""Write what the `gguf` package makes of random blocks: the reference of gguf_blocks_test.cpp.

    python3 tests/worker/model/make_block_goldens.py

Needs gguf (0.19 was used) and numpy. The blocks are bytes of splitmix64, which the test repeats;
halves that would be infinite or NaN lose the top bit of their exponent. Writes, for each type, the
SHA-256 of the dequantized float32 values and the bits of the first few.
"""
import hashlib
import json
from pathlib import Path

import gguf
import numpy as np

OUT = Path(__file__).resolve().parent / "golden" / "gguf_blocks.json"
BLOCKS = 1000
# Type: where its halves are.
HALVES = {"F32": [], "F16": [0], "BF16": [], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0],
          "Q5_1": [0, 2], "Q8_0": [0], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}
MASK = (1 << 64) - 1


def splitmix(seed, count):
    out, state = bytearray(), seed
    while len(out) < count:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        out += (z ^ (z >> 31)).to_bytes(8, "little")
    return np.frombuffer(bytes(out[:count]), np.uint8).copy()


def main():
    golden = {}
    for name, halves in HALVES.items():
        kind = gguf.GGMLQuantizationType[name]
        size = gguf.GGML_QUANT_SIZES[kind][1]
        blocks = splitmix(int(kind), BLOCKS * size).reshape(BLOCKS, size)
        for at in halves:
            infinite = (blocks[:, at + 1] & 0x7C) == 0x7C
            blocks[infinite, at + 1] &= 0xBF
        if name in ("F32", "BF16"):  # NaN is not compared
            top = size - 1
            infinite = ((blocks[:, top] & 0x7F) == 0x7F) & ((blocks[:, top - 1] & 0x80) != 0)
            blocks[infinite, top] &= 0xBF
        values = gguf.quants.dequantize(blocks, kind).astype("<f4").ravel()
        assert np.all(np.isfinite(values))
        golden[name] = {"sha256": hashlib.sha256(values.tobytes()).hexdigest(),
                        "first": values.view("<u4")[:6].tolist()}
    OUT.write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
