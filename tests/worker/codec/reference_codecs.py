#!/usr/bin/env python3
"""Every packed codec again, in numpy float32: codes, parameters and values bit for bit those of the
C++ ones. Needs numpy only.

    reference_codecs.py --golden FILE              the committed cases, edge and random (fixed seed)
    reference_codecs.py --random N --seed S FILE   N fresh random cases

Roundings to small types are searches for the nearest entry of a table that is built from the type's
definition, in float64. File format, one case (bytes and bit patterns in hex, little-endian as stored):
    case NAME CODEC AXIS VARIANT CONSTANT TOKENS HEAD_DIM GROUP     CONSTANT: float32 bit pattern
    x ...       float32 [tokens][head_dim]
    codes ...
    params ...
    y ...       float32 [tokens][head_dim]
"""
import sys

import numpy as np

import reference

F32 = np.float32
TINY = np.float16(2.0 ** -24)


def row_bits(codes, bits):
    """Rows of codes to bytes: element i in bits i*b .. i*b+b-1; 3 bits padded to 32 elements."""
    if bits == 3:
        codes = np.pad(codes, ((0, 0), (0, -codes.shape[1] % 32)))
    planes = codes[:, :, None] >> np.arange(bits) & 1
    return np.packbits(planes.reshape(codes.shape[0], -1).astype(np.uint8), axis=1, bitorder="little")


def small_floats(exponent_bits, mantissa_bits, bias, count):
    """Magnitudes of the first `count` patterns, from the definition."""
    pattern = np.arange(count)
    e, m = pattern >> mantissa_bits, pattern & ((1 << mantissa_bits) - 1)
    fraction = m / 2.0 ** mantissa_bits
    return np.where(e == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (e - float(bias)))


E4M3 = small_floats(4, 3, 7, 0x7f)
E5M2 = small_floats(5, 2, 15, 0x7c)
E2M1 = small_floats(2, 1, 1, 8)


def nearest(table, x):
    """Index of the entry nearest to |x|, ties to the even index; beyond the last: the last."""
    x = np.abs(x.astype(np.float64))
    above = np.clip(np.searchsorted(table, x), 1, len(table) - 1)
    down, up = x - table[above - 1], table[above] - x
    take_lower = (down < up) | ((down == up) & (above % 2 == 1))
    return np.where(take_lower, above - 1, above)


def encode_small(table, sign_bit, x):
    return nearest(table, x) | np.signbit(x).astype(int) << sign_bit


def decode_small(table, sign_bit, codes):
    magnitude = table[codes & ((1 << sign_bit) - 1)]
    return np.where(codes >> sign_bit & 1, -magnitude, magnitude).astype(F32)


def as_bytes(array, kind):
    """[groups][n] of `kind` -> [groups][bytes]."""
    return np.ascontiguousarray(array, dtype=kind).view(np.uint8).reshape(array.shape[0], -1)


# Each quantizer takes groups [groups][elements] and the constant; it returns codes, parameter bytes
# [groups][..] and values.

def affine(bits):
    def run(x, _):
        codes, scale, low = reference.encode(x, bits, F32)
        params = as_bytes(np.stack([scale, low], axis=-1), np.float16)
        return codes.astype(int), params, reference.decode(codes, scale, low, F32)
    return run


def step_half(step, largest):
    half = reference.half_up(step.astype(F32))
    return np.where((largest > 0) & (half == 0), TINY, half).astype(np.float16)


def symmetric(bits):
    def run(x, _):
        largest = np.abs(x).max(axis=-1)
        scale = step_half(largest / F32((1 << (bits - 1)) - 1), largest)
        divisor = np.where(scale == 0, 1, scale).astype(F32)[:, None]
        q = np.rint(x / divisor)
        assert np.abs(q).max() < 1 << (bits - 1), "a code would clip"
        y = (q + F32(0)) * scale.astype(F32)[:, None]  # + 0: no negative zero
        return q.astype(int) + (1 << (bits - 1)), as_bytes(scale[:, None], np.float16), y
    return run


def fp8(table, calibrated):
    def run(x, constant):
        largest = np.abs(x).max(axis=-1)
        if calibrated:
            scale = np.full(len(x), constant, F32)
            params = np.zeros((len(x), 0), np.uint8)
        else:
            half = step_half(largest / F32(table[-1]), largest)
            scale, params = half.astype(F32), as_bytes(half[:, None], np.float16)
        divisor = np.where(scale == 0, F32(1), scale)[:, None]
        codes = encode_small(table, 7, x / divisor)
        return codes, params, decode_small(table, 7, codes) * scale[:, None]
    return run


