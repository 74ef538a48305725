#!/usr/bin/env python3
"""Write golden/wikitext.json: strings drawn from pieces through lm-eval 0.4.13's own detokenizer.

    python3 tests/worker/task/make_wikitext_goldens.py

Needs lm_eval==0.4.13.
"""
import json
import random
from pathlib import Path

from lm_eval.tasks.wikitext.preprocess_wikitext import process_results, wikitext_detokenizer

OUT = Path(__file__).resolve().parent / "golden" / "wikitext.json"
PIECES = ["a", "word", " ", " ", "\n", "s '", " @-@ ", " @,@ ", " @.@ ", " : ", " ; ", " . ", " ! ",
          " ? ", " , ", "( ", " )", "(", ")", "[ ", " ]", "{", " }", '" ', ' "', "' ", " '", "= = = =",
          "= = =", "= =", " ° ", " \n", "\n ", " N ", " 's", "/' 5/", "é", "\u00a0", "\u2009", "12"]


def main():
    rng = random.Random(11)
    rows = []
    for _ in range(500):
        doc = {"page": "".join(rng.choice(PIECES) for _ in range(rng.randint(0, 16)))}
        rows.append({"text": doc["page"], "detokenized": wikitext_detokenizer(doc),
                     "words": process_results(doc, [0.0])["word_perplexity"][1]})
    OUT.write_text(json.dumps(rows, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
    print(f"{OUT}: {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
