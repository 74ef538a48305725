#!/usr/bin/env python3
"""What torch computes, for codecs whose arithmetic is torch's. Needs torch and numpy.

    make_torch_goldens.py DIRECTORY

    fp8_torch.txt      `values TYPE` and the 256 float32 patterns that the codes convert to;
                       `round TYPE` and pairs FLOAT CODE: around the middle between all neighbours
    kvtuner_torch.txt  cases as in reference_codecs.py: KVTuner's asymmetric quantizer, operation by
                       operation in torch, in float32 and in bfloat16
"""
import pathlib
import sys

import numpy as np
import torch

import reference
import reference_codecs

TYPES = {"e4m3": (torch.float8_e4m3fn, 0x7e), "e5m2": (torch.float8_e5m2, 0x7b)}


def patterns(values):
    return " ".join(f"{v:08x}" for v in np.asarray(values, np.float32).view(np.uint32).tolist())


def write_fp8(path):
    with open(path, "w", encoding="ascii") as out:
        for name, (kind, largest) in TYPES.items():
            codes = torch.arange(256, dtype=torch.int16).to(torch.uint8)
            values = codes.view(kind).to(torch.float32).numpy()
            out.write(f"values {name} {patterns(values)}\n")
            middle = ((values[:largest].astype(np.float64) + values[1:largest + 1]) / 2)
            middle = middle.astype(np.float32)  # exact
            probes = np.concatenate([np.nextafter(middle, np.float32(-1)), middle,
                                     np.nextafter(middle, np.float32(np.inf))])
            probes = np.concatenate([probes, -probes])
            rounded = torch.from_numpy(probes).to(kind).view(torch.uint8).numpy()
            pairs = zip(probes.view(np.uint32).tolist(), rounded.tolist())
            out.write(f"round {name} " + " ".join(f"{x:08x} {c:02x}" for x, c in pairs) + "\n")


def quantize(x, bits):
    """x [groups][n] of the arithmetic's type; codes from 0, scale, zero, values."""
    low, high = -2 ** (bits - 1), 2 ** (bits - 1) - 1
    least, most = x.min(dim=1).values, x.max(dim=1).values
    scale = (most - least).clamp(min=1e-5).div(high - low)
    zero = (least / scale).round() - low
    steps = torch.round(x / scale.unsqueeze(1) - zero.unsqueeze(1))
    codes = steps.clip(low, high).to(torch.int8)
    values = (codes + zero.unsqueeze(1)) * scale.unsqueeze(1)
    return codes.to(torch.int32) - low, scale, zero, values


def make_case(x, bits, kind):
    codes, scale, zero, values = quantize(torch.from_numpy(x).to(kind), bits)
    pair = torch.stack([scale, zero], dim=-1)
    stored = pair.view(torch.uint8) if kind == torch.float32 else \
        pair.view(torch.int16).view(torch.uint8)
    return (reference_codecs.row_bits(codes.numpy(), bits), stored.contiguous().numpy(),
            values.to(torch.float32).numpy())


def write_kvtuner(path):
    rng = np.random.default_rng(20261201)
    with open(path, "w", encoding="ascii") as out:
        for kind, suffix in ((torch.float32, ""), (torch.bfloat16, "-bf16")):
            for bits in (8, 4, 2):
                codec = f"int{bits}-kvtuner{suffix}"
                inputs = reference_codecs.edge_inputs(rng, 16)
                for mean in (0, 32, 128, 1000):
                    inputs[f"mean_{mean}"] = mean + rng.standard_normal(64)
                for name in ("random1", "random2"):
                    inputs[name] = reference.random_input(rng, 1, 32)[0]
                for name, row in inputs.items():
                    x = row.reshape(1, -1).astype(np.float32)
                    reference_codecs.write_case(out, name, codec, "plain", "token", x, x.shape[1],
                                                made=make_case(x, bits, kind))


def main():
    directory = pathlib.Path(sys.argv[1])
    write_fp8(directory / "fp8_torch.txt")
    write_kvtuner(directory / "kvtuner_torch.txt")
    return 0


if __name__ == "__main__":
    sys.exit(main())
