#!/usr/bin/env python3
"""Makes golden/longbench_metrics.json and golden/tiny_jieba/: what LongBench's official code gives.

Usage: make_longbench_goldens.py METRICS_PY JIEBA_DIR

METRICS_PY is LongBench's metrics.py (THUDM/LongBench), JIEBA_DIR holds jieba's dict.txt and
hmm.json. Needs rouge==1.0.1, fuzzywuzzy==0.18.0, python-Levenshtein==0.12.2 and jieba==0.42.1.

For each metric 10,000 pairs of texts are drawn from a few pieces of text; the tests draw the same
pairs. The file holds the first scores in full and a digest of all of them. The Chinese metrics are
run twice: with a dictionary and tables made up here, which the tests always have, and with jieba's
own, which they have when there is a data folder. Takes about two minutes.
"""
import difflib
import hashlib
import importlib.util
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

import fuzzywuzzy.fuzz
import fuzzywuzzy.StringMatcher
import jieba
import jieba.finalseg

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")
COUNT = 10000
SHOWN = 40

WORDS = ["a", "an", "the", "The", "A.", "cat", "Cat", "cat,", "dog", "sat", "on", "mat", "mat.",
         "it's", "well-known", "U.S.", "3.5", "1,000", "naïve", "Ünï", "ΣΑΣ", "ΟΔΟΣ.", "İs", "ǅ",
         "the\u0301", "an\u00adx", "a_b", "_the_", "x\u00a0y", "\u3000", "\u200b", "😀"]
SPACES = [" ", " ", " ", " ", ".", ". ", "\n", "\t", "  ", "\u2003", "\x1c", ", ", "-", "", "...",
          "\r\n"]
# Characters of the tiny dictionary beside ASCII and others.
HAN = list("中国人民北京大学生活动物理论文章一二三天地")
CHINESE = HAN + ["中国", "北京", "大学", "人民", "生活", "，", "。", "《", "》", "、", "：", " ", "\n",
                 "\r\n", "\u3000", "a", "The", "B", "3", "3.5", "50%", "2008", "+", "-", "#", "_",
                 ".", "C++", "一二三", "龥", "㐀", "か", "é", "😀", "Σ", "论文章", "天地人", "北京大学",
                 "活动", "物理论", "x-y"]
CODE = ["a", "b", "i", "x", "return ", "for ", "if ", "(", ")", "[i]", " = ", " + ", "    ", ";",
        "self.", "foo", "bar(", "é", "\t", "->", "0", "1", "==", "\n", "\n", "`", "# x", "// y",
        "name", "value", ", ", "中"]
LONG_CODE = list("abcdefgh") + ["self.", "return ", "(x, ", "i", "value", " = ", "name)", "; "]
NUMBERS = ["1", "2", "12", "21", "3", "Paragraph ", "paragraph ", "Paragraph", " ", " ", ".", ", ",
           "the answer is ", "段落", "、", "\u0661", "\uff11", "\u00b2", "-", "\n"]
CLASSES = ["Date", "Number of something", "Number", "Other number", "something", "of", "number",
           "Date", "Individual", "Invention, book and other creative piece", "book", "体育", "体育新闻",
           "新闻", "", "Other"]

# name: official function, pieces, separators, bits of the number of pieces of the prediction and
# the truth. A text is pieces, each followed by a separator.
CASES = {
    "qa_f1": ("qa_f1_score", WORDS, SPACES, 4, 3),
    "rouge": ("rouge_score", WORDS, SPACES, 6, 5),
    "rouge_short": ("rouge_score", ["a", "b", "c", "d", "e", "a b", "d c", "e a"],
                    [" ", " ", ".", " "], 5, 5),
    "count": ("count_score", NUMBERS, [""], 5, 1),
    "retrieval": ("retrieval_score", NUMBERS, [""], 5, 2),
    "retrieval_zh": ("retrieval_zh_score", NUMBERS, [""], 5, 2),
    "classification": ("classification_score", CLASSES, ["", " "], 3, 1),
    "code_sim": ("code_sim_score", CODE, [""], 5, 4),
    "code_sim_long": ("code_sim_score", LONG_CODE, [""], 7, 8),
    "qa_f1_zh": ("qa_f1_zh_score", CHINESE, ["", ""], 5, 4),
    "rouge_zh": ("rouge_zh_score", CHINESE, ["", ""], 6, 5),
}
# What the truth ends with, so that the official code finds a number there.
TRUTH_END = {"retrieval": "Paragraph 1", "retrieval_zh": "段落12"}
CHINESE_CASES = ("qa_f1_zh", "rouge_zh")
CODE_CASES = ("code_sim", "code_sim_long")


def draw(rng, pieces, separators, bits):
    """The tests draw in the same order: below(n) is getrandbits(16) % n."""
    text = ""
    for _ in range(rng.getrandbits(bits)):
        text += pieces[rng.getrandbits(16) % len(pieces)]
        text += separators[rng.getrandbits(16) % len(separators)]
    return text


def pairs(name, seed):
    _, pieces, separators, prediction_bits, truth_bits = CASES[name]
    rng = random.Random(seed)
    for _ in range(COUNT):
        prediction = draw(rng, pieces, separators, prediction_bits)
        truth = draw(rng, pieces, separators, truth_bits)
        if name == "classification":
            truth = CLASSES[rng.getrandbits(16) % len(CLASSES)]
        yield prediction, truth + TRUTH_END.get(name, "")


