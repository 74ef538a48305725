#!/usr/bin/env python3
"""Write data/*_golden.json: what transformers makes of odd texts and of chat templates.

    python3 make_goldens.py [--smollm2 GGUF]

Needs transformers (5.24 was used), gguf and regex. Without --smollm2 the goldens of SmolLM2 are left
alone. Its ids are also compared with a byte-level BPE written here from the words of the format
(`smollm`: every digit alone, then GPT-2's pattern) and from the vocabulary of the GGUF file, which
shares no code with tokenizers.
"""
import argparse
import datetime
import hashlib
import json
from pathlib import Path

from transformers import AutoTokenizer
from transformers.utils import chat_template_utils

import smollm2_tokenizer
from make_tiny import byte_table
from template_cases import CASES, CONVERSATIONS, NOW

DATA = Path(__file__).resolve().parent / "data"

TEXTS = [
    "", " ", "hello world", "hello  world", "  hello", "Hello, World!", "\thello\tworld\n",
    "line one\nline two\r\n\n\nline five", "naïve café", "日本語のテキスト", "中文和 English 混排",
    "한국어", "😀", "👩‍👩‍👧‍👦 family", "🇩🇪 flag", "e\u0301 combining", "\u00a0no-break\u2003em",
    "zero\x00byte", "\x01\x7f control", "1234567890", "3.14159 and 1,000,000", "१२३ ٣٤٥ ４５",
    "x=1+2*3;y/=z%7", "I'm can't THEY'LL we’ve", "<|im_end|>", "a<|im_end|>b <s></s>", "<|im_end",
    "<|im_start|>user\nhi<|im_end|>\n", "#### 42", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "\ufeffbyte order mark", "\U0010ffff last", "שלום עולם", "    four\n        eight",
]


def write(name, value):
    text = json.dumps(value, ensure_ascii=True, indent=1)
    (DATA / name).write_text(text + "\n", encoding="utf-8")
    print(f"{name}: {len(text)} bytes")


def token_rows(tokenizer):
    rows = []
    for text in TEXTS:
        ids = tokenizer(text, add_special_tokens=False).input_ids
        rows.append({
            "text": text,
            "ids": ids,
            "ids_with_special": tokenizer(text, add_special_tokens=True).input_ids,
            "decoded": tokenizer.decode(ids, skip_special_tokens=False),
            "decoded_without_special": tokenizer.decode(ids, skip_special_tokens=True),
        })
    return rows


class FixedDate(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromisoformat(NOW)


def render(tokenizer, template, conversation, add_generation_prompt):
    """The prompt, or what the template raised."""
    try:
        text = tokenizer.apply_chat_template(
            conversation, chat_template=template, tokenize=False,
            add_generation_prompt=add_generation_prompt)
        return {"prompt": text}
    except Exception as error:  # whatever the template does wrong
        return {"error": str(error)}


def template_rows(tokenizer):
    chat_template_utils.datetime = FixedDate
    rows = []
    for name, template in CASES.items():
        for conversation, messages in CONVERSATIONS.items():
            for prompt in (False, True):
                rows.append({"name": f"{name}/{conversation}/{prompt}", "template": template,
                             "messages": messages, "add_generation_prompt": prompt,
                             **render(tokenizer, template, messages, prompt)})
    return rows


def smollm2_rows(tokenizer):
    """Prompts by hash, so that no text of the model stands in the tree."""
    rows = []
    for name, messages in CONVERSATIONS.items():
        prompt = render(tokenizer, None, messages, True)["prompt"]
        rows.append({"name": name, "messages": messages, "bytes": len(prompt.encode()),
                     "sha256": hashlib.sha256(prompt.encode()).hexdigest()})
    return rows


def own_bpe(gguf_path):
    """encode(text) from the GGUF's tokens and merges. O(n^2) per word, for checking only."""
    import gguf
    import regex

    fields = gguf.GGUFReader(gguf_path).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    ids = {text: i for i, text in enumerate(tokens)}
    ranks = {m: i for i, m in enumerate(fields["tokenizer.ggml.merges"].contents())}
    kinds = fields["tokenizer.ggml.token_type"].contents()
    control = sorted((t for t, k in zip(tokens, kinds) if k == 3), key=len, reverse=True)
    special = regex.compile("|".join(map(regex.escape, control)))
    words = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+"
                          r"|\s+(?!\S)|\s+")
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    order = printable + [b for b in range(256) if b not in printable]
    letters = dict(zip(order, byte_table()))

    def word_ids(word):
        parts = [letters[b] for b in word.encode()]
        while True:
            best = min(((ranks.get(f"{a} {b}", 1 << 30), i)
                        for i, (a, b) in enumerate(zip(parts, parts[1:]))), default=(1 << 30, 0))
            if best[0] == 1 << 30:
                return [ids[p] for p in parts]
            i = best[1]
            parts[i:i + 2] = [parts[i] + parts[i + 1]]

    def plain_ids(text):
        out = []
        for piece in regex.findall(r"\p{N}|\P{N}+", text):
            for word in words.findall(piece):
                out += word_ids(word)
        return out

    def encode(text):
        out, at = [], 0
        for match in special.finditer(text):
            out += plain_ids(text[at:match.start()]) + [ids[match.group()]]
            at = match.end()
        return out + plain_ids(text[at:])

    return encode


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smollm2", help="the GGUF file that scripts/setup fetches")
    arguments = parser.parse_args()

    tiny = AutoTokenizer.from_pretrained(DATA / "tiny")
    write("tiny_golden.json", token_rows(tiny))
    write("template_golden.json", {"now": NOW, "rows": template_rows(tiny)})
    if arguments.smollm2:
        smollm2 = smollm2_tokenizer.load(arguments.smollm2)
        rows = token_rows(smollm2)
        encode = own_bpe(arguments.smollm2)
        for row in rows:
            assert encode(row["text"]) == row["ids"], row
        print("ids of SmolLM2 equal those of the independent BPE")
        write("smollm2_golden.json", {"tokens": rows, "prompts": smollm2_rows(smollm2)})


if __name__ == "__main__":
    main()
