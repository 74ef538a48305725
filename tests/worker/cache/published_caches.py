#!/usr/bin/env python3
"""The caches of KVTuner and of KVmix's 3-bit keys again, in numpy, step by step as the published code
runs: what each query is given, and what the cache holds. Writes the golden file that
published_caches_test.cpp reads. Needs numpy only.

    published_caches.py tests/worker/cache/goldens/published_caches.txt

Inputs come from a generator that the test has too, so the file holds results only:
    case SCHEME GROUP RESIDUAL BASE K V HEADS HEAD_DIM PROMPT TOKENS SYMMETRIC
                                      GROUP 0: the whole head
    step POSITION CODED_K CODED_V SHA_K SHA_V     after the query at POSITION was given its rows;
                                                  SHA-256 of the coded rows, fp32 [tokens][heads][dim]
    out POSITION HEAD X X X X                     first four channels of attention, in double
"""
import hashlib
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "codec"))
import reference_codecs  # noqa: E402

F32 = np.float32
ROUND = {"fp32": lambda x: x, "fp16": lambda x: x.astype(np.float16).astype(F32),
         "bf16": reference_codecs.round_bf16}


class Numbers:
    """Multiples of 1/512 between -4 and 4, from a linear congruential generator."""

    def __init__(self, seed):
        self.state = seed

    def draw(self, *shape):
        out = np.empty(int(np.prod(shape)), F32)
        for i in range(out.size):
            self.state = (1103515245 * self.state + 12345) % 2**31
            out[i] = ((self.state >> 8) % 4097 - 2048) / 512
        return out.reshape(shape)


class KvTunerSide:
    """One tensor of flexible_quant's cache, [heads, tokens, dim] (batch 1), force_quant False."""

    def __init__(self, quantize, axis, group, residual):
        self.quantize, self.axis, self.group, self.limit = quantize, axis, group, residual
        self.coded = None
        self.residual = None  # None: the published torch.zeros(0), which has one dimension

    def through(self, x):
        x = np.swapaxes(x, -1, -2) if self.axis == "channel" else x
        flat = np.ascontiguousarray(x).reshape(-1, self.group or x.shape[-1])
        x = self.quantize(flat, F32(0))[2].astype(F32).reshape(x.shape)
        return np.swapaxes(x, -1, -2) if self.axis == "channel" else x

    def prefill(self, x):
        self.coded = self.through(x)

    def update(self, new):
        """Returns what attention is given; codes afterwards."""
        parts = [self.coded, new] if self.residual is None else [self.coded, self.residual, new]
        given = np.concatenate(parts, axis=1)
        seen = self.coded
        if self.residual is not None and self.residual.shape[1] + 1 >= self.limit:
            self.coded, self.residual = self.through(given), None
        else:
            self.residual = given[:, seen.shape[1]:]
        return given, seen


def kvtuner_symmetric(bits, bf16):
    """The symmetric quantizer of the same source."""
    r = reference_codecs.round_bf16 if bf16 else lambda v: np.asarray(v, F32)
    high = F32((1 << (bits - 1)) - 1)

    def run(x, _):
        x = r(x)
        scale = r(np.maximum(np.abs(x).max(axis=-1, keepdims=True), r(F32(1e-5))) / high)
        return None, None, r(np.clip(np.rint(r(x / scale)), -high - 1, high) * scale)
    return run


class KvMixSide:
    """One tensor of KVmix's cache: r of the window stays exact, blocks are coded once."""

    def __init__(self, quantize, axis, block, group, ratio):
        self.quantize, self.axis, self.block, self.group = quantize, axis, block, group
        self.ratio, self.coded, self.window = ratio, None, None

    def flush(self):
        length = self.window.shape[1]
        leave = (length - int(self.ratio * length)) // self.block * self.block
        for begin in range(0, leave, self.block):
            x = self.window[:, begin:begin + self.block]
            if self.axis == "channel":
                flat = np.swapaxes(x, -1, -2).reshape(-1, self.block)
                y = self.quantize(flat, F32(0))[2].reshape(x.shape[0], x.shape[2], self.block)
                y = np.swapaxes(y, -1, -2)
            else:
                y = self.quantize(x.reshape(-1, self.group), F32(0))[2].reshape(x.shape)
            self.coded = np.concatenate([self.coded, y.astype(F32)], axis=1)
        self.window = self.window[:, leave:]

    def prefill(self, x):
        self.coded, self.window = x[:, :0], x
        self.flush()

    def update(self, new):
        self.window = np.concatenate([self.window, new], axis=1)
        self.flush()
        return np.concatenate([self.coded, self.window], axis=1), self.coded


