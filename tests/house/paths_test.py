#!/usr/bin/env python3
"""What the documents name exists: files, folders, tests, benchmarks, and the pages and headings they link to.

Usage: paths_test.py [--self-test]

Checks text in backticks and links of README.md, CONTRIBUTING.md and docs/*.md.
A path may begin at the root, in runtime/, in app/ or in instrumentation/include; `*` stands for anything. A file name
without a folder must be the name of a file somewhere. NAME stands for what a reader chooses.
"""

import fnmatch
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOP = ("app", "assets", "cmake", "docs", "instrumentation", "kernels", "runtime", "samples", "tests", ".ci", ".devcontainer")
BASES = ("", "runtime/", "app/", "tests/", "instrumentation/include/")
SOURCE = (".h", ".cpp", ".c", ".cu", ".cuh", ".fbs", ".cmake", ".sh")  # .py and .json are others' too
QUOTED = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
PATH = re.compile(r"^[\w.*-]+(?:/[\w.*-]*)+$|^[\w*-]+\.\w+$")
PROGRAM = re.compile(r"\b(\w+_(?:test|bench))\b(?!\.)")


def documents() -> list[Path]:
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md")]  # CHANGELOG.md names what is gone
    return [page for page in pages if page.is_file()] + sorted((ROOT / "docs").rglob("*.md"))


def files() -> list[str]:
    if not (ROOT / ".git").exists():
        return [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file()]
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout.split("\0")
    return [name for name in listed if name and (ROOT / name).exists()]


def is_ours(path: str) -> bool:
    """Whether a quoted path is to be in this repository."""
    return (path.split("/")[0] in TOP or path.endswith(SOURCE)) and "NAME" not in path


class Tree:
    def __init__(self, names: list[str], cmake: str):
        self.names = set(names)
        self.folders = {name.rsplit("/", depth)[0] for name in names for depth in range(1, name.count("/") + 1)}
        self.bare = {name.rsplit("/", 1)[-1] for name in names}
        self.programs = set(re.findall(r"\w+_(?:test|bench)\b", cmake)) | {name.rsplit(".", 1)[0] for name in self.bare}

    def has(self, path: str) -> bool:
        if "/" not in path:
            return bool(fnmatch.filter(self.bare, path)) if "*" in path else path in self.bare
        path = path.rstrip("/")
        for base in BASES:
            known = self.names | self.folders
            if base + path in known or ("*" in path and fnmatch.filter(known, base + path)):
                return True
        return False


def headings(text: str) -> set[str]:
    """Anchors as GitHub makes them."""
    found = set()
    for title in re.findall(r"^#+ (.+)$", text, re.M):
        title = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", title).lower()
        found.add(re.sub(r"[^\w\- ]", "", title).replace(" ", "-"))
    return found


def problems_of(name: str, text: str, tree: Tree) -> list[str]:
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        for quoted in QUOTED.findall(line):
            for word in quoted.split():
                word = word.strip(",;()")
                if PATH.match(word) and is_ours(word) and not tree.has(word):
                    found.append(f"{name}:{number}: {word}: no such file or folder")
            for program in PROGRAM.findall(quoted):
                if program not in tree.programs:
                    found.append(f"{name}:{number}: {program}: no such test or benchmark")
        for target in LINK.findall(line):
            if "://" in target:
                continue
            path, _, anchor = target.partition("#")
            page = (ROOT / name).parent / path if path else ROOT / name
            if not page.exists():
                found.append(f"{name}:{number}: links to {path}, which does not exist")
            elif anchor and page.suffix == ".md" and anchor not in headings(page.read_text()):
                found.append(f"{name}:{number}: links to {target}, which has no such heading")
    return found


def self_test():
    tree = Tree(["runtime/plan/bucket.h", "app/store/block.h", "tests/plan/bucket_test.cpp"], "shardscope_test(bucket_test)")
    cases = {"`runtime/plan/bucket.h`": 0, "`plan/bucket.h`": 0, "`store/block.h`, `block.h`": 0, "`runtime/plan`": 0,
             "`runtime/plan/bucket.*`": 0, "`bucket_test`": 0, "`zero/stage3.py`": 0, "`a.b`": 0, "`x/y`": 0,
             "`runtime/plan/gone.h`": 1, "`gone.h`": 1, "`tests/engine`": 1, "`gone_test`": 1, "[a](gone.md)": 1,
             "[a](docs/metrics.md#no-such-heading)": 1, "[a](docs/metrics.md#1-memory)": 0}
    for text, wanted in cases.items():
        found = problems_of("README.md", text, tree)
        assert len(found) == wanted, (text, found)
    print(f"self-test: {len(cases)} cases")


def main() -> int:
    self_test()
    if "--self-test" in sys.argv:
        return 0
    names = files()
    cmake = "".join((ROOT / name).read_text() for name in names if name.endswith(("CMakeLists.txt", ".cmake")))
    tree = Tree(names, cmake)
    found = [problem for page in documents()
             for problem in problems_of(str(page.relative_to(ROOT)), page.read_text(), tree)]
    print("\n".join(found) if found else f"{len(documents())} documents, everything they name exists")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
