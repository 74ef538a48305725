#!/usr/bin/env python3
"""The native integer codec again, in numpy: once in float32 (bit for bit the C++ one) and once in
float64 (the bound on its error). Needs numpy only.

    reference.py --golden FILE              the committed cases, edge and random (fixed seed)
    reference.py --random N --seed S FILE   N fresh random cases

Both check the float32 rewrite against the float64 one before they write. File format, one case:
    case NAME AXIS BITS TOKENS HEAD_DIM GROUP
    x ...        float32 bit patterns, hex, [tokens][head_dim]
    codes ...    hex bytes, [tokens][head_dim * bits / 8]
    params ...   fp16 bit patterns {scale, min}, hex: token axis [tokens][groups], channel axis
                 [head_dim] (the tokens are one group)
    y ...        decoded float32 bit patterns, hex
"""
import argparse
import sys

import numpy as np

HALF_MAX = np.float32(65504.0)


def half_down(x):
    """Largest fp16 <= x, elementwise; x float32 or float64."""
    h = x.astype(np.float16)
    return np.where(h.astype(x.dtype) > x, np.nextafter(h, np.float16(-np.inf)), h)


def half_up(x):
    return -half_down(-x)


def encode(x, bits, dtype):
    """Groups along the last axis. Returns codes, scale (fp16), min (fp16)."""
    x = x.astype(dtype)
    levels = dtype((1 << bits) - 1)
    low = x.min(axis=-1) + dtype(0)
    minimum = half_down(low) + np.float16(0)
    offset = minimum.astype(dtype)
    span = (x.max(axis=-1) - offset) + dtype(0)  # a zero range is +0
    scale = half_up(span / levels)
    scale = np.where((span > 0) & (scale == 0), np.float16(2.0 ** -24), scale)
    assert (np.abs(low) <= HALF_MAX).all() and np.isfinite(scale).all()
    divisor = np.where(scale == 0, np.float16(1), scale).astype(dtype)
    codes = np.rint((x - offset[..., None]) / divisor[..., None])
    assert codes.min() >= 0 and codes.max() <= levels, "a code would clip"
    return codes.astype(np.uint8), scale, minimum


def decode(codes, scale, minimum, dtype):
    return codes.astype(dtype) * scale.astype(dtype)[..., None] + minimum.astype(dtype)[..., None]


def check(x, bits, y32, scale32, minimum32):
    """The float64 rewrite: half a step from the originals exactly, and the float32 one beside it."""
    codes, scale, minimum = encode(x, bits, np.float64)
    wide = x.astype(np.float64)
    step = scale.astype(np.float64)[..., None]
    assert (np.abs(decode(codes, scale, minimum, np.float64) - wide) <= step / 2).all()
    assert (minimum == minimum32).all(), "the stored minimum needs no arithmetic"
    gap = np.abs(scale.astype(np.float64) - scale32.astype(np.float64))
    assert (gap <= np.spacing(np.maximum(scale, scale32))).all()
    span = scale32.astype(np.float64)[..., None] * ((1 << bits) - 1)
    slack = 4 * 2.0 ** -24 * (np.abs(wide) + span)
    step = scale32.astype(np.float64)[..., None]
    assert (np.abs(y32.astype(np.float64) - wide) <= step / 2 + slack).all()


def pack(codes, bits):
    per_byte = 8 // bits
    split = codes.reshape(codes.shape[0], -1, per_byte).astype(np.uint32)
    return (split << (np.arange(per_byte) * bits)).sum(axis=-1).astype(np.uint8)


def run_groups(x, bits):
    codes, scale, minimum = encode(x, bits, np.float32)
    y = decode(codes, scale, minimum, np.float32)
    check(x, bits, y, scale, minimum)
    return codes, np.stack([scale, minimum], axis=-1), y


def run_case(x, axis, bits, group):
    tokens, head_dim = x.shape
    if axis == "channel":
        codes, params, y = run_groups(x.T, bits)
        return pack(codes.T, bits), params, y.T
    parts = [run_groups(x[:, i:i + group], bits) for i in range(0, head_dim, group)]
    codes, y = (np.concatenate([p[k] for p in parts], axis=1) for k in (0, 2))
    return pack(codes, bits), np.stack([p[1] for p in parts], axis=1), y


def hexes(array, kind, digits):
    flat = np.ascontiguousarray(array).view(kind).ravel()
    return " ".join(f"{v:0{digits}x}" for v in flat.tolist())