def sides(scheme, group, residual, k, v, symmetric):
    if scheme == "kvmix-11pack":
        ratio = {2: .2, 3: .2, 4: .3}
        return (KvMixSide(reference_codecs.word11, "channel", 11, 11, ratio[k]),
                KvMixSide(reference_codecs.affine(v), "token", group, group, ratio[v]))
    bf16 = scheme.endswith("bf16")
    keys = "channel" if "kivi" in scheme else "token"
    quantizer = kvtuner_symmetric if symmetric else reference_codecs.kvtuner
    return (KvTunerSide(quantizer(k, bf16), keys, group, residual),
            KvTunerSide(quantizer(v, bf16), "token", group, residual))


def attention(q, keys, values):
    """One query per head, in double: q [heads, dim], keys and values [heads, tokens, dim]."""
    scores = np.einsum("hd,htd->ht", q.astype(np.float64), keys.astype(np.float64))
    scores /= np.sqrt(q.shape[1])
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return np.einsum("ht,htd->hd", weights, values.astype(np.float64))


def sha(rows):
    return hashlib.sha256(np.ascontiguousarray(np.swapaxes(rows, 0, 1), F32).tobytes()).hexdigest()


def run_case(out, seed, scheme, group, residual, base, k, v, heads, dim, prompt, tokens,
             symmetric=0):
    out.write(f"case {scheme} {group} {residual} {base} {k} {v} {heads} {dim} {prompt} {tokens} "
              f"{symmetric}\n")
    numbers = Numbers(seed)
    keys, values, queries = (numbers.draw(tokens, heads, dim) for _ in range(3))
    keys = keys + F32(4) * (np.arange(dim) % 3).astype(F32)  # channels with offsets, as real keys
    keys, values = (np.swapaxes(ROUND[base](x), 0, 1) for x in (keys, values))
    key_side, value_side = sides(scheme, group, residual, k, v, symmetric)
    key_side.prefill(keys[:, :prompt])
    value_side.prefill(values[:, :prompt])
    given = keys[:, :prompt], values[:, :prompt]  # the prompt sees itself as it came
    seen = key_side.coded, value_side.coded
    for p in range(prompt - 1, tokens):
        if p >= prompt:
            updates = [side.update(rows[:, p:p + 1])
                       for side, rows in ((key_side, keys), (value_side, values))]
            given, seen = zip(*updates)
        out.write(f"step {p} {seen[0].shape[1]} {seen[1].shape[1]} {sha(seen[0])} {sha(seen[1])}\n")
        if (p - prompt) % 5 == 0 or p == tokens - 1:
            for head, row in enumerate(attention(queries[p], *given)):
                out.write(f"out {p} {head} {' '.join(f'{x:.9f}' for x in row[:4])}\n")


def cases():
    for prompt in (1, 7, 32):
        yield "kvtuner", 0, 0, "fp16", 4, 2, 2, 64, prompt, prompt + 7
    yield "kvtuner", 0, 1, "fp16", 2, 8, 1, 64, 5, 11
    yield "kvtuner", 0, 2, "fp32", 2, 2, 1, 80, 5, 12
    yield "kvtuner", 32, 32, "bf16", 8, 4, 2, 64, 33, 100
    yield "kvtuner", 0, 32, "fp32", 2, 2, 1, 128, 64, 98
    yield "kvtuner-bf16", 0, 0, "bf16", 8, 4, 2, 64, 20, 29
    yield "kvtuner-bf16", 64, 5, "fp32", 2, 2, 1, 128, 3, 15
    for prompt in (1, 31, 32, 33, 70):
        yield "kvtuner-kivi", 32, 32, "fp16", 2, 4, 2, 64, prompt, prompt + 67
    yield "kvtuner-kivi", 32, 0, "fp32", 2, 2, 2, 80, 9, 20  # groups straddle heads as well
    yield "kvtuner-kivi", 64, 3, "fp32", 4, 4, 2, 64, 66, 80
    yield "kvtuner-kivi-bf16", 32, 32, "bf16", 4, 2, 2, 64, 45, 80
    yield "kvtuner", 0, 0, "fp16", 4, 2, 2, 64, 9, 16, 1
    yield "kvtuner-bf16", 32, 4, "bf16", 8, 2, 1, 64, 9, 22, 1
    yield "kvtuner-kivi", 32, 32, "fp32", 4, 8, 2, 64, 37, 75, 1
    for prompt in (5, 11, 13, 14, 70, 150):
        yield "kvmix-11pack", 32, 0, "fp16", 3, 4 if prompt % 2 else 2, 2, 64, prompt, prompt + 45


if __name__ == "__main__":
    with open(sys.argv[1], "w") as golden:
        for number, case in enumerate(cases()):
            run_case(golden, 1 + number, *case)
