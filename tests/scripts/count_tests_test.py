#!/usr/bin/env python3
"""scripts/lib/count_tests.py against records as ctest 3.25 writes them."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[2] / "scripts" / "lib" / "count_tests.py"

PASSED = '<testcase name="a.ok" status="run"><system-out/></testcase>'
FAILED = '<testcase name="a.bad" status="fail"><failure message=""/></testcase>'
# ctest's own word for a program that does not exist is "skipped" as well.
MISSING = ('<testcase name="a.gone" status="notrun">'
           '<skipped message="Unable to find executable"/></testcase>')
SKIPPED = ('<testcase name="a.skip" status="notrun">'
           '<skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>'
           "<system-out>x_test.cpp:7: Skipped\nno data folder\n[  SKIPPED ] a.skip</system-out>"
           "</testcase>")
DISABLED = '<testcase name="a.off" status="disabled"><system-out>Disabled</system-out></testcase>'


class CountTests(unittest.TestCase):
    def count(self, *records):
        """Exit status and output lines for records given as lists of test cases."""
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for number, cases in enumerate(records):
                paths.append(Path(folder, f"{number}.xml"))
                if cases is not None:
                    paths[-1].write_text(f"<testsuite>{''.join(cases)}</testsuite>")
            done = subprocess.run([sys.executable, PROGRAM, *paths], capture_output=True, text=True,
                                  check=False)
            return done.returncode, done.stdout.splitlines()

    def test_adds_up_all_records(self):
        status, lines = self.count([PASSED, PASSED, SKIPPED], [PASSED, SKIPPED, DISABLED])
        self.assertEqual(status, 0)
        self.assertEqual(lines, ["skipped 1: disabled", "skipped 2: no data folder",
                                 "3 passed, 0 failed, 3 skipped"])

    def test_failures_are_named_and_change_the_status(self):
        status, lines = self.count([PASSED, FAILED])
        self.assertEqual(status, 1)
        self.assertTrue(lines[0].startswith("failed: a.bad ("))
        self.assertEqual(lines[-1], "1 passed, 1 failed, 0 skipped")

    def test_a_program_that_is_missing_is_a_failure(self):
        status, lines = self.count([PASSED, MISSING])
        self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed, 0 skipped"))

    def test_a_missing_record_is_a_failure(self):
        status, lines = self.count([PASSED], None)
        self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed, 0 skipped"))

    def test_nothing_run_is_not_a_pass(self):
        self.assertEqual(self.count([])[0], 1)
        self.assertEqual(self.count([SKIPPED])[0], 1)


if __name__ == "__main__":
    unittest.main()