def nvfp4(x, constant):
    largest = np.abs(x).max(axis=-1)
    scale = nearest(E4M3, (largest / F32(6)) / constant)
    scale = np.where((largest > 0) & (scale == 0), 1, scale)
    block = (E4M3[scale].astype(F32) * constant)[:, None]
    codes = encode_small(E2M1, 3, x / np.where(block == 0, F32(1), block))
    return codes, scale[:, None].astype(np.uint8), decode_small(E2M1, 3, codes) * block


def mxfp4(x, _):
    largest = np.abs(x).max(axis=-1)
    exponent = np.frexp(largest.astype(np.float64))[1] - 1  # floor(log2)
    exponent = np.where(largest == 0, -127, np.maximum(exponent - 2, -127))
    block = np.ldexp(1.0, exponent).astype(F32)[:, None]
    codes = encode_small(E2M1, 3, x / block)
    return codes, (exponent + 127)[:, None].astype(np.uint8), decode_small(E2M1, 3, codes) * block


def round_bf16(x):
    bits = np.asarray(x, F32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16 << 16).astype(np.uint32).view(F32)


def kvtuner(bits, bf16):
    r = round_bf16 if bf16 else lambda v: np.asarray(v, F32)
    low, high = F32(-(1 << (bits - 1))), F32((1 << (bits - 1)) - 1)

    def run(x, _):
        x = r(x)
        least = x.min(axis=-1)
        scale = r(np.maximum(r(x.max(axis=-1) - least), r(F32(1e-5))) / (high - low))
        zero = r(np.rint(r(least / scale)) - low)
        q = np.clip(np.rint(r(r(x / scale[:, None]) - zero[:, None])), low, high)
        y = r(r(q + zero[:, None]) * scale[:, None])
        params = as_bytes(np.stack([scale, zero], axis=-1), F32)
        if bf16:  # the upper halves
            params = params.reshape(len(x), 2, 4)[:, :, 2:].reshape(len(x), 4)
        return (q - low).astype(int), params, y
    return run


def word11(x, _):
    low = x.min(axis=-1) + F32(0)
    scale = (x.max(axis=-1) - low) / F32(7)
    steps = np.where(scale[:, None] == 0, F32(0), (x - low[:, None]) / scale[:, None])
    whole = np.trunc(steps)
    codes = np.clip(whole + (steps - whole >= 0.5), 0, [7] * 10 + [3])  # halves away from zero
    pair = np.stack([scale, low], axis=-1).astype(np.float16)
    y = codes.astype(F32) * pair[:, :1].astype(F32) + pair[:, 1:].astype(F32)
    return codes.astype(int), as_bytes(pair, np.float16), y


def kvtuner_codecs(bf16):
    suffix = "-bf16" if bf16 else ""
    return {(f"int{b}-kvtuner{suffix}", "plain"): (kvtuner(b, bf16), b) for b in (8, 4, 2)}


CODECS = {
    **{(f"int{b}", "plain"): (affine(b), b) for b in (8, 4, 3, 2)},
    **{(f"int{b}", "symmetric"): (symmetric(b), b) for b in (8, 4, 3, 2)},
    ("fp8_e4m3", "plain"): (fp8(E4M3, False), 8),
    ("fp8_e4m3", "calibrated"): (fp8(E4M3, True), 8),
    ("fp8_e5m2", "plain"): (fp8(E5M2, False), 8),
    ("fp8_e5m2", "calibrated"): (fp8(E5M2, True), 8),
    ("nvfp4", "calibrated"): (nvfp4, 4),
    ("mxfp4", "plain"): (mxfp4, 4),
    **kvtuner_codecs(False),
    **kvtuner_codecs(True),
    ("int3-11pack", "plain"): (word11, 3),
}
FIXED_GROUP = {"nvfp4": 16, "mxfp4": 32, "int3-11pack": 11}
TOKEN_ONLY = ("fp8_e4m3", "fp8_e5m2", "nvfp4", "mxfp4")


def run_block(quantize, codec, bits, x, constant):
    codes, params, y = quantize(np.ascontiguousarray(x.T), constant)
    if codec == "int3-11pack":
        words = (codes.astype(np.uint32) << (3 * np.arange(11)).astype(np.uint32)).sum(axis=1)
        return words.astype(np.uint32).view(np.uint8), params, y.T
    return row_bits(codes.T, bits), params, y.T


