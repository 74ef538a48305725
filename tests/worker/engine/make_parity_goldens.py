#!/usr/bin/env python3
"""Write what transformers computes with SmolLM2-135M-Instruct: the reference of parity_test.cpp.

    python3 tests/worker/engine/make_parity_goldens.py GGUF

GGUF is the file that scripts/setup fetches (.deps/models/SmolLM2-135M-Instruct.Q4_1.gguf), which
transformers dequantizes itself. Needs torch, transformers, tokenizers, gguf and accelerate. Writes
tests/worker/engine/golden/smollm2.json: prompts of different lengths; for some positions the 20
largest logits and 50 fixed columns; and the greedy continuation. All in fp32 on the CPU.
"""
import json
import sys
from pathlib import Path

import gguf
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaForCausalLM

OUT = Path(__file__).resolve().parent / "golden" / "smollm2.json"
LENGTHS = (1, 7, 64, 200, 600)
NEW_TOKENS = 32
TOP = 20
COLUMNS = 50
SUBJECTS = ("a baker", "the ferry", "our neighbour", "a small library", "the observatory",
            "a potter", "the night train", "an old orchard", "the clockmaker", "a harbour pilot")
ACTS = ("counts {n} boxes before noon", "keeps {n} books about rivers",
        "sells {n} loaves and then closes early", "needs {n} minutes to cross the bay",
        "wrote {n} letters last winter", "repairs {n} bells for the town hall")


def text():
    """Plain English sentences, none of them twice."""
    sentences = []
    for i in range(120):
        act = ACTS[(i * 5 + 1) % len(ACTS)].format(n=7 + (i * 13) % 89)
        sentences.append(f"{SUBJECTS[(i * 7) % len(SUBJECTS)]} {act}".capitalize() + ".")
    return " ".join(sentences)


@torch.no_grad()
def greedy(model, tokens):
    out, gap = [], float("inf")
    result = model(torch.tensor([tokens]), use_cache=True)
    for _ in range(NEW_TOKENS):
        row = result.logits[0, -1]
        best = torch.topk(row, 2).values
        gap = min(gap, (best[0] - best[1]).item())
        out.append(int(row.argmax()))
        result = model(torch.tensor([[out[-1]]]), past_key_values=result.past_key_values,
                       use_cache=True)
    return out, gap


def short(values):
    return [float(f"{value:.6g}") for value in values]


@torch.no_grad()
def measure(model, tokens):
    logits = model(torch.tensor([tokens])).logits[0]
    last = len(tokens) - 1
    continuation, gap = greedy(model, tokens)
    rows = []
    for position in sorted({0, last // 4, last // 2, last - last // 8, last}):
        top = torch.topk(logits[position], TOP)
        rows.append({"position": position, "top_ids": top.indices.tolist(),
                     "top": short(top.values.tolist()),
                     "columns": short(logits[position, columns(model)].tolist())})
    return {"tokens": tokens, "rows": rows, "greedy": continuation,
            "smallest_gap": float(f"{gap:.3g}")}


def columns(model):
    return [(i * 983 + 11) % model.config.vocab_size for i in range(COLUMNS)]


def tokenizer_of(path):
    """The byte-level BPE of the file; `smollm` takes digits one by one, which transformers drops."""
    fields = gguf.GGUFReader(path).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    merges = [tuple(m.split(" ")) for m in fields["tokenizer.ggml.merges"].contents()]
    tokenizer = Tokenizer(models.BPE({text: i for i, text in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True),
         pre_tokenizers.ByteLevel(add_prefix_space=False)])
    return tokenizer


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    path = Path(sys.argv[1])
    model = LlamaForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32,
                                             attn_implementation="eager").eval()
    ids = tokenizer_of(path).encode(text()).ids
    cases = []
    for i, length in enumerate(LENGTHS):
        tokens = ids[i * 40:i * 40 + length]
        if len(tokens) != length:
            raise SystemExit(f"the text has only {len(ids)} tokens")
        cases.append(measure(model, tokens))
    golden = {"columns": columns(model), "cases": cases}
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(golden, separators=(",", ":")) + "\n")
    print(f"{OUT}: {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
