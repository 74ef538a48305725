#!/usr/bin/env python3
"""Write data/tiny: the files of a tokenizer that is small enough to check by hand.

Byte-level BPE: the 256 bytes in the order of GPT-2's byte table, then the merges below in order,
then the special tokens. The file also asks for truncation to 4 tokens and for padding, which the
worker must ignore, and puts <s> before a text when special tokens are wanted. Standard library
only.
"""
import json
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "data" / "tiny"
MERGES = ["h e", "l l", "he ll", "hell o", "Ġ w", "o r", "Ġw or", "Ġwor l", "Ġworl d", "Ġ Ġ"]
SPECIAL = ["<s>", "</s>", "<|im_end|>"]


def byte_table():
    """GPT-2's letters for bytes: printable bytes stand for themselves, the rest for U+0100 on."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    return [chr(b) for b in printable] + [chr(0x100 + i) for i in range(len(others))]


def tokenizer():
    pieces = byte_table() + [merge.replace(" ", "") for merge in MERGES]
    ids = {text: i for i, text in enumerate(pieces + SPECIAL)}
    bos = "<s>"
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                  "use_regex": True}
    return {
        "version": "1.0",
        "truncation": {"direction": "Right", "max_length": 4, "strategy": "LongestFirst",
                       "stride": 0},
        "padding": {"strategy": {"Fixed": 32}, "direction": "Right", "pad_to_multiple_of": None,
                    "pad_id": ids["</s>"], "pad_type_id": 0, "pad_token": "</s>"},
        "added_tokens": [
            {"id": ids[text], "content": text, "single_word": False, "lstrip": False,
             "rstrip": False, "normalized": False, "special": True} for text in SPECIAL],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": bos, "type_id": 0}},
                       {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}},
                     {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {bos: {"id": bos, "ids": [ids[bos]], "tokens": [bos]}},
        },
        "decoder": byte_level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None,
                  "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": {text: ids[text] for text in pieces},
                  "merges": [merge.split(" ") for merge in MERGES]},
    }


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    files = {
        "tokenizer.json": tokenizer(),
        "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>",
                                  "eos_token": {"__type": "AddedToken", "content": "</s>",
                                                "special": True},
                                  "pad_token": "</s>", "add_bos_token": True},
    }
    for name, value in files.items():
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        (FOLDER / name).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