def run_case(codec, variant, axis, x, constant, group):
    quantize, bits = CODECS[codec, variant]
    if axis == "channel":
        parts = [run_block(quantize, codec, bits, x[t:t + group], constant)
                 for t in range(0, len(x), group)]
        return tuple(np.concatenate([p[i].reshape(-1) for p in parts]) for i in range(3))
    parts = [quantize(x[:, d:d + group], constant) for d in range(0, x.shape[1], group)]
    codes = np.concatenate([p[0] for p in parts], axis=1)
    return row_bits(codes, bits), np.concatenate([p[1] for p in parts], axis=1), \
        np.concatenate([p[2] for p in parts], axis=1)


def hexes(array, kind):
    return np.ascontiguousarray(array, dtype=kind).view(np.uint8).tobytes().hex()


def write_case(out, name, codec, variant, axis, x, group, constant=F32(0), made=None):
    x = np.ascontiguousarray(x, dtype=F32)
    codes, params, y = made or run_case(codec, variant, axis, x, constant, group)
    bits = np.asarray([constant], F32).view(np.uint32)[0]
    out.write(f"case {name} {codec} {axis} {variant} {bits:08x} {x.shape[0]} {x.shape[1]} {group}\n")
    out.write(f"x {hexes(x, F32)}\ncodes {hexes(codes, np.uint8)}\n")
    out.write(f"params {hexes(params, np.uint8)}\ny {hexes(y, F32)}\n")


def edge_inputs(rng, count):
    ramp = np.arange(count, dtype=F32)
    return {
        "zero": np.zeros(count),
        "both_zeros": np.where(ramp % 2 == 0, 0.0, -0.0),
        "constant": np.full(count, -0.1),
        "ties": ramp / 4 - 1,
        "tiny": (ramp - 3) * 2.0 ** -30,
        "outlier": np.where(ramp == 3, 1000.0, rng.standard_normal(count) * 1e-3),
        "key_bias": 605 + rng.standard_normal(count),
    }


def calibrated_constant(codec, x, rng):
    """Some scales saturate, some leave room."""
    largest = F32(max(float(np.abs(x).max()), 1e-3))
    divisor = {"fp8_e4m3": 448, "fp8_e5m2": 57344, "nvfp4": 6 * 448}[codec]
    return F32(largest / F32(divisor) * F32(rng.uniform(0.4, 4)))


def constant_for(codec, variant, x, rng):
    return calibrated_constant(codec, x, rng) if variant == "calibrated" else F32(0)


def write_golden(out):
    rng = np.random.default_rng(20261130)
    for codec, variant in CODECS:
        channel = codec not in TOKEN_ONLY
        group = FIXED_GROUP.get(codec, 16)
        for name, row in edge_inputs(rng, group).items():
            x = row.reshape(group, 1).astype(F32) if codec == "int3-11pack" else row.reshape(1, -1)
            axis = "channel" if codec == "int3-11pack" else "token"
            x = x.astype(F32)
            write_case(out, name, codec, variant, axis, x, group, constant_for(codec, variant, x, rng))
        if codec != "int3-11pack":
            for head_dim, groups in ((80, 32), (64, 64)):
                x = reference.random_input(rng, 1, head_dim).astype(F32)
                write_case(out, "random", codec, variant, "token", x, FIXED_GROUP.get(codec, groups),
                           constant_for(codec, variant, x, rng))
        if channel:
            x = reference.random_input(rng, FIXED_GROUP.get(codec, 32), 4).astype(F32)
            write_case(out, "random", codec, variant, "channel", x, len(x))


def write_random(out, count, seed):
    rng = np.random.default_rng(seed)
    keys = list(CODECS)
    for i in range(count):
        codec, variant = keys[int(rng.integers(len(keys)))]
        head_dim = int(rng.choice([8, 64, 80, 96, 128, 256]))
        channel = codec == "int3-11pack" or (codec not in TOKEN_ONLY and rng.integers(2))
        if channel:
            group = FIXED_GROUP.get(codec, int(rng.choice([1, 31, 32, 33, 64, 128])))
            tokens = group
        else:
            group = FIXED_GROUP.get(codec, int(rng.choice([32, 64, 128, head_dim])))
            tokens = int(rng.integers(1, 4))
        group = group if channel else min(group, head_dim)
        x = reference.random_input(rng, tokens, head_dim).astype(F32)
        write_case(out, f"fresh{i}", codec, variant, "channel" if channel else "token", x, group,
                   constant_for(codec, variant, x, rng))


if __name__ == "__main__":
    sys.exit(reference.main(write_golden, write_random))
