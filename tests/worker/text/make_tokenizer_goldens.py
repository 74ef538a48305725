#!/usr/bin/env python3
"""Write data/tokenizers_golden.json: what transformers makes of odd texts and of conversations with
the tokenizers of some models, and what Mistral's tekken makes of them.

    python3 make_tokenizer_goldens.py DEPS

DEPS is .deps after scripts/setup: tokenizers/<name> and the GGUF file of SmolLM2 in models/ below
it. Needs transformers (5.24 was used), gguf and tiktoken. Prompts are written by hash, so that no text of the models stands
in the tree; long texts as what is repeated how often, and their ids by hash.
"""
import argparse
import base64
import hashlib
import json
from pathlib import Path

import tiktoken
from tokenizers import Tokenizer
from transformers import AutoTokenizer, PreTrainedTokenizerFast
from transformers.utils import chat_template_utils

import smollm2_tokenizer
from make_goldens import FixedDate, render
from template_cases import NOW

OUT = Path(__file__).resolve().parent / "data" / "tokenizers_golden.json"
FOLDERS = {
    "llama3_1": "tokenizers/llama3_1",
    "qwen3": "tokenizers/qwen3",
    "llama2": "tokenizers/llama2",
    "gpt4o": "tokenizers/gpt4o",
    "gpt35turbo": "tokenizers/gpt35turbo",
    "smollm2": "models/SmolLM2-135M-Instruct.Q4_1.gguf",
}

TEXTS = [
    "", " ", "\n", "hello world", "  hello  world  ", "Hello, World ! It 's ok . do n't ?",
    "\thello\t\tworld\n", "a\n\n\n\nb\r\nc\r\r", "   \n  \n\n \t\n x", "if x:\n        return\n    else:",
    "naïve café", "e\u0301a\u0323\u0302 o\u0308", "\u1e0b\u0323 \ufb01 \u212b", "日本語のテキスト。", "中文和 English 混排",
    "한국어 \u1112\u1161\u11ab", "😀", "👩‍👩‍👧‍👦 👍🏽 🇩🇪", "שלום עולם", "مرحبا بالعالم \u202eabc\u202c", "नमस्ते १२३", "ไทย",
    "\u00a0no-break\u2003em\u3000wide", "\u200bzero\u200dwidth\ufeff", "zero\x00byte \x01\x7f",
    "1234567890", "3.14159 and 1,000,000 #### 42", "٣٤٥ ４５ ½ Ⅷ", "x=1+2*3;y/=z%7 != -> ::",
    "I'm can't THEY'LL we’ve 'tis", "http://a.b/c?d=e&f=%20#g", "<html>&amp;</html>",
    "<s>", "a </s> b<s>c", "<unk>", "<|begin_of_text|>x<|eot_id|>", "<|im_start|>user\nhi<|im_end|>\n",
    "<|im_start|> <|im_end", "<|endoftext|>", "<think>\n\n</think>", "[INST] <<SYS>> [/INST]",
    "<0x41><0x0A>", "▁under▁score _", "Ġ Ċ", "\U0010ffff \ue000", "ﷺ", "ß ẞ ŉ İi", "a" * 40,
    " " * 20 + "x" + " " * 33,
]
PHI3_TEXTS = [
    "<|user|>\n What? <|end|>\n<|assistant|>\n", "<|system|>  \t be brief", "a <|endoftext|>\n b",
    "<s> x</s>\n\n y <unk> z", "<|user|><|end|>\u3000\u00a0x", "<|end|>  ", "<|placeholder3|> \r\n<|user|> a",
]
LONG = [("word ", 4000), ("é日😀\n", 1500), (" ", 3000), ("\n", 2000), ("x", 3000), ("</s>", 800)]

SYSTEM = {"role": "system", "content": " Be brief.  "}
QUESTION = {"role": "user", "content": "What is 2+2?\n"}
TURNS = [
    {"role": "user", "content": "  Say \"it's\" <b>&\\ ok\n\tdone "},
    {"role": "assistant", "content": "<think>\nhm\n</think>\n\n  It's ok 😀 日本\u00a0"},
    {"role": "user", "content": ""},
]
CONVERSATIONS = {
    "single": [QUESTION],
    "system": [SYSTEM, QUESTION],
    "turns": [*TURNS],
    "system and turns": [SYSTEM, *TURNS, {"role": "assistant", "content": "4"}],
    "special": [{"role": "user", "content": "</s><|im_end|><|eot_id|>[/INST]"}],
    "assistant first": [TURNS[1], QUESTION],
}


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def load(path):
    """These two name classes that would put GPT-2's expression in the place of their own."""
    if path.suffix == ".gguf":
        return smollm2_tokenizer.load(path)
    if path.name.startswith("gpt"):
        return PreTrainedTokenizerFast(tokenizer_file=str(path / "tokenizer.json"),
                                       clean_up_tokenization_spaces=False)
    return AutoTokenizer.from_pretrained(path)


