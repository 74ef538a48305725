#!/usr/bin/env python3
"""Prints worker/task/unicode_tables.inc: what Python's str methods and `re` say of every code point.

Usage: python3 worker/task/make_unicode_tables.py > worker/task/unicode_tables.inc
"""
import re
import sys
import unicodedata

EVERY = [chr(c) for c in range(0x110000)]


def runs(name, comment, member):
    """Alternating lengths of runs outside and inside the set, from U+0000 on."""
    lengths, inside, begin = [], False, 0
    for c, text in enumerate(EVERY):
        if member(text) != inside:
            lengths.append(c - begin)
            inside, begin = not inside, c
    if inside:
        lengths.append(len(EVERY) - begin)
    table(name, comment, "uint32_t", [str(n) for n in lengths])


def table(name, comment, kind, items):
    print(f"// {comment}\nconstexpr {kind} {name}[] = {{")
    line = "   "
    for item in items:
        if len(line) + len(item) + 2 > 100:
            print(line)
            line = "   "
        line += f" {item},"
    print(f"{line}\n}};\n")


def lower_ranges():
    """(first, last, step, delta): first, first + step, ... last all lower to themselves + delta."""
    ranges = []
    for c, text in enumerate(EVERY):
        low = text.lower()
        if len(low) != 1 or low == text:
            continue
        delta = ord(low) - c
        if ranges:
            first, last, step, old = ranges[-1]
            gap = c - last
            if old == delta and gap <= 2 and step in (0, gap):
                ranges[-1] = (first, c, gap, old)
                continue
        ranges.append((c, c, 0, delta))
    return [f"{{{a}, {b}, {max(s, 1)}, {d}}}" for a, b, s, d in ranges]


def ends_as_final_sigma(text):
    return text.lower()[-1] == "\u03c2"


def main():
    odd = [text for text in EVERY if len(text.lower()) != 1]
    assert odd == ["\u0130"], odd  # unicode_text.cpp treats it apart
    print(f"// Made by make_unicode_tables.py with Python {sys.version_info[0]}."
          f"{sys.version_info[1]}, Unicode {unicodedata.unidata_version}. Do not edit.")
    print("// clang-format off")
    runs("kSpaceRuns", "str.isspace(); equal to \\s of re", str.isspace)
    runs("kDigitRuns", "\\d of re", lambda text: re.match(r"\d", text) is not None)
    runs("kWordRuns", "\\w of re", lambda text: re.match(r"\w", text) is not None)
    # The rule of the final sigma skips case-ignorable characters, then asks whether one is cased.
    runs("kCasedRuns", "cased and not case-ignorable",
         lambda text: ends_as_final_sigma(text + "\u03a3"))
    runs("kIgnorableRuns", "case-ignorable",
         lambda text: ends_as_final_sigma("a" + text + "\u03a3")
         and not ends_as_final_sigma(text + "\u03a3"))
    table("kLowerRanges", "str.lower() of one character", "LowerRange", lower_ranges())
    print("// clang-format on")


if __name__ == "__main__":
    main()
