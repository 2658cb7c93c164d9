#!/usr/bin/env python3
"""clang-tidy on the lines that changed since the merge base with main (.clang-tidy).

Usage: tidy.py BUILD_FOLDER [--base COMMIT] [--limit SECONDS]
       tidy.py --self-test

BUILD_FOLDER is a configured build (compile_commands.json) whose generated headers are there. Only findings on
changed lines count. Files are checked until the limit (default 60 s; clang-tidy takes 5 to 20 s a file), those
changed last first; the files that were not checked are listed, one a line. Unchecked files do not fail the run: the
limit is part of the time that .ci/run may take (CONTRIBUTING.md). Ends with 1 where there are findings, with 77 where
clang-tidy 14 or the base is not known.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = 77
# Of .clang-tidy those that find mistakes, without the analyzer, unnecessary-value-param (a third of the time) and
# what the compilers' -Wconversion (narrowing, widening), address arithmetic and tables of macros make noise.
CHECKS = ("-*,bugprone-*,performance-*,misc-unused-*,misc-definitions-in-headers,modernize-use-override,"
          "modernize-use-nullptr,cppcoreguidelines-slicing,cppcoreguidelines-pro-type-member-init,"
          "-bugprone-easily-swappable-parameters,-bugprone-exception-escape,-bugprone-narrowing-conversions,"
          "-bugprone-macro-parentheses,-bugprone-implicit-widening-of-multiplication-result,-bugprone-reserved-identifier,"
          "-performance-unnecessary-value-param,-performance-no-int-to-ptr,-performance-inefficient-vector-operation")
# They use what g++ has and clang has not: __builtin_shuffle, names of processors.
ONLY_GCC = ("kernels/cpu/simd/", "kernels/cpu/isa.cpp")
BASES = ("origin/main", "main", "origin/HEAD")


def git(*arguments: str) -> str | None:
    result = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return result.stdout.strip() if result.returncode == 0 else None


def merge_base(wanted: str | None) -> str | None:
    """The commit that changes are counted from; of main itself the commit before."""
    for name in [wanted] if wanted else BASES:
        if base := git("merge-base", "HEAD", name):
            return git("rev-parse", "HEAD~1") if base == git("rev-parse", "HEAD") and not wanted else base
    return None


def changed_lines(base: str) -> dict[str, list[list[int]]]:
    """Path -> [first, last] of each stretch of lines added or changed since `base`, uncommitted ones included."""
    found: dict[str, list[list[int]]] = {}
    name = ""
    for line in (git("diff", "--unified=0", "--no-color", "--diff-filter=d", base, "--", "*.cpp", "*.h") or "").splitlines():
        if line.startswith("+++ "):
            name = line[6:]
        elif match := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first, count = int(match.group(1)), int(match.group(2) or 1)
            if count:
                found.setdefault(name, []).append([first, first + count - 1])
    return found


def commands_of(build: Path) -> list[dict[str, str]]:
    """The build's compile commands without g++'s --param; those of a unity build's files as one for each file that they include."""
    commands = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        included = [entry["file"]]
        if "/Unity/unity_" in entry["file"]:
            included = re.findall(r'#include "(.*)"', Path(entry["file"]).read_text())
        commands += [{"directory": entry["directory"], "file": file, "command": entry["command"].replace(entry["file"], file)}
                     for file in included]
    for entry in commands:  # of g++, whose compilers alone know them
        entry["command"] = re.sub(r" --param [^ ]+", "", entry["command"])
    return commands


def parse_times(log: str, uncommitted: list[str]) -> dict[str, float]:
    """Path -> time of its last change. `log`: of git log --format=@%ct --name-only, newest first; files that are not
    committed are newer than all of them."""
    times: dict[str, float] = dict.fromkeys(uncommitted, float("inf"))
    at = 0.0
    for line in log.splitlines():
        if line.startswith("@"):
            at = float(line[1:])
        elif line:
            times.setdefault(line, at)
    return times