def phi3(llama2):
    """Phi-3's tokenizer: Llama 2's, with these added tokens in its tokenizer.json."""
    document = json.loads((llama2 / "tokenizer.json").read_text("utf-8"))
    names = ["<|endoftext|>", "<|assistant|>", "<|placeholder1|>", "<|placeholder2|>",
             "<|placeholder3|>", "<|placeholder4|>", "<|system|>", "<|end|>", "<|placeholder5|>",
             "<|placeholder6|>", "<|user|>"]
    added = document["added_tokens"]
    added[2].update(rstrip=True, special=False)
    for i, name in enumerate(names):
        added.append({**added[0], "id": 32000 + i, "content": name,
                      "rstrip": name != "<|endoftext|>"})
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(document)),
        clean_up_tokenization_spaces=False)


def tekken(path):
    """Rows of [index of the text, ids], by tiktoken, with which Mistral's code encodes. Texts with
    the names of special tokens are left out: that code has no such tokens in texts."""
    document = json.loads(path.read_text("utf-8"))
    config = document["config"]
    special = config["default_num_special_tokens"]
    ranks = {base64.b64decode(row["token_bytes"]): row["rank"]
             for row in document["vocab"][:config["default_vocab_size"] - special]}
    encoding = tiktoken.Encoding("tekken", pat_str=config["pattern"], mergeable_ranks=ranks,
                                 special_tokens={})
    return [[i, [special + rank for rank in encoding.encode(text)]] for i, text in enumerate(TEXTS)
            if not any(name in text for name in ("<s>", "</s>", "<unk>", "[INST]"))]


def text_row(tokenizer, text):
    """What equals the line before it is left out: `special` (ids), `decoded` (text), `plain`."""
    ids = tokenizer(text, add_special_tokens=False).input_ids
    special = tokenizer(text, add_special_tokens=True).input_ids
    decoded = tokenizer.decode(ids, skip_special_tokens=False)
    plain = tokenizer.decode(ids, skip_special_tokens=True)
    row = {"ids": ids}
    if special != ids:
        row["special"] = special
    if decoded != text:
        row["decoded"] = decoded
    if plain != decoded:
        row["plain"] = plain
    return row


def long_row(tokenizer, unit, count):
    text = unit * count
    ids = tokenizer(text, add_special_tokens=False).input_ids
    decoded = tokenizer.decode(ids, skip_special_tokens=False)
    return {"count": len(ids), "sha256": sha256(",".join(map(str, ids)).encode()),
            "decoded_sha256": sha256(decoded.encode())}


def prompt_row(tokenizer, messages, add_generation_prompt):
    row = render(tokenizer, None, messages, add_generation_prompt)
    if "prompt" in row:
        prompt = row["prompt"].encode()
        row = {"bytes": len(prompt), "sha256": sha256(prompt)}
    return {"add_generation_prompt": add_generation_prompt, **row}


def prompt_rows(tokenizer):
    """Empty when the tokenizer has no chat template."""
    if not tokenizer.chat_template:
        return {}
    return {name: [prompt_row(tokenizer, messages, False), prompt_row(tokenizer, messages, True)]
            for name, messages in CONVERSATIONS.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("deps", type=Path)
    deps = parser.parse_args().deps

    chat_template_utils.datetime = FixedDate
    golden = {"now": NOW, "texts": TEXTS, "long": [{"unit": u, "count": n} for u, n in LONG],
              "conversations": CONVERSATIONS, "tokenizers": {}}
    for name, folder in FOLDERS.items():
        tokenizer = load(deps / folder)
        golden["tokenizers"][name] = {
            "folder": folder,
            "texts": [text_row(tokenizer, text) for text in TEXTS],
            "long": [long_row(tokenizer, *row) for row in LONG],
            "prompts": prompt_rows(tokenizer),
        }
    golden["phi3"] = {text: text_row(phi3(deps / FOLDERS["llama2"]), text)
                      for text in TEXTS + PHI3_TEXTS}
    golden["tekken"] = tekken(deps / "tokenizers" / "tekken" / "tekken.json")
    text = json.dumps(golden, ensure_ascii=True, separators=(",", ":"))
    OUT.write_text(text + "\n", encoding="utf-8")
    print(f"{OUT.name}: {len(text)} bytes")


if __name__ == "__main__":
    main()
