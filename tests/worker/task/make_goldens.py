#!/usr/bin/env python3
"""Writes golden/*.json for the tests of worker/task, from Python's own `random` and `re`.

    make_goldens.py [DATA_DIR]      (default: $KVSWEEP_DATA_DIR)

golden/filters.json   answer filters and clean-up of lm-evaluation-harness's task gsm8k (3.0) on
                      generated strings: the first ones in full, all of them as one digest
golden/random.json    draws of random.Random, for both ways in which random.sample picks
golden/prompts.json   SHA-256 of the first 40 prompts at 4, 5 and 8 shots (hashes only; needs
                      DATA_DIR/gsm8k/{train,test}.jsonl, left alone without)
golden/unicode.json   digests of what str and re say of every code point (Python 3.11: its Unicode
                      version is the one of worker/task/unicode_tables.inc)

Standard library only.
"""
import hashlib
import json
import os
import pathlib
import random
import re
import sys

GOLDEN = pathlib.Path(__file__).parent / "golden"
INVALID = "[invalid]"

# 32 pieces, so that a piece is 5 random bits; the test generates the same strings.
PIECES = ["#### ", "#### ", "####", "#", " ", "\n", "-", "-", "$", "$", ",", ".", ".", "0", "1", "7",
          "42", "1,000", "3.5", "a", "The", "Question:", "</s>", "<|im_end|>", "\u00e9", "\u20ac",
          "[", "x", "=", "\r", "...", "#### 5"]
STRINGS = 10000
SHOWN = 250


def strict(text):
    found = re.findall(r"#### (\-?[0-9\.\,]+)", text)
    return found[0].strip() if found else INVALID


def flexible(text):
    found = re.findall(r"(-?[$0-9.,]{2,})|(-?[0-9]+)", text)
    if not found:
        return INVALID
    groups = [group for group in found[-1] if group]
    return groups[0].strip() if groups else INVALID


def clean(text):
    for pattern in (r",", r"\$", r"(?s).*#### ", r"\.$"):
        text = re.sub(pattern, "", text)
    return text.lower()


def cut(text):
    for stop in ("Question:", "</s>", "<|im_end|>"):
        text = text.split(stop)[0]
    return text


def strings():
    draw = random.Random(20)
    for _ in range(STRINGS):
        length = draw.getrandbits(4)
        yield "".join(PIECES[draw.getrandbits(5)] for _ in range(length))


def filters():
    digest = hashlib.sha256()
    shown = []
    for i, text in enumerate(strings()):
        row = {"text": text, "cut": cut(text), "strict": strict(text), "flexible": flexible(text),
               "clean": clean(text)}
        for key in ("text", "cut", "strict", "flexible", "clean"):
            digest.update(row[key].encode() + b"\0")
        if i < SHOWN:
            shown.append(row)
    return {"pieces": PIECES, "seed": 20, "count": STRINGS, "sha256": digest.hexdigest(),
            "rows": shown}


def draws():
    generator = random.Random(1234)
    words = [generator.getrandbits(32) for _ in range(1300)]
    samples = []
    for n, count in [(7473, 4), (7473, 16), (10, 3), (21, 5), (22, 5), (85, 6), (86, 6), (100, 21),
                     (277, 22), (278, 22), (64, 64), (1, 1), (5, 0), (1 << 20, 30)]:
        generator = random.Random(n)
        samples.append({"seed": n, "n": n, "count": count,
                        "first": generator.sample(range(n), count),
                        "second": generator.sample(range(n), count)})
    return {"seed": 1234, "first": words[:4], "last": words[-4:], "words": len(words),
            "samples": samples}


def rows(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def prompts(data_dir):
    train = rows(data_dir / "gsm8k" / "train.jsonl")
    test = rows(data_dir / "gsm8k" / "test.jsonl")
    hashes = {}
    for shots in (4, 5, 8):
        generator = random.Random(1234)
        hashes[shots] = []
        for document in test[:40]:
            context = ""
            for shot in generator.sample(train, shots):
                context += "Question: " + shot["question"] + "\nAnswer:" + " " + shot["answer"]
                context += "\n\n"
            context += "Question: " + document["question"] + "\nAnswer:"
            hashes[shots].append(hashlib.sha256(context.encode()).hexdigest())
    return hashes


def write(name, value):
    GOLDEN.mkdir(exist_ok=True)
    text = json.dumps(value, indent=1, ensure_ascii=True)
    (GOLDEN / name).write_text(text + "\n")


def unicode():
    classes, lowered, sigma = (hashlib.sha256() for _ in range(3))
    for point in range(0x110000):
        if 0xd800 <= point < 0xe000:
            continue
        c = chr(point)
        kind = (c.isspace() + 2 * (re.match(r"\d", c) is not None)
                + 4 * (re.match(r"\w", c) is not None))
        classes.update(str(kind).encode())
        lowered.update(c.lower().encode())
        for text in ("a" + c + "\u03a3", c + "\u03a3", "a\u03a3" + c, "a\u03a3" + c + "b"):
            sigma.update(text.lower().encode())
    return {"classes": classes.hexdigest(), "lower": lowered.hexdigest(),
            "sigma": sigma.hexdigest()}


def main():
    write("unicode.json", unicode())
    write("filters.json", filters())
    write("random.json", draws())
    folder = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("KVSWEEP_DATA_DIR", "")
    if folder:
        write("prompts.json", prompts(pathlib.Path(folder)))
    else:
        print("no DATA_DIR: golden/prompts.json is left alone")


if __name__ == "__main__":
    main()
