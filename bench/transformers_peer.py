#!/usr/bin/env python3
"""The same measurement as kvsweep_bench_engine, with transformers in fp32.

    python transformers_peer.py --model DIR_OR_GGUF --tokens FILE [--threads N]

FILE is what kvsweep_bench_engine --tokens wrote: the prompts to prefill and the tokens the engine's
baseline decoded after them. Prints CSV rows in its format, and a comment that says whether both
decode the same tokens. Needs torch and transformers, for a GGUF file also gguf and accelerate;
started by bench/run_engine.
"""
import argparse
import json
import time
from pathlib import Path

import torch
import transformers
from transformers import DynamicCache, LlamaForCausalLM


@torch.no_grad()
def run(model, prompt, count):
    """Seconds of prefill, seconds of decode, the tokens. The first token belongs to prefill."""
    cache = DynamicCache()
    started = time.perf_counter()
    result = model(torch.tensor([prompt]), past_key_values=cache, use_cache=True, logits_to_keep=1)
    tokens = [int(result.logits[0, -1].argmax())]
    prefilled = time.perf_counter()
    while len(tokens) < count:
        result = model(torch.tensor([tokens[-1:]]), past_key_values=cache, use_cache=True)
        tokens.append(int(result.logits[0, -1].argmax()))
    return prefilled - started, time.perf_counter() - prefilled, tokens


def load(path):
    folder, options = (path.parent, {"gguf_file": path.name}) if path.is_file() else (path, {})
    return LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32, **options).eval()


def cache_bytes(model, tokens):
    config = model.config
    return tokens * config.num_hidden_layers * config.num_key_value_heads * config.head_dim * 2 * 4


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--tokens", required=True)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    model = load(Path(arguments.model))
    print(f"# transformers {transformers.__version__}, torch {torch.__version__}, "
          f"{arguments.threads} threads", flush=True)
    run(model, [1, 2, 3], 3)  # first calls set things up
    with open(arguments.tokens, encoding="utf-8") as file:
        cases = json.load(file)["cases"]
    for case in cases:
        prompt, expected = case["prompt"], case["tokens"]
        prefill, decode, tokens = run(model, prompt, len(expected))
        equal = sum(a == b for a, b in zip(tokens, expected))
        print(f"# context {len(prompt)}: {equal} of {len(expected)} decoded tokens equal kvsweep's")
        print(f"transformers,baseline,{len(prompt)},1,{len(prompt) / prefill:.1f},"
              f"{(len(tokens) - 1) / decode:.2f},{cache_bytes(model, len(prompt) + len(tokens) - 1)}",
              flush=True)


if __name__ == "__main__":
    main()
