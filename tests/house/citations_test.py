#!/usr/bin/env python3
"""Every rule that code cites is in docs/zero.md, every section of docs/metrics.md that code cites and every field
that `--json` prints is there, and nothing cites a page, or a section of a page, that the repository does not have.

A citation is a letter of docs/zero.md's sections and a number in a comment or a docstring: "C8", "P13a", "D4";
"metrics.md 2.3", "metrics.md section 1" anywhere in a source file; or a page of docs with a section's number or title.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "docs" / "zero.md"
CITATION = re.compile(r"(?<![\w.\-/+&])([DMVSLPCO])([1-9][0-9]?)(a?)(?![\w.\-]*\w)")
RANGE = re.compile(r"(?<![\w.])([DMVSLPCO])([1-9][0-9]?)-(?:\1)?([1-9][0-9]?)(?!\w)")
METRICS = ROOT / "docs" / "metrics.md"
METRICS_CITATION = re.compile(r"\bmetrics(?:\.md)?,?(?: section)? ([0-9](?:\.[0-9]+)?)(?: and ([0-9](?:\.[0-9]+)?))?\b")
# What writes `--json` of summary, compare, findings, what-if and info.
JSON_SOURCES = ("app/analysis/summary_json.cpp", "app/analysis/unmatched_ends_json.h", "app/analysis/watch.cpp", "app/cli/comparison_text.cpp",
                "app/cli/summary_text.cpp", "app/cli/verb_what_if.cpp", "app/cli/verbs_reading.cpp")
JSON_KEY = re.compile(r'\{"([a-z_0-9]+)",(?!\s*")|\["([a-z_0-9]+)"\] =|json& \w+ = out\["\w+"\]\["([a-z_0-9]+)"\]')
NOT_CITATIONS = {"C99"}  # the C standard
SOURCES = ("kernels", "instrumentation", "runtime", "app", "samples", "tests")
COMMENT = {".h": r"//.*|/\*.*?\*/|^\s*\*.*", ".py": r"#.*|\"\"\".*?\"\"\""}
SECTION = re.compile(r"docs/([\w-]+\.md)([^()\"]{0,60}?)\bsection ([A-Z]|[0-9]+(?:\.[0-9]+)*)\b")
TITLE = re.compile(r"docs/([\w-]+\.md),? \(?\"([^\"]{3,60})\"")
COMMENT_BREAK = re.compile(r"\s*\n\s*(?://+<?|\*(?!/)|#)\s*")
FOREIGN = re.compile(r"\(design[,)]|zero-reference|\bnotes \(?[A-E]\b|\b(?:design|dashboard|live-profilers|style|attach)\.md")


def rules() -> set[str]:
    """Codes in the first column of the tables of docs/zero.md."""
    return set(re.findall(r"^\| ([DMVSLPCO][0-9]+a?) \|", RULES.read_text(), re.M))


def comments(path: Path) -> list[tuple[int, str]]:
    """(line number, text) of each comment of a source file, line by line."""
    pattern = COMMENT[".py"] if path.suffix == ".py" else COMMENT[".h"]
    found = []
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        found += [(number, match.group()) for match in re.finditer(pattern, line)]
    return found


def citations(text: str) -> set[str]:
    cited = set()
    for letter, first, last in RANGE.findall(text):
        cited |= {f"{letter}{number}" for number in (int(first), int(last))}
    text = RANGE.sub(" ", text)
    cited |= {"".join(groups) for groups in CITATION.findall(text)}
    return cited - NOT_CITATIONS


def metrics_sections() -> set[str]:
    return set(re.findall(r"^#{2,3} ([0-9](?:\.[0-9]+)?)[. ]", METRICS.read_text(), re.M))


def metrics_citations(text: str) -> set[str]:
    return {section for pair in METRICS_CITATION.findall(text) for section in pair if section}


def sections_of(page: str) -> set[str]:
    """Numbers or letters, and titles, of a page's headings: "## 2. Time", "## D: where", "### Blocks"."""
    found: set[str] = set()
    for heading in re.findall(r"^#{2,5} (.+)$", page, re.M):
        if numbered := re.match(r"([A-Z](?=:)|[0-9]+(?:\.[0-9]+)*)[.:]? *(.*)", heading):
            found |= set(numbered.groups())
        found.add(heading)
    return found


def section_citations(text: str) -> set[tuple[str, str]]:
    """(page, section) of what a source cites by a number, a letter or a title in quotes."""
    text = COMMENT_BREAK.sub(" ", text)
    return {(page, section) for page, _, section in SECTION.findall(text)} | set(TITLE.findall(text))


def section_problems() -> list[str]:
    sections = {page.name: sections_of(page.read_text()) for page in (ROOT / "docs").glob("*.md")}
    found = []
    cited = 0
    for path in sources():
        name = path.relative_to(ROOT)
        if name.parts[:2] == ("tests", "house"):
            continue
        for page, section in sorted(section_citations(path.read_text(errors="replace"))):
            if page in sections:  # paths_test.py finds pages that are not there
                cited += 1
                if section not in sections[page]:
                    found.append(f"{name}: cites section '{section}' of docs/{page}, which has no such section")
    return found if cited >= 8 else [*found, f"only {cited} citations of sections could be read"]


def json_fields(text: str) -> set[str]:
    """Keys of the JSON objects that a C++ source writes."""
    return {key for keys in JSON_KEY.findall(text) for key in keys if key}


