#!/usr/bin/env python3
"""Adds up ctest's own records (--output-junit) and prints the scripts/test summary.

    count_tests.py FILE...

Lists failed tests, then why tests were skipped, then alone on a line `N passed, N failed, N skipped`.
Exit status 1 when a test failed, when a file cannot be read, or when no test ran at all.
"""

import re
import sys
import xml.etree.ElementTree as xml
from collections import Counter

# ctest also writes <skipped> for a test it could not start; only these are skips.
SKIP_MESSAGES = ("SKIP_REGULAR_EXPRESSION_MATCHED", "SKIP_RETURN_CODE")


def outcome(case):
    """passed, failed or skipped, of one <testcase>."""
    if case.get("status") == "run":
        return "passed"
    if case.get("status") == "disabled":
        return "skipped"
    skipped = case.find("skipped")
    if skipped is not None and skipped.get("message", "").startswith(SKIP_MESSAGES):
        return "skipped"
    return "failed"


def skip_reason(case):
    """What GTEST_SKIP() was given: the line after `FILE:LINE: Skipped`."""
    if case.get("status") == "disabled":
        return "disabled"
    text = case.findtext("system-out") or ""
    match = re.search(r": Skipped\n(.+)", text)
    return match.group(1).strip() if match else "no reason given"


def main(paths):
    counts, failed, reasons, broken = Counter(), [], Counter(), []
    for path in paths:
        try:
            cases = xml.parse(path).getroot().iter("testcase")
        except (OSError, xml.ParseError) as error:
            broken.append(f"{path}: {error}")
            counts["failed"] += 1
            continue
        for case in cases:
            result = outcome(case)
            counts[result] += 1
            if result == "failed":
                failed.append(f"{case.get('name')} ({path})")
            elif result == "skipped":
                reasons[skip_reason(case)] += 1
    for line in broken:
        print(f"no test results: {line}")
    for name in failed:
        print(f"failed: {name}")
    for reason, number in sorted(reasons.items()):
        print(f"skipped {number}: {reason}")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
