#!/usr/bin/env python3
"""Makes golden/longbench_prompts.json: digests of LongBench prompts and of cut ones, from Python.

Usage: make_longbench_prompts.py DATA_DIR TOKENIZERS_DIR

DATA_DIR holds longbench/config and longbench/mini, TOKENIZERS_DIR a folder a tokenizer (set-up puts
them into .deps/tokenizers). Needs transformers. Only hashes of the data are kept.
"""
import hashlib
import json
import pathlib
import random
import sys

from transformers import AutoTokenizer

HERE = pathlib.Path(__file__).resolve().parent
PROJECT = HERE.parent.parent.parent
ROWS = 5
PIECES = ["The quick brown fox ", "naïve ", "北京大学", "😀", "\n\n", "x", " 1234567", "\tdef f(a):\n",
          "ƒ", "<s>", "</s>", "  ", "e\u0301", "الع", "\r\n", "'s"]
CUTS = (2, 3, 7, 64, 101, 400)


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def prompts(data):
    templates = json.load(open(data / "longbench/config/dataset2prompt.json", encoding="utf-8"))
    golden = {}
    for name, template in templates.items():
        with open(data / f"longbench/mini/{name}.jsonl", encoding="utf-8") as file:
            rows = [json.loads(line) for line in file][:ROWS]
        golden[name] = [digest(template.format(**row)) for row in rows]
    return golden


def cut(tokenizer, prompt, max_length):
    ids = tokenizer(prompt, truncation=False).input_ids
    if len(ids) <= max_length:
        return prompt
    half = int(max_length / 2)
    return (tokenizer.decode(ids[:half], skip_special_tokens=True)
            + tokenizer.decode(ids[-half:], skip_special_tokens=True))


def drawn_text(seed):
    """The test draws the same: 600 pieces, each getrandbits(4)."""
    rng = random.Random(seed)
    return "".join(PIECES[rng.getrandbits(4)] for _ in range(600))


def cuts(folder):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return [digest(cut(tokenizer, drawn_text(seed), tokens))
            for seed in range(8) for tokens in CUTS]


def cut_rows(data, folder):
    """Real prompts cut to 3500 tokens."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    templates = json.load(open(data / "longbench/config/dataset2prompt.json", encoding="utf-8"))
    golden = {}
    for name in ("narrativeqa", "multifieldqa_zh", "repobench-p"):
        with open(data / f"longbench/mini/{name}.jsonl", encoding="utf-8") as file:
            row = json.loads(file.readline())
        golden[name] = digest(cut(tokenizer, templates[name].format(**row), 3500))
    return golden


def main():
    data, tokenizers = map(pathlib.Path, sys.argv[1:])
    golden = {"prompts": prompts(data), "pieces": PIECES, "max_tokens": CUTS,
              "cuts": {"models/reference": cuts(PROJECT / "models/reference")},
              "cut_rows": {}}
    for folder in sorted(path for path in tokenizers.iterdir() if path.is_dir()):
        golden["cuts"][f".deps/tokenizers/{folder.name}"] = cuts(folder)
        golden["cut_rows"][f".deps/tokenizers/{folder.name}"] = cut_rows(data, folder)
    with open(HERE / "golden/longbench_prompts.json", "w", encoding="utf-8") as file:
        json.dump(golden, file, ensure_ascii=False, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
