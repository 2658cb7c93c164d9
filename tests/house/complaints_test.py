#!/usr/bin/env python3
"""docs/complaints.md: each row names what answers it and a test; findings and tests that it names exist."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = "docs/complaints.md"
ROW = re.compile(r"^\| (?!report |---)([^|]+)\|([^|]+)\|([^|]+)\|([^|]+)\|$", re.M)
REPORT = re.compile(r"^[A-Z]?[\w-]+ \d+$", re.I)
FINDING = re.compile(r"\[(\w+)\]\(findings/(\w+)\.md\)")
KIND = re.compile(r'Kind\{"(\w+)"')
# `path/of_test.py` is followed by names in it.
QUOTED = re.compile(r"`([^`]+)`")


def has_test(text: str, name: str) -> bool:
    """As Python's or GoogleTest's: a name in a comment is none."""
    return re.search(rf"^\s*def {re.escape(name)}\(|^TEST(?:_F|_P)?\(\w+, {re.escape(name)}\)", text, re.M) is not None


def faults(page: str, kinds: set[str], read) -> list[str]:
    """`read`(path): its text; None where there is no such file."""
    rows = ROW.findall(page)
    found = [] if rows else ["no row"]
    for report, _, answer, tests in ([cell.strip() for cell in row] for row in rows):
        if not REPORT.match(report):
            found.append(f"{report}: no public issue's number")
        for name, link in FINDING.findall(answer):
            if name != link or name not in kinds:
                found.append(f"{report}: no finding {name}")
        text, named = None, 0
        for quoted in QUOTED.findall(tests):
            if "/" in quoted:
                text = read(quoted)
                if text is None:
                    found.append(f"{report}: no file {quoted}")
            elif text is not None:
                named += 1
                if not has_test(text, quoted):
                    found.append(f"{report}: no test {quoted}")
        if named == 0:
            found.append(f"{report}: names no test")
    return found


def self_test() -> None:
    text = "TEST(Some, Thing) {\n  def test_it(self):\n// TEST(Some, Other)\n"
    read = {"a/b_test.cpp": text}.get

    def of(answer, tests, report="PyTorch 1"):
        return faults(f"| {report} | w | {answer} | {tests} |\n", {"late"}, read)

    assert of("[late](findings/late.md)", "`a/b_test.cpp` `Thing`, `test_it`") == []
    assert of("[gone](findings/gone.md)", "`a/b_test.cpp` `Thing`") == ["PyTorch 1: no finding gone"]
    assert of("`why`", "`a/b_test.cpp` `Other`") == ["PyTorch 1: no test Other"]
    assert of("`why`", "`a/c_test.cpp` `Thing`") == ["PyTorch 1: no file a/c_test.cpp", "PyTorch 1: names no test"]
    assert of("`why`", "`a/b_test.cpp`") == ["PyTorch 1: names no test"]
    assert of("`why`", "`a/b_test.cpp` `Thing`", "PyTorch") == ["PyTorch: no public issue's number"]
    assert faults("", set(), read) == ["no row"]


def main() -> int:
    self_test()
    kinds = set(KIND.findall((ROOT / "app/analysis/findings/find.cpp").read_text()))

    def read(path):
        return (ROOT / path).read_text() if (ROOT / path).is_file() else None

    found = faults((ROOT / PAGE).read_text(), kinds, read)
    for fault in found:
        print(f"{PAGE}: {fault}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
