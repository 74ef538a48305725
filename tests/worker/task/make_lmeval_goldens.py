#!/usr/bin/env python3
"""Write golden/lmeval.json: GSM8K's prompts and filters by lm-eval 0.4.13's rules.

    python3 tests/worker/task/make_lmeval_goldens.py DATA_DIR [--live]

DATA_DIR holds gsm8k/train.jsonl, test.jsonl and cot_fewshot_8.json. The rules are written anew here with
Python's random and re, and need nothing else. With --live nothing is written: lm-eval itself
(lm_eval==0.4.13, with datasets) makes the same prompts and filters the same strings, and every
difference is an error; run it by hand.

For gsm8k (5 shots), gsm8k_cot and gsm8k_cot_llama (8) in forms text, chat and multiturn: the SHA-256
over all test rows of role, byte 0, content, byte 1 of every message (one without a role in form text).
For the filters: strings drawn from pieces, and the match of each task's strict filter.
"""
import hashlib
import json
import logging
import random
import re
import sys
from pathlib import Path

OUT = Path(__file__).resolve().parent / "golden" / "lmeval.json"
FORMS = {"text": {}, "chat": {"apply_chat_template": True, "fewshot_as_multiturn": False},
         "multiturn": {"apply_chat_template": True, "fewshot_as_multiturn": True}}
LLAMA = ("Given the following problem, reason and give a final answer to the problem.\nProblem: {}\n"
         "Your response should end with \"The final answer is [answer]\" where [answer] is the response "
         "to the problem.\n")
# name: file of lm-eval, shots, words of a question, delimiter, stops, strict filter, its match
TASKS = {
    "gsm8k": ("gsm8k.yaml", 5, "Question: {}\nAnswer:", " ", ["Question:", "</s>", "<|im_end|>"],
              r"#### (\-?[0-9\.\,]+)", 0),
    "gsm8k_cot": ("gsm8k-cot.yaml", 8, "Q: {}\nA:", " ", ["Q:", "</s>", "<|im_end|>"],
                  r"The answer is (\-?[0-9\.\,]+).", 0),
    "gsm8k_cot_llama": ("gsm8k-cot-llama.yaml", 8, LLAMA, "",
                        ["<|eot_id|>", "<|start_header_id|>user<|end_header_id|>", "Q:", "</s>",
                         "<|im_end|>"],
                        r"The final answer is ((-?[$0-9.,]{2,})|(-?[0-9]+))", -1),
}
PIECES = ["The answer is ", "The final answer is ", "the answer is ", "18", "1,000", "-", "$", ".",
          ",", "\n", " ", "x", "é", "...", "$5.", "-3", "#### ", "."]
STRINGS = 400


def rows(data_dir, name):
    text = (Path(data_dir) / "gsm8k" / name).read_text(encoding="utf-8")
    if name.endswith(".json"):
        return json.loads(text)
    return [json.loads(line) for line in text.splitlines()]


def shots_by_rules(name, data_dir, count):
    """For each test row in order, the shots as (question, answer)."""
    if name == "gsm8k":
        train = [(row["question"], row["answer"]) for row in rows(data_dir, "train.jsonl")]
        rng = random.Random(1234)
        return [rng.sample(train, TASKS[name][1]) for _ in range(count)]
    fixed = [(row["question"], row[f"target_{name}"]) for row in rows(data_dir, "cot_fewshot_8.json")]
    return [fixed[:TASKS[name][1]]] * count


def turns_by_rules(name, question, shots, form):
    _, _, words, delimiter, *_ = TASKS[name]
    turns = []
    for asked, answer in shots:
        turns += [("user", words.format(asked)), ("assistant", answer)]
    turns.append(("user", words.format(question)))
    if form == "multiturn":
        return turns
    ends = [delimiter if role == "user" else "\n\n" for role, _ in turns]
    text = "".join(content + end for (_, content), end in zip(turns, ends[:-1] + [""]))
    return [("user" if form == "chat" else "", text)]


def prompts_by_rules(name, data_dir, form):
    test = rows(data_dir, "test.jsonl")
    shots = shots_by_rules(name, data_dir, len(test))
    for row, drawn in zip(test, shots):
        yield turns_by_rules(name, row["question"], drawn, form)


def digest(prompts):
    hash_ = hashlib.sha256()
    for turns in prompts:
        for role, content in turns:
            hash_.update(f"{role}\0{content}\1".encode())
    return hash_.hexdigest()


def filtered_by_rules(name, text):
    found = re.findall(TASKS[name][5], text)
    if not found:
        return "[invalid]"
    match = found[TASKS[name][6]]
    if isinstance(match, tuple):
        match = next(part for part in match if part)
    return match.strip()


def strings():
    rng = random.Random(7)
    return ["".join(rng.choice(PIECES) for _ in range(rng.randint(0, 12))) for _ in range(STRINGS)]


def write(data_dir):
    count = len(rows(data_dir, "test.jsonl"))
    prompts = [{"task": name, "form": form, "shots": TASKS[name][1], "rows": count,
                "stops": TASKS[name][4], "sha256": digest(prompts_by_rules(name, data_dir, form))}
               for name in TASKS for form in FORMS]
    filters = [{"text": text, **{name: filtered_by_rules(name, text) for name in TASKS}}
               for text in strings()]
    golden = {"prompts": prompts, "filters": filters}
    OUT.write_text(json.dumps(golden, ensure_ascii=False, separators=(",", ":")) + "\n",
                   encoding="utf-8")
    print(f"{OUT}: {OUT.stat().st_size} bytes")


def config_of(name, data_dir):
    import lm_eval
    from lm_eval.tasks._yaml_loader import load_yaml
    config = dict(load_yaml(Path(lm_eval.__file__).parent / "tasks" / "gsm8k" / TASKS[name][0]))
    config["dataset_path"], config["dataset_name"] = "json", None
    files = {split: str(Path(data_dir) / "gsm8k" / f"{split}.jsonl") for split in ("train", "test")}
    config["dataset_kwargs"] = {"data_files": files}
    return config


def live_prompts(task, name, form):
    for doc in task.test_docs():
        said = task.fewshot_context(doc, TASKS[name][1], **FORMS[form],
                                    chat_template=lambda m, add_generation_prompt: json.dumps(m))
        turns = json.loads(said) if form != "text" else [{"role": "", "content": said}]
        yield [(turn["role"], turn["content"]) for turn in turns]


def compare_live(data_dir):
    from lm_eval.api.task import ConfigurableTask
    from lm_eval.filters.extraction import RegexFilter
    logging.disable(logging.WARNING)
    for name in TASKS:
        config = config_of(name, data_dir)
        strict = next(one for one in config["filter_list"] if one["name"] == "strict-match")["filter"][0]
        settings = {key: value for key, value in strict.items() if key != "function"}
        found = RegexFilter(**settings).apply([[text] for text in strings()], None)
        assert [match for [match] in found] == [filtered_by_rules(name, text) for text in strings()]
        for form in FORMS:
            task = ConfigurableTask(config=config_of(name, data_dir))
            task.set_fewshot_seed(1234)
            assert task.config.generation_kwargs["until"] == TASKS[name][4]
            count = 0
            for live, ours in zip(live_prompts(task, name, form),
                                  prompts_by_rules(name, data_dir, form), strict=True):
                assert live == ours, f"{name} {form} row {count}"
                count += 1
            print(f"{name} {form}: {count} prompts equal", flush=True)


def main():
    if len(sys.argv) == 2:
        write(sys.argv[1])
    elif len(sys.argv) == 3 and sys.argv[2] == "--live":
        compare_live(sys.argv[1])
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
