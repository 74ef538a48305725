#!/usr/bin/env python3
"""Compare a folder of scripts/convert_smollm2.py with what transformers reads from the GGUF itself.

    python3 check_conversion.py GGUF FOLDER

Needs torch, transformers, gguf and accelerate (versions: docs of make_goldens.py). Weights must be
equal to fp16 rounding (2^-11 relative; below 2^-14 fp16 has a fixed step of 2^-24) and logits, and
the greedy answer, must agree. transformers ignores the tokenizer's `pre`, so ids are compared by
make_goldens.py --gguf instead.
"""
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

MAX_LOGIT_DIFF = 0.1  # of a range of about 70; 0.041 was measured


def main():
    source, folder = Path(sys.argv[1]), sys.argv[2]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    read = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name,
                                                dtype=torch.float32)
    ours = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    parameters = dict(ours.named_parameters())
    for name, weight in read.named_parameters():
        allowed = (weight.abs() * 2.0**-11).clamp(min=2.0**-25)
        assert torch.all((weight - parameters.pop(name)).abs() <= allowed), name
    assert not parameters, parameters.keys()

    question = [{"role": "user", "content": "What is the capital of France?"}]
    text = tokenizer.apply_chat_template(question, tokenize=False, add_generation_prompt=True)
    inputs = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        difference = (read(**inputs).logits - ours(**inputs).logits).abs().max().item()
        answers = [tokenizer.decode(m.generate(**inputs, max_new_tokens=20, do_sample=False)[0])
                   for m in (read, ours)]
    assert difference <= MAX_LOGIT_DIFF, difference
    assert answers[0] == answers[1], answers
    print(f"equal to fp16 rounding; logits differ by at most {difference:.3f}; {answers[1]!r}")


if __name__ == "__main__":
    main()
