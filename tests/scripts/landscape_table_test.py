#!/usr/bin/env python3
"""bench/landscape/reference.csv is whole, and of the model that is in the tree."""
import csv
import hashlib
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "bench" / "landscape" / "reference.csv"
WEIGHTS = ROOT / "models" / "reference" / "model.safetensors"
PAIRS, GROUPS = 5, 5


class LandscapeTable(unittest.TestCase):
    def setUp(self):
        text = TABLE.read_text()
        self.command, self.weights, self.hash, self.body = text.split("\n", 3)
        self.rows = list(csv.DictReader(self.body.splitlines()))

    def test_is_what_was_measured(self):
        self.assertEqual(self.hash.split()[-1], hashlib.sha256(self.body.encode()).hexdigest())
        self.assertEqual(self.weights.split()[-1], hashlib.sha256(WEIGHTS.read_bytes()).hexdigest())
        self.assertLess(TABLE.stat().st_size, 1_000_000)

    def test_holds_every_map_once(self):
        self.assertEqual(len(self.rows), PAIRS**GROUPS)
        for rank, row in enumerate(self.rows):
            genes = [int(gene) for gene in row["genome"]]
            self.assertEqual(len(genes), GROUPS)
            self.assertEqual(int(row["rank"]), rank)
            self.assertEqual(sum(gene * PAIRS**i for i, gene in enumerate(reversed(genes))), rank)

    def test_values_are_possible_and_greedy_ones_spread_over_the_range(self):
        greedy = [row for row in self.rows if row["exact_match"]]
        self.assertGreaterEqual(len(greedy), 300)
        quarters = {int(row["rank"]) * 4 // len(self.rows) for row in greedy}
        self.assertEqual(quarters, {0, 1, 2, 3})
        for row in self.rows:
            self.assertTrue(0 <= float(row["token_agreement"]) <= 1)
            self.assertGreaterEqual(float(row["kl"]), 0)
            self.assertGreater(float(row["gold_nll"]), 0)
            self.assertGreater(int(row["bytes"]), 0)
        for row in greedy:
            self.assertTrue(0 <= float(row["exact_match"]) <= 1)


if __name__ == "__main__":
    unittest.main()