def change_times(base: str) -> dict[str, float]:
    return parse_times(git("log", "--format=@%ct", "--name-only", f"{base}..HEAD") or "",
                       (git("diff", "--name-only", "HEAD") or "").splitlines())


def units(changed: dict[str, list[list[int]]], known: set[str], times: dict[str, float]) -> list[str]:
    """Sources of the build that changed or whose header of the same name did, those changed last first."""
    latest: dict[str, float] = {}
    for name in changed:
        source = name if name.endswith(".cpp") else name[:-2] + ".cpp"
        if source in known and not source.startswith(ONLY_GCC):
            latest[source] = max(latest.get(source, 0.0), times.get(name, 0.0))
    return sorted(latest, key=lambda source: (-latest[source], source))


def report(checked: int, unchecked: list[str], wrong: int, limit: float) -> str:
    """The last lines of the output."""
    lines = []
    if unchecked:
        lines.append(f"NOT CHECKED by clang-tidy, {len(unchecked)} of {checked + len(unchecked)} changed files: the limit of "
                     f"{limit:.0f} s is over (--limit)")
        lines += [f"  not checked: {name}" for name in unchecked]
    lines.append(f"clang-tidy: {checked} of {checked + len(unchecked)} changed files checked, {wrong} with findings")
    return "\n".join(lines)


def self_test() -> int:
    log = "@30\n\na.cpp\nb.h\n@20\n\na.cpp\nc.cpp\nd.cpp\n"
    times = parse_times(log, ["d.cpp"])
    assert times == {"a.cpp": 30, "b.h": 30, "c.cpp": 20, "d.cpp": float("inf")}, times
    changed: dict[str, list[list[int]]] = {name: [[1, 1]] for name in ("c.cpp", "b.h", "a.cpp", "d.cpp", "e.h", "kernels/cpu/simd/x.cpp")}
    known = {"a.cpp", "b.cpp", "c.cpp", "d.cpp", "kernels/cpu/simd/x.cpp"}
    assert units(changed, known, times) == ["d.cpp", "a.cpp", "b.cpp", "c.cpp"]
    text = report(1, ["b.cpp", "c.cpp"], 0, 120)
    assert "NOT CHECKED by clang-tidy, 2 of 3" in text and "\n  not checked: c.cpp\n" in text, text
    assert "NOT CHECKED" not in report(3, [], 0, 120)
    print("self-test: passed")
    return 0


def main() -> int:
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=Path)
    parser.add_argument("--base")
    parser.add_argument("--limit", type=float, default=60)
    options = parser.parse_args()
    program = shutil.which("clang-tidy-14")
    base = merge_base(options.base)
    if program is None or base is None:
        print("clang-tidy 14 is not installed" if program is None else "no main to compare with", "nothing was checked", sep=": ")
        return SKIPPED
    changed = changed_lines(base)
    commands = commands_of(options.build)
    files = units(changed, {os.path.relpath(entry["file"], ROOT) for entry in commands}, change_times(base))
    lines = json.dumps([{"name": name, "lines": stretches} for name, stretches in changed.items()])
    end = time.monotonic() + options.limit

    def tidy(name: str) -> tuple[str, str | None]:
        """(file, its findings; None: not finished in time)"""
        left = end - time.monotonic()
        if left <= 0:
            return name, None
        try:
            result = subprocess.run([program, "-p", folder, "--quiet", f"--line-filter={lines}",
                                     f"--checks={CHECKS}", "--warnings-as-errors=*", name],
                                    cwd=ROOT, capture_output=True, text=True, timeout=left)
        except subprocess.TimeoutExpired:
            return name, None
        return name, result.stdout if result.returncode != 0 else ""

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        Path(folder, "compile_commands.json").write_text(json.dumps(commands))
        results = list(pool.map(tidy, files))
    unfinished = [name for name, found in results if found is None]
    wrong = [found for _, found in results if found]
    print("".join(wrong), end="")
    print(report(len(files) - len(unfinished), unfinished, len(wrong), options.limit))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