def described_fields() -> set[str]:
    """Words in backticks in docs/metrics.md: "ranks[].time_ms.compute" has three."""
    return {word for quoted in re.findall(r"`([^`\n]+)`", METRICS.read_text()) for word in re.findall(r"\w+", quoted)}


def metrics_problems() -> list[str]:
    sections, described = metrics_sections(), described_fields()
    found = [] if len(sections) >= 10 else [f"{METRICS}: only {len(sections)} sections could be read"]
    for path in sources():
        name = path.relative_to(ROOT)
        if name.parts[:2] == ("tests", "house"):
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            found += [f"{name}:{number}: cites section {section}, which docs/metrics.md does not have"
                      for section in sorted(metrics_citations(line) - sections)]
    fields = 0
    for name in JSON_SOURCES:
        keys = json_fields((ROOT / name).read_text())
        fields += len(keys)
        found += [f"{name}: prints the field {key}, which docs/metrics.md does not describe" for key in sorted(keys - described)]
    if fields < 120:
        found.append(f"only {fields} fields of --json could be read")
    return found


def tracked(*folders: str) -> list[Path]:
    if not (ROOT / ".git").exists():  # a source archive
        return [path for folder in folders for path in sorted((ROOT / folder).rglob("*")) if path.is_file()]
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *folders], cwd=ROOT,
                            check=True, capture_output=True, text=True).stdout.split("\0")
    return [ROOT / name for name in listed if name and (ROOT / name).is_file()]


def sources() -> list[Path]:
    return [path for path in tracked(*SOURCES)
            if path.suffix in (".h", ".cpp", ".cu", ".cuh", ".c", ".def", ".py") and "corpus" not in path.parts]


def finding_pages() -> list[str]:
    """Each id of the table of findings has its page, listed in docs/findings, and no page is of another."""
    ids = set(re.findall(r'Kind\{"(\w+)"', (ROOT / "app/analysis/findings/find.cpp").read_text()))
    pages = {page.stem for page in (ROOT / "docs/findings").glob("*.md")} - {"README", "advice"}
    listed = set(re.findall(r"^\| \[(\w+)\]\(\1\.md\)", (ROOT / "docs/findings/README.md").read_text(), re.M))
    return [f"docs/findings: {name} is in only some of find.cpp, its page and README.md"
            for name in sorted((ids | pages | listed) - (ids & pages & listed))] + ([] if ids else ["find.cpp: no findings read"])


def problems() -> list[str]:
    known = rules()
    found = []
    if len(known) < 90:
        found.append(f"{RULES}: only {len(known)} rules could be read")
    for path in sources():
        name = path.relative_to(ROOT)
        for number, text in comments(path):
            found += [f"{name}:{number}: cites {code}, which docs/zero.md does not have" for code in
                      sorted(citations(text) - known)]
            if path != Path(__file__).resolve() and (foreign := FOREIGN.search(text)):
                found.append(f"{name}:{number}: cites '{foreign.group()}', which is not in the repository; see docs/zero.md")
    for here in re.findall(r"`((?:engine|plan|optim|offload|checkpoint|comm|model|data|train|runtime)/[\w/.*]*)`",
                           RULES.read_text()):
        if here.endswith(".py"):
            continue  # DeepSpeed's
        pattern = here if here.startswith("runtime/") else f"runtime/{here}"
        pattern = pattern.rstrip("/*.")
        if not list(ROOT.glob(pattern + "*")):
            found.append(f"docs/zero.md: {here}: no such file")
    return found + metrics_problems() + section_problems() + finding_pages()


def self_check() -> None:
    """The reading finds what it should and nothing else."""
    assert citations("P15, C8 and (S2a); M1-M15") == {"P15", "C8", "S2a", "M1", "M15"}
    assert citations("V1-V4; P16-P19, O1-O2") == {"V1", "V4", "P16", "P19", "O1", "O2"}
    assert citations("-O3, C99, F32, T256, losses S06, P50ms, C8x, docs/P1") == set()
    assert metrics_citations("as metrics.md 2.3, S; metrics.md 1 and 2.8; metrics, section 2.2") == {"2.3", "1", "2.8", "2.2"}
    assert metrics_citations("the metrics of 2 ranks; docs/metrics.md") == set()
    assert json_fields('{{"rank", r}, {"a", 1}}; out["b"] = {"text"};') == {"rank", "a", "b"}
    assert citations("C77") - rules() == {"C77"}
    assert section_citations('(docs/zero.md, section 0)\n// docs/a.md V1-V7,\n  // section 4: x; docs/b.md,\n/// "Two Words"') == {
        ("zero.md", "0"), ("a.md", "4"), ("b.md", "Two Words")}
    assert section_citations("docs/zero.md C1) and another section 4") == set()
    assert sections_of("# A: t\n## D: where\n### 2.7 Clocks\n## 1. One\n## Blocks\n") >= {"D", "where", "2.7", "Clocks", "1", "One", "Blocks"}
    assert FOREIGN.search("says in the notes (C)") and not FOREIGN.search("two notes (see below)")
    assert FOREIGN.search("data (design, section 5)") and not FOREIGN.search("a design, by hand")


def main() -> int:
    self_check()
    found = problems()
    print("\n".join(found) if found else f"{len(rules())} rules, every citation found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