def run(name, seed, score):
    digest = hashlib.sha256()
    shown = []
    for prediction, truth in pairs(name, seed):
        value = float(score(prediction, truth, all_classes=CLASSES))
        digest.update(struct.pack("<d", value))
        if len(shown) < SHOWN:
            shown.append({"prediction": prediction, "truth": truth, "score": value})
    return {"rows": shown, "sha256": digest.hexdigest()}


def tokens_of(seed):
    """Segmentation itself: tokens separated by U+0000, texts ended by U+0001."""
    digest = hashlib.sha256()
    shown = []
    for prediction, _ in pairs("rouge_zh", seed):
        tokens = list(jieba.cut(prediction, cut_all=False))
        digest.update(("\0".join(tokens) + "\1").encode())
        if len(shown) < SHOWN:
            shown.append({"text": prediction, "tokens": tokens})
    return {"rows": shown, "sha256": digest.hexdigest()}


# How deep rouge may recurse depends on the frames below it: those of LongBench's eval.py.
DEPTH_PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import metrics
metrics.jieba.cut = lambda text, cut_all: text.split()
def scorer(words, more, metric):
    text = " ".join("w%d" % i for i in range(words))
    return metric(text + more, text, all_classes=None)
if __name__ == "__main__":
    for metric in (metrics.rouge_score, metrics.rouge_zh_score):
        for more in ("", " z"):
            words = 985
            while scorer(words, more, metric) > 0:  # no function of ours: it would be a frame
                words += 1
            print(words)
"""


def depths(metrics_path):
    """Words of the shortest text that scores 0 against itself, and against itself and one word."""
    folder = os.path.dirname(os.path.abspath(metrics_path))
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(DEPTH_PROGRAM)
        file.flush()
        done = subprocess.run([sys.executable, file.name, folder], check=True, text=True,
                              stdout=subprocess.PIPE)
    values = [int(line) for line in done.stdout.split()]
    return {"rouge": values[:2], "rouge_zh": values[2:]}


def use_jieba(directory):
    tables = json.load(open(os.path.join(directory, "hmm.json"), encoding="utf-8"))
    jieba.finalseg.start_P = tables["start"]
    jieba.finalseg.trans_P = tables["trans"]
    jieba.finalseg.emit_P = tables["emit"]
    tokenizer = jieba.Tokenizer(os.path.join(os.path.abspath(directory), "dict.txt"))
    tokenizer.tmp_dir = tempfile.mkdtemp()
    jieba.cut = tokenizer.cut


def make_tiny_jieba(directory):
    """Forty words and made-up tables: no word, frequency or probability is jieba's."""
    rng = random.Random(5)
    words = sorted({"".join(rng.choice(HAN) for _ in range(rng.choice((1, 2, 2, 3))))
                    for _ in range(40)} | {"北京", "北京大学", "中国", "C++", "3.5"})
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, "dict.txt"), "w", encoding="utf-8") as file:
        for word in words:
            file.write(f"{word} {rng.choice((0, 1, 3, 3, 20, 500))} n\n")
    def value():
        return -rng.randrange(1, 80) / 8
    tables = {
        "start": {"B": -0.5, "E": -3.14e100, "M": -3.14e100, "S": -1.0},
        "trans": {"B": {"E": -0.5, "M": -1.0}, "E": {"B": -0.5, "S": -1.0},
                  "M": {"E": -0.25, "M": -1.5}, "S": {"B": -0.75, "S": -0.75}},
        "emit": {s: {c: value() for c in HAN if rng.random() < 0.7} for s in "BEMS"},
    }
    with open(os.path.join(directory, "hmm.json"), "w", encoding="utf-8") as file:
        json.dump(tables, file, ensure_ascii=False, indent=0)
        file.write("\n")


def main():
    metrics_path, jieba_dir = sys.argv[1:]
    spec = importlib.util.spec_from_file_location("official_metrics", metrics_path)
    official = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(official)
    tiny = os.path.join(GOLDEN, "tiny_jieba")
    make_tiny_jieba(tiny)
    golden = {"count": COUNT, "classes": CLASSES, "too_deep": depths(metrics_path), "cases": {}}
    for seed, (name, case) in enumerate(CASES.items()):
        score = getattr(official, case[0])
        entry = {"seed": seed, "pieces": case[1], "separators": case[2],
                 "prediction_bits": case[3], "truth_bits": case[4],
                 "truth_end": TRUTH_END.get(name, "")}
        if name in CHINESE_CASES:
            for label, directory in (("tiny", tiny), ("full", jieba_dir)):
                use_jieba(directory)
                entry[label] = run(name, seed, score)
        elif name in CODE_CASES:
            fuzzywuzzy.fuzz.SequenceMatcher = difflib.SequenceMatcher
            entry["difflib"] = run(name, seed, score)
            fuzzywuzzy.fuzz.SequenceMatcher = fuzzywuzzy.StringMatcher.StringMatcher
            entry["indel"] = run(name, seed, score)
            del entry["indel"]["rows"]
        else:
            entry["official"] = run(name, seed, score)
        golden["cases"][name] = entry
        print(name, file=sys.stderr)
    seed = golden["cases"]["rouge_zh"]["seed"]
    for label, directory in (("tiny", tiny), ("full", jieba_dir)):
        use_jieba(directory)
        golden["tokens_" + label] = tokens_of(seed)
    # Full-dictionary rows would be words of jieba's dictionary: only their digests are kept.
    del golden["tokens_full"]["rows"]
    for name in CHINESE_CASES:
        del golden["cases"][name]["full"]["rows"]
    with open(os.path.join(GOLDEN, "longbench_metrics.json"), "w", encoding="utf-8") as file:
        json.dump(golden, file, ensure_ascii=False, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
