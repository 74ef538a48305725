#!/usr/bin/env python3
"""Write golden/likelihoods.json: what transformers and lm-eval 0.4.13 make of SmolLM2 on WikiText-2.

    python3 tests/worker/service/make_likelihood_goldens.py GGUF DATA_DIR

GGUF is the file that scripts/setup fetches, which transformers dequantizes itself; DATA_DIR holds
wikitext2/wiki.test.raw. Needs torch, transformers, gguf, accelerate and lm_eval==0.4.13. Windows of the
paper's and of llama.cpp's convention are scored here with transformers; pages and choices go through
lm-eval's own HFLM (rolling windows, splitting into context and continuation) and detokenizer. All in
fp32 on the CPU. No text of the data set is written.
"""
import json
import sys
from pathlib import Path

import numpy
import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks.wikitext import preprocess_wikitext

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "engine"))
from make_parity_goldens import tokenizer_of  # noqa: E402

OUT = Path(__file__).resolve().parent / "golden" / "likelihoods.json"
WIKI = "wikitext2/wiki.test.raw"
WINDOW = 256
WINDOWS = 2
PAGE_WINDOW = 96
EXCERPT_LINES = 6
QUIZ = [
    ("Question: What do bees make?\nAnswer:", ["honey", "milk and butter", "steel"], 0),
    ("The sun rises in the", ["west", "east"], 1),
    ("Water freezes when it gets very", ["hot in the afternoon", "cold", "loud", "old"], 1),
    ("A triangle has ", ["three sides", "four sides"], 0),
    ("Zürich liegt in der", ["Schweiz", "Türkei, glaube ich"], 0),
]


def paper_tokens(tokenizer, raw):
    """The rows of the data set: a line of one blank is an empty row; others keep their line feed."""
    lines = raw.split("\n")
    rows = [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    return tokenizer.encode("\n\n".join("" if row == " \n" else row for row in rows))


@torch.no_grad()
def window_nll(model, tokens, first):
    """Mean over the tokens from `first` on, each given those before it."""
    logits = model(torch.tensor([tokens])).logits[0].double()
    chosen = torch.log_softmax(logits[:-1], -1)[range(len(tokens) - 1), tokens[1:]]
    return -chosen[first - 1:].mean().item()


def windows(model, name, tokens, first):
    cut = [tokens[i * WINDOW:(i + 1) * WINDOW] for i in range(WINDOWS)]
    return {"task": f"{name}/{WIKI}", "length": WINDOW, "tokens": [WINDOW - first] * WINDOWS,
            "nll": [window_nll(model, window, first) for window in cut]}


def page(model, tokenizer, text):
    doc = {"page": text}
    lm = HFLM(pretrained=model, tokenizer=tokenizer, max_length=PAGE_WINDOW, batch_size=1)
    target = preprocess_wikitext.wikitext_detokenizer(doc)
    [total] = lm.loglikelihood_rolling(
        [Instance("loglikelihood_rolling", doc, (target,), 0)], disable_tqdm=True)
    words = preprocess_wikitext.process_results(doc, [total])["word_perplexity"][1]
    tokens = len(tokenizer.encode(target, add_special_tokens=False))
    return {"task": "word_perplexity/excerpt.raw", "length": PAGE_WINDOW, "tokens": [tokens],
            "words": [words], "nll": [-total / tokens]}


def choices(model, tokenizer):
    lm = HFLM(pretrained=model, tokenizer=tokenizer, max_length=512, batch_size=1)
    rows = []
    for question, texts, answer in QUIZ:
        asked = [Instance("loglikelihood", {}, (question, " " + text), i)
                 for i, text in enumerate(texts)]
        results = lm.loglikelihood(asked, disable_tqdm=True)
        sums = [total for total, _ in results]
        lengths = numpy.array([float(len(text)) for text in texts])
        rows.append({"log_likelihoods": sums, "greedy": [bool(greedy) for _, greedy in results],
                     "acc": float(numpy.argmax(sums) == answer),
                     "acc_norm": float(numpy.argmax(sums / lengths) == answer)})
    return rows


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    path = Path(sys.argv[1])
    raw = (Path(sys.argv[2]) / WIKI).read_text(encoding="utf-8")
    model = LlamaForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32,
                                             attn_implementation="eager").eval()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer_of(path),
                                        bos_token="<|im_start|>", eos_token="<|im_end|>")
    # The blank line before the first title belongs to no page.
    excerpt = "\n".join(raw.split("\n")[1:EXCERPT_LINES])
    quiz = "".join(json.dumps({"question": q, "choices": c, "answer": a}) + "\n" for q, c, a in QUIZ)
    golden = {
        "excerpt_lines": EXCERPT_LINES,
        "quiz": quiz,
        "texts": [
            windows(model, "perplexity", paper_tokens(tokenizer, raw), 1),
            windows(model, "half_perplexity", tokenizer.encode(raw), WINDOW // 2 + 1),
            page(model, tokenizer, excerpt),
        ],
        "choices": choices(model, tokenizer),
    }
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(golden, indent=1) + "\n")
    print(f"{OUT}: {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
