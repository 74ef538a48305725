#!/usr/bin/env python3
"""Breaks the include table on purpose, in small trees, and expects check_layers.py to see it."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROJECT_TABLE = HERE.parents[1] / "cmake" / "layers.txt"

SMALL_TABLE = """
group torch : ATen/*
group std : stdint.h
layer low : : std
layer high : low : std
layer deep : low : std torch
layer top : high deep : std
sealed torch
"""


class CheckLayers(unittest.TestCase):
    def check(self, files, table=SMALL_TABLE):
        """Writes {path: text} to a temporary tree and returns (exit status, output)."""
        with tempfile.TemporaryDirectory() as folder:
            for path, text in files.items():
                file = Path(folder, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            table_file = Path(folder, "table.txt")
            table_file.write_text(table, encoding="utf-8")
            done = subprocess.run(
                [sys.executable, HERE / "check_layers.py", "--root", folder, "--table", table_file],
                capture_output=True, text=True, check=False)
            return done.returncode, done.stdout + done.stderr

    def test_allowed_includes_pass(self):
        status, output = self.check({
            "low/a.hpp": "#include <vector>\n#include <stdint.h>\n",
            "low/version.hpp.in": "#define VERSION @VERSION@\n",
            "high/b.cpp": '#include "low/a.hpp"\n#include "low/version.hpp"\n'
                          '// #include "top/none.hpp" in a comment\n'})
        self.assertEqual((status, output), (0, "3 files, 0 problems\n"))

    def test_forbidden_layer_is_named_with_file_and_line(self):
        status, output = self.check({
            "low/a.hpp": '\n#include "high/b.hpp"\n', "high/b.hpp": ""})
        self.assertEqual(status, 1)
        self.assertIn('low/a.hpp:2: low may not include "high/b.hpp" (layer high)', output)

    def test_forbidden_library_is_named(self):
        status, output = self.check({"high/b.hpp": "#  include <ATen/core/Tensor.h>\n"})
        self.assertEqual(status, 1)
        self.assertIn("high/b.hpp:1: high may not include <ATen/core/Tensor.h> (group torch)",
                      output)

    def test_sealed_library_is_found_behind_a_header(self):
        status, output = self.check({
            "deep/d.hpp": '#include "deep/e.hpp"\n', "deep/e.hpp": "#include <ATen/core/Tensor.h>\n",
            "top/t.cpp": '#include "deep/d.hpp"\n'})
        self.assertEqual(status, 1)
        self.assertIn("top/t.cpp: reaches torch headers through deep/d.hpp -> deep/e.hpp", output)

    def test_cycle_of_headers_is_found(self):
        status, output = self.check({
            "low/a.hpp": '#include "low/b.hpp"\n', "low/b.hpp": '#include "low/a.hpp"\n'})
        self.assertEqual(status, 1)
        self.assertIn("include cycle: low/a.hpp -> low/b.hpp -> low/a.hpp", output)

    def test_unknown_library_file_and_folder_are_problems(self):
        status, output = self.check({
            "low/a.hpp": '#include <zlib.h>\n#include "b.hpp"\n', "other/c.cpp": ""})
        self.assertEqual(status, 1)
        self.assertIn("low/a.hpp:1: <zlib.h> belongs to no group", output)
        self.assertIn('low/a.hpp:2: "b.hpp" is no file of the project', output)
        self.assertIn("other/c.cpp: no layer of the table covers this folder", output)

    def test_broken_tables_are_refused(self):
        files = {"low/a.hpp": ""}
        for table, reason in [("layer low : high : std\nlayer high : low : std\ngroup std : a",
                               "the layers form a cycle"),
                              ("layer low : nothing :", "unknown layer nothing"),
                              ("layer low : : nothing", "unknown group nothing"),
                              ("layer low", "line 1: cannot be read")]:
            status, output = self.check(files, table)
            self.assertEqual(status, 2, output)
            self.assertIn(reason, output)

    def test_empty_tree_is_not_a_pass(self):
        status, output = self.check({})
        self.assertEqual(status, 1, output)

    def test_the_projects_own_table_refuses_what_the_design_forbids(self):
        table = PROJECT_TABLE.read_text(encoding="utf-8")
        target = {"worker/engine/e.hpp": "", "coordinator/c.hpp": "", "store/s.hpp": "",
                  "core/k.hpp": "", "search/s.hpp": "", "worker/codec/c.hpp": ""}
        forbidden = {
            "search/x.cpp": ["<chrono>", "<fstream>", "<thread>", '"store/s.hpp"'],
            "core/x.cpp": ["<ATen/core/Tensor.h>", '"search/s.hpp"', "<cuda_runtime.h>"],
            "coordinator/x.cpp": ["<ATen/core/Tensor.h>", '"worker/engine/e.hpp"', "<sqlite3.h>"],
            "cli/x.cpp": ["<c10/util/Half.h>", '"worker/codec/c.hpp"'],
            "worker/service/x.cpp": ['"coordinator/c.hpp"', '"search/s.hpp"', '"store/s.hpp"'],
            "worker/kernels/x.cpp": ['"core/k.hpp"', "<ATen/core/Tensor.h>", "<fmt/format.h>"],
            "worker/codec/x.cpp": ['"core/k.hpp"', "<ATen/core/Tensor.h>"],
            "worker/cache/x.cpp": ["<ATen/core/Tensor.h>", '"worker/engine/e.hpp"']}
        for path, headers in forbidden.items():
            for header in headers:
                status, output = self.check({**target, path: f"#include {header}\n"}, table)
                self.assertEqual(status, 1, f"{path} may include {header}")
                self.assertIn(f"{path}:1:", output)


if __name__ == "__main__":
    unittest.main()
