#!/usr/bin/env python3
"""Write the greedy tokens of transformers for 50 prompts of the reference model's tasks: the
reference of ReferenceModel.GreedyTokens in parity_test.cpp.

    python3 tests/worker/engine/make_reference_goldens.py build/release/bin/kvsweep

Needs torch, transformers and tokenizers. The prompts are those of `kvsweep data print`. Everything
in fp32 on the CPU; an answer ends before the end-of-text token or after NEW_TOKENS.
"""
import json
import subprocess
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

TESTS = Path(__file__).resolve().parents[2]
MODEL = TESTS.parent / "models" / "reference"
OUT = TESTS / "worker" / "engine" / "golden" / "reference.json"
NEW_TOKENS = 80
PROMPTS = [(["word_problems", "--shots", "0"], 25), (["word_problems", "--shots", "4"], 15),
           (["recall", "--length", "256"], 5), (["recall", "--length", "1024"], 5)]


@torch.no_grad()
def greedy(model, tokens, end):
    out, gap = [], float("inf")
    result = model(torch.tensor([tokens]), use_cache=True)
    for _ in range(NEW_TOKENS):
        best = torch.topk(result.logits[0, -1], 2)
        gap = min(gap, (best.values[0] - best.values[1]).item())
        if int(best.indices[0]) == end:
            break
        out.append(int(best.indices[0]))
        result = model(torch.tensor([[out[-1]]]), past_key_values=result.past_key_values, use_cache=True)
    return out, gap


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    model = AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32).eval()
    tokenizer = Tokenizer.from_file(str(MODEL / "tokenizer.json"))
    cases = []
    for task, count in PROMPTS:
        command = [sys.argv[1], "data", "print", *task, "--split", "report", "--count", str(count)]
        for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
            tokens = tokenizer.encode(json.loads(line)["prompt"]).ids
            out, gap = greedy(model, tokens, model.config.eos_token_id)
            cases.append({"tokens": tokens, "greedy": out, "smallest_gap": float(f"{gap:.3g}")})
    OUT.write_text(json.dumps({"cases": cases}, separators=(",", ":")) + "\n")
    print(f"{OUT}: {len(cases)} prompts, {OUT.stat().st_size} bytes, "
          f"smallest gap {min(case['smallest_gap'] for case in cases)}")


if __name__ == "__main__":
    main()
