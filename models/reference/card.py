#!/usr/bin/env python3
"""Measures the reference model and prints the tables of its model card.

    python3 models/reference/card.py --kvsweep build/release/bin/kvsweep [--db FILE] [--examples N]

Standard library only. Everything is measured by `kvsweep evaluate`: real inference over a packed
cache, on problems of the split `report`, which training never saw. With --db, what the file already
holds is not run again. About ten minutes on two cores.
"""
import argparse
import json
import math
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

MODEL = Path(__file__).resolve().parent


def wilson(hits, n, z=1.96):
    """The 95 % interval of a share (Wilson 1927), as text."""
    p = hits / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return f"{100 * p:.1f} % ({100 * (middle - half):.1f} to {100 * (middle + half):.1f})"


class Measurer:
    def __init__(self, arguments):
        self.kvsweep, self.db, self.model = arguments.kvsweep, arguments.db, arguments.model
        self.workers = arguments.workers

    def evaluate(self, map_, task, metric, examples, **options):
        """The one result of `kvsweep evaluate`, a dict."""
        words = [self.kvsweep, "evaluate", "--model", str(self.model), "--map", map_, "--task", task,
                 "--split", "report", "--metric", metric, "--examples", str(examples),
                 "--workers", str(self.workers), "--db", self.db, "--json"]
        for name, value in options.items():
            words += [f"--{name}", str(value)]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr.strip().splitlines()[-1])
        return json.loads(done.stdout)["results"][0]

    def golds(self, task, examples, **options):
        words = [self.kvsweep, "data", "print", task, "--split", "report", "--count", str(examples)]
        for name, value in options.items():
            words += [f"--{name}", str(value)]
        lines = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()
        return [json.loads(line) for line in lines]

    def scores(self, golds):
        """Exact match under the baseline of examples that `evaluate` has measured, by their hash."""
        with sqlite3.connect(f"file:{self.db}?mode=ro", uri=True) as db:
            rows = db.execute(
                "SELECT lower(hex(e.hash)), m.exact_match FROM measurements m "
                "JOIN scopes s ON s.id = m.scope JOIN maps p ON p.id = s.map "
                "JOIN examples e ON e.id = m.example "
                "WHERE p.summary = 'K16V16' AND m.exact_match IS NOT NULL").fetchall()
        measured = dict(rows)
        return [measured[gold["hash"]] for gold in golds]


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def header(*cells):
    row(*cells)
    row(*["---"] * len(cells))


def accuracy(measure, n):
    print("\n### Accuracy with the unquantized cache (fp16), 95 % intervals\n")
    header("task", "shots", "prompt tokens", "examples", "exact match")
    for shots in (0, 2, 4):
        value = measure.evaluate("baseline", "word_problems", "exact_match", n, shots=shots)
        row("word_problems", shots, "-", n, wilson(round(value["value"] * n), n))
    for length in (256, 512, 1024):
        value = measure.evaluate("baseline", "recall", "exact_match", n, length=length)
        row("recall", 0, length, n, wilson(round(value["value"] * n), n))

    print("\nBy the number of steps of the problem:\n")
    header("steps", "0 shots", "4 shots")
    table = {}
    for shots in (0, 4):
        golds = measure.golds("word_problems", n, shots=shots)
        for gold, score in zip(golds, measure.scores(golds)):
            table.setdefault(gold["golds"][0].count("<<"), {}).setdefault(shots, []).append(score)
    for steps in sorted(table):
        row(steps, *(wilson(round(sum(table[steps][shots])), len(table[steps][shots])) for shots in (0, 4)))


def uniform_maps(measure, n):
    print("\n### Uniform maps, scheme per-token with a scale per head and no residual window\n")
    header("map", "word_problems, 0 shots", "4 shots", "recall 256", "recall 512")
    for pair in ("K8V8", "K4V4", "K4V2", "K2V4", "K2V2"):
        cells = []
        for task, options in (("word_problems", {"shots": 0}), ("word_problems", {"shots": 4}),
                              ("recall", {"length": 256}), ("recall", {"length": 512})):
            value = measure.evaluate(f"uniform:{pair}", task, "exact_match", n, **options)
            cells.append(f"{100 * value['value']:.1f} % ({0 - 100 * value['loss']:+.1f})")
        row(pair, *cells)
    print("\nIn brackets the difference to the unquantized cache on the same examples, in points.")


def sensitivity(measure, n, layers):
    print("\n### Sensitivity: KL per token in nats, one side of one layer quantized, all else fp16\n")
    header("layer", "K4", "V4", "K2", "V2")
    for layer in range(layers):
        cells = []
        for pair in ("K4V16", "K16V4", "K2V16", "K16V2"):
            value = measure.evaluate(f"baseline,{layer}={pair}", "word_problems", "kl", n, shots=0)
            cells.append(f"{value['value']:.2e}")
        row(layer, *cells)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kvsweep", default="kvsweep")
    parser.add_argument("--model", type=Path, default=MODEL)
    parser.add_argument("--db", help="database to keep the measurements in")
    parser.add_argument("--examples", type=int, default=500, help="per figure of accuracy")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    layers = json.loads((arguments.model / "config.json").read_text())["num_hidden_layers"]
    with tempfile.TemporaryDirectory() as folder:
        arguments.db = arguments.db or f"{folder}/card.db"
        measure = Measurer(arguments)
        accuracy(measure, arguments.examples)
        uniform_maps(measure, arguments.examples)
        sensitivity(measure, min(100, arguments.examples), layers)


if __name__ == "__main__":
    main()