def write_case(out, name, x, axis, bits, group):
    x = np.ascontiguousarray(x, dtype=np.float32)
    codes, params, y = run_case(x, axis, bits, group)
    out.write(f"case {name} {axis} {bits} {x.shape[0]} {x.shape[1]} {group}\n")
    out.write(f"x {hexes(x, np.uint32, 8)}\ncodes {hexes(codes, np.uint8, 2)}\n")
    out.write(f"params {hexes(params.astype(np.float16), np.uint16, 4)}\n")
    out.write(f"y {hexes(y.astype(np.float32), np.uint32, 8)}\n")


def edge_inputs(rng):
    """Rows of 16, groups of 16: what random numbers do not meet."""
    ramp = np.arange(16, dtype=np.float32)
    return {
        "zero": np.zeros(16),
        "negative_zero": np.full(16, -0.0),
        "both_zeros": np.array([0.0, -0.0] * 8),
        "constant_half": np.full(16, 0.5),
        "constant_not_half": np.full(16, 0.1),
        "constant_negative": np.full(16, -0.1),
        "ties": ramp / 2,
        "ties_offset": 600 + ramp / 2,
        "largest": np.where(ramp < 8, 65504.0, -65504.0),
        "at_the_limit": np.full(16, 65504.0),
        "half_subnormal": ramp * 2.0 ** -24,
        "below_half": ramp * 2.0 ** -30,
        "float_subnormal": ramp * 2.0 ** -149,
        "negative_tiny": -ramp * 2.0 ** -40,
        "one_outlier": np.where(ramp == 3, 1000.0, rng.standard_normal(16) * 1e-3),
        "bf16_key_bias": 605 + rng.standard_normal(16),
    }


def random_input(rng, tokens, head_dim):
    scale = 10.0 ** rng.uniform(-6, 4)
    offset = rng.choice([0.0, 0.0, 1.0, 30.0, -600.0])
    x = np.clip(rng.standard_normal((tokens, head_dim)) * scale + offset, -65000, 65000)
    x = x.astype(np.float32)
    kind = rng.integers(3)  # cache values come rounded to fp16, bf16 or not at all
    if kind == 0:
        return x.astype(np.float16).astype(np.float32)
    if kind == 1:
        return (x.view(np.uint32) & np.uint32(0xffff0000)).view(np.float32)
    return x


def write_golden(out):
    rng = np.random.default_rng(20261129)
    for name, row in edge_inputs(rng).items():
        for bits in (8, 4, 2):
            write_case(out, f"edge_{name}", row.reshape(1, 16), "token", bits, 16)
            write_case(out, f"edge_{name}", np.tile(row.reshape(16, 1), 8 // bits), "channel", bits, 16)
    for bits in (8, 4, 2):
        write_case(out, "length_one", rng.standard_normal((1, 8)), "channel", bits, 1)
        write_case(out, "group_of_one_byte", rng.standard_normal((2, 32)), "token", bits, 8)
        for head_dim in (64, 80, 96, 128, 256):
            for group in (32, 64, 128, head_dim):
                x = random_input(rng, 1, head_dim)
                write_case(out, "random", x, "token", bits, min(group, head_dim))
        write_case(out, "random", random_input(rng, 32, 20), "channel", bits, 32)
        write_case(out, "random", random_input(rng, 64, 8), "channel", bits, 64)
        write_case(out, "random", random_input(rng, 128, 4), "channel", bits, 128)


def write_random(out, count, seed):
    rng = np.random.default_rng(seed)
    for i in range(count):
        bits = int(rng.choice([8, 4, 2]))
        head_dim = int(rng.choice([8, 64, 80, 96, 128, 256]))
        if rng.integers(2):
            group = min(int(rng.choice([32, 64, 128, head_dim])), head_dim)
            tokens = int(rng.integers(1, 5))
            write_case(out, f"fresh{i}", random_input(rng, tokens, head_dim), "token", bits, group)
        else:
            group = int(rng.choice([1, 32, 64, 128]))
            write_case(out, f"fresh{i}", random_input(rng, group, head_dim), "channel", bits, group)


def main(golden=write_golden, random=write_random):
    parser = argparse.ArgumentParser()
    parser.add_argument("--golden", action="store_true")
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("file")
    options = parser.parse_args()
    with np.errstate(all="ignore"), open(options.file, "w", encoding="ascii") as out:
        if options.golden:
            golden(out)
        random(out, options.random, options.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
