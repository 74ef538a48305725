"""Prints the expected values of tests/core that are not derived by hand.

Independent of the C++ code: written from the definitions (splitmix64, FNV-1a, RFC 8785 for the
plain JSON that map_id hashes, SHA-256 of hashlib). Run with any Python 3.
"""

import hashlib
import json

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def fnv1a64(text: str) -> int:
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 & MASK
    return value


def mix(z: int) -> int:
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def splitmix64(state: int):
    while True:
        state = state + GOLDEN & MASK
        yield mix(state)


def draws(seed: int, stream: str, count: int) -> list[int]:
    key = mix(seed + GOLDEN & MASK) ^ mix(fnv1a64(stream))
    source = splitmix64(key)
    return [next(source) for _ in range(count)]


def sha(meaning: dict) -> str:
    # Keys are ASCII and there are no floats, so sorted, compact JSON is canonical JSON.
    text = json.dumps(meaning, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


print("fnv1a64 foobar", hex(fnv1a64("foobar")))
print("splitmix64(1234567)", [next(s) for s in [splitmix64(1234567)] for _ in range(3)])
print("nsga2 seed 7", [hex(d) for d in draws(7, "nsga2", 4)])
print("word_problems/report seed 1", [hex(d) for d in draws(1, "word_problems/report", 2)])
print("uniform", [(d >> 11) / 2**53 for d in draws(7, "nsga2", 2)])

int8, int4 = "int8-token-ghead", "int4-token-ghead"
window = {"keep": 0, "block": 1}
print(
    "map_id per-token [K8V4, baseline]",
    sha(
        {
            "map": 1,
            "scheme": "per-token",
            "prefill": "stepwise",
            "k_window": window,
            "v_window": window,
            "layers": [{"k": int8, "v": int4}, {"k": "base", "v": "base"}],
        }
    ),
)
print(
    "map_id per-token [K8V4|K4V4, K8V4]",
    sha(
        {
            "map": 1,
            "scheme": "per-token",
            "prefill": "stepwise",
            "k_window": window,
            "v_window": window,
            "layers": [
                {"heads": [{"k": int8, "v": int4}, {"k": int4, "v": int4}]},
                {"k": int8, "v": int4},
            ],
        }
    ),
)
print(
    "map_id baseline of 2 layers",
    sha({"map": 1, "layers": [{"k": "base", "v": "base"}, {"k": "base", "v": "base"}]}),
)
