#!/usr/bin/env python3
"""Write golden/lmeval.json: GSM8K's prompts and filters as lm-eval 0.4.13 itself makes them.

    python3 tests/worker/task/make_lmeval_goldens.py DATA_DIR

Needs lm_eval==0.4.13 (with datasets). DATA_DIR holds gsm8k/train.jsonl and test.jsonl as published.
For gsm8k (5 shots), gsm8k_cot and gsm8k_cot_llama (8) in forms text, chat and multiturn: the SHA-256
over all test rows of role, byte 0, content, byte 1 of every message (one without a role in form text).
For the filters: strings drawn from pieces, and what lm-eval's own filters give for them.
"""
import hashlib
import json
import logging
import random
import sys
from pathlib import Path

import lm_eval
from lm_eval.api.task import ConfigurableTask
from lm_eval.filters.extraction import RegexFilter
from lm_eval.tasks._yaml_loader import load_yaml

OUT = Path(__file__).resolve().parent / "golden" / "lmeval.json"
TASKS = {"gsm8k": ("gsm8k.yaml", 5), "gsm8k_cot": ("gsm8k-cot.yaml", 8),
         "gsm8k_cot_llama": ("gsm8k-cot-llama.yaml", 8)}
FORMS = {"text": {}, "chat": {"apply_chat_template": True, "fewshot_as_multiturn": False},
         "multiturn": {"apply_chat_template": True, "fewshot_as_multiturn": True}}
PIECES = ["The answer is ", "The final answer is ", "the answer is ", "18", "1,000", "-", "$", ".",
          ",", "\n", " ", "x", "é", "...", "$5.", "-3", "#### ", "."]
STRINGS = 400


def config_of(name, data_dir):
    folder = Path(lm_eval.__file__).parent / "tasks" / "gsm8k"
    config = dict(load_yaml(folder / TASKS[name][0]))
    config["dataset_path"] = "json"
    config["dataset_name"] = None
    files = {split: str(Path(data_dir) / "gsm8k" / f"{split}.jsonl") for split in ("train", "test")}
    config["dataset_kwargs"] = {"data_files": files}
    config.pop("include", None)
    return config


def digest(name, data_dir, form):
    task = ConfigurableTask(config=config_of(name, data_dir))
    task.set_fewshot_seed(1234)
    hash_ = hashlib.sha256()
    count = 0
    for doc in task.test_docs():
        said = task.fewshot_context(
            doc, TASKS[name][1], chat_template=lambda m, add_generation_prompt: json.dumps(m), **FORMS[form])
        turns = json.loads(said) if form != "text" else [{"role": "", "content": said}]
        for turn in turns:
            hash_.update(f"{turn['role']}\0{turn['content']}\1".encode())
        count += 1
    return {"task": name, "form": form, "shots": TASKS[name][1], "rows": count,
            "stops": task.config.generation_kwargs["until"], "sha256": hash_.hexdigest()}


def filters(data_dir):
    rng = random.Random(7)
    texts = ["".join(rng.choice(PIECES) for _ in range(rng.randint(0, 12))) for _ in range(STRINGS)]
    rows = [{"text": text} for text in texts]
    for name in TASKS:
        for ensemble in config_of(name, data_dir)["filter_list"]:
            if ensemble["name"] != "strict-match":
                continue
            settings = {key: value for key, value in ensemble["filter"][0].items() if key != "function"}
            found = RegexFilter(**settings).apply([[text] for text in texts], None)
            for row, [match] in zip(rows, found):
                row[name] = match
    return rows


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    logging.disable(logging.WARNING)
    prompts = [digest(name, sys.argv[1], form) for name in TASKS for form in FORMS]
    golden = {"prompts": prompts, "filters": filters(sys.argv[1])}
    OUT.write_text(json.dumps(golden, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"{OUT}: {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
