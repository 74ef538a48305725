#!/usr/bin/env python3
"""Checks every #include of the project against the table in cmake/layers.txt.

    check_layers.py --root DIR [--table FILE]

Prints one line per include that breaks the table or closes a cycle; exit status 1 then, 2 when the
table itself is wrong. Only the text of the sources is read: nothing needs to be built.
"""

import argparse
import fnmatch
import os
import re
import sys
from pathlib import Path

SUFFIXES = {".h", ".hpp", ".cpp", ".cuh", ".cu", ".inc", ".def"}
TEMPLATE = ".in"  # "cli/version.hpp" stands for the configured cli/version.hpp.in
SKIPPED_FOLDERS = {"build", "target", "node_modules"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(<([^>]+)>|"([^"]+)")')


class TableError(Exception):
    pass


class Table:
    """The groups, layers and sealed groups of layers.txt."""

    def __init__(self, text):
        self.groups = {}  # name -> patterns
        self.layers = {}  # folder -> (allowed layers, allowed groups)
        self.sealed = set()
        for number, line in enumerate(text.splitlines(), 1):
            line = line.split("#", 1)[0].strip()
            if line:
                try:
                    self._read(line)
                except (ValueError, IndexError):
                    raise TableError(f"line {number}: cannot be read: {line}") from None
        self._check()

    def _read(self, line):
        kind, rest = line.split(None, 1)
        if kind == "group":
            name, patterns = rest.split(":")
            self.groups[name.strip()] = patterns.split()
        elif kind == "layer":
            folder, layers, groups = rest.split(":")
            self.layers[folder.strip()] = (set(layers.split()), set(groups.split()))
        elif kind == "sealed":
            self.sealed.update(rest.split())
        else:
            raise ValueError(kind)

    def _check(self):
        for folder, (layers, groups) in self.layers.items():
            for name in layers - self.layers.keys() - {"*"}:
                raise TableError(f"layer {folder} names an unknown layer {name}")
            for name in groups - self.groups.keys() - {"*"}:
                raise TableError(f"layer {folder} names an unknown group {name}")
        for name in self.sealed - self.groups.keys():
            raise TableError(f"sealed names an unknown group {name}")
        graph = {folder: sorted(layers - {"*"}) for folder, (layers, _) in self.layers.items()}
        if cycle := find_cycle(graph):
            raise TableError("the layers form a cycle: " + " -> ".join(cycle))

    def layer_of(self, path):
        """The layer of a file, or None: the longest folder that holds it."""
        fitting = [f for f in self.layers if path.startswith(f + "/")]
        return max(fitting, key=len, default=None)

    def group_of(self, header):
        for name, patterns in self.groups.items():
            if any(fnmatch.fnmatchcase(header, pattern) for pattern in patterns):
                return name
        return "std" if not re.search(r"[./]", header) else None

    def may_use_group(self, layer, group):
        groups = self.layers[layer][1]
        return group in groups or "*" in groups

    def may_include(self, layer, other):
        layers = self.layers[layer][0]
        return other == layer or other in layers or "*" in layers


def find_cycle(graph):
    """A cycle as a list of nodes whose first and last are equal, or None. O(nodes + edges)."""
    done, path = set(), []

    def visit(node):
        if node in path:
            return path[path.index(node):] + [node]
        if node in done:
            return None
        path.append(node)
        for successor in graph.get(node, ()):
            if cycle := visit(successor):
                return cycle
        path.pop()
        done.add(node)
        return None

    for node in sorted(graph):
        if cycle := visit(node):
            return cycle
    return None


def source_files(root):
    """Paths of all sources, relative to root, sorted. Hidden and build folders are skipped."""
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = sorted(s for s in subfolders
                               if not s.startswith(".") and s not in SKIPPED_FOLDERS)
        for name in sorted(names):
            if Path(name.removesuffix(TEMPLATE)).suffix in SUFFIXES:
                yield Path(folder, name).relative_to(root).as_posix()


def includes_of(text):
    """(line number, header in <> or None, header in "" or None) of every include."""
    for number, line in enumerate(text.splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match.group(2), match.group(3)


class Checker:
    def __init__(self, root, table):
        self.table = table
        self.root = root
        self.files = list(source_files(root))
        self.edges = {path: [] for path in self.files}  # file -> project files it includes
        self.direct = {path: set() for path in self.files}  # file -> sealed groups it includes
        self.problems = []

    def run(self):
        for path in self.files:
            self._check_file(path)
        self._check_sealed()
        if cycle := find_cycle(self.edges):
            self.problems.append("include cycle: " + " -> ".join(cycle))
        return self.problems

    def _check_file(self, path):
        layer = self.table.layer_of(path)
        if layer is None:
            self.problems.append(f"{path}: no layer of the table covers this folder")
            return
        text = (self.root / path).read_text(encoding="utf-8", errors="replace")
        for number, system, own in includes_of(text):
            where = f"{path}:{number}: "
            if system is not None:
                self._check_system(where, path, layer, system)
            else:
                self._check_own(where, path, layer, own)

    def _check_system(self, where, path, layer, header):
        group = self.table.group_of(header)
        if group is None:
            self.problems.append(f"{where}<{header}> belongs to no group; add it to the table")
            return
        if group in self.table.sealed:
            self.direct[path].add(group)
        if not self.table.may_use_group(layer, group):
            self.problems.append(f"{where}{layer} may not include <{header}> (group {group})")

    def _check_own(self, where, path, layer, header):
        if header not in self.edges and header + TEMPLATE in self.edges:
            header += TEMPLATE
        if header not in self.edges:
            self.problems.append(f'{where}"{header}" is no file of the project '
                                 "(paths start at the project's root)")
            return
        self.edges[path].append(header)
        other = self.table.layer_of(header)
        if other is not None and not self.table.may_include(layer, other):
            self.problems.append(f'{where}{layer} may not include "{header}" (layer {other})')

    def _check_sealed(self):
        for path in self.files:
            layer = self.table.layer_of(path)
            if layer is None:
                continue
            for group in sorted(self.table.sealed):
                if self.table.may_use_group(layer, group):
                    continue
                chain = self._chain_to(path, group)
                if chain and len(chain) > 1:
                    self.problems.append(
                        f"{path}: reaches {group} headers through " + " -> ".join(chain[1:]))

    def _chain_to(self, start, group):
        """Shortest chain of includes from start to a file that includes the group, or None."""
        seen, queue = {start}, [[start]]
        for chain in queue:
            if group in self.direct[chain[-1]]:
                return chain
            for successor in self.edges[chain[-1]]:
                if successor not in seen:
                    seen.add(successor)
                    queue.append(chain + [successor])
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, required=True, help="the project's folder")
    parser.add_argument("--table", type=Path, help="default: ROOT/cmake/layers.txt")
    args = parser.parse_args()
    table_path = args.table or args.root / "cmake" / "layers.txt"
    try:
        table = Table(table_path.read_text(encoding="utf-8"))
    except (OSError, TableError) as error:
        print(f"{table_path}: {error}", file=sys.stderr)
        return 2
    checker = Checker(args.root, table)
    problems = checker.run()
    for problem in problems:
        print(problem)
    if not checker.files:
        print(f"{args.root}: no sources found")
        return 1
    print(f"{len(checker.files)} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
