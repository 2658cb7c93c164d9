#!/usr/bin/env python3
"""Every verb and option that the documents show for `shardscope` and `zero_train` is one that the program has.

Usage: commands_test.py BIN_FOLDER
"""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMAND = re.compile(r"(?:^|[\s`/(])(shardscope|zero_train)((?: [^`#|\n]*)?)")
OPTION = re.compile(r"(?<![\w-])(--[a-z][\w-]*)")
FORMS = ("estimate",)  # verbs that have verbs of their own
WRAPPER = {"test"}  # verbs of ./shardscope itself
NO_VERB = re.compile(r"^(?:--version|--help)?$")


@cache
def help_of(program: str, *words: str) -> str | None:
    """The help text of a program's verb; None: it has no such verb."""
    result = subprocess.run([Path(sys.argv[1]) / program, *words, "--help"], capture_output=True, text=True)
    usage = re.search(r"^Usage: (.*)$", result.stdout, re.M)
    return result.stdout if usage and usage.group(1).startswith(" ".join([program, *words])) else None


def documents() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def code_of(text: str) -> list[str]:
    """Lines of code blocks and text in backticks, commands in one line each."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S) + ["\n".join(re.findall(r"^    (.*)$", text, re.M))]
    rest = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return lines + re.findall(r"`([^`\n]+)`", rest)


def problems_of(code: str) -> tuple[int, list[str]]:
    """(commands looked at, what is wrong with them)"""
    looked, found = 0, []
    for program, arguments in COMMAND.findall(code):
        words = re.split(r"\s(?:&&|;|&|>|--)(?:\s|$)", arguments + " ")[0].split()  # behind " -- " is another program
        verb: list[str] = []
        if program == "shardscope":
            if not words or not re.fullmatch(r"[a-z][a-z-]*", words[0]) or words[0] in WRAPPER:
                continue
            verb = words[:2] if words[0] in FORMS and len(words) > 1 and re.fullmatch(r"[a-z][\w-]*", words[1]) else words[:1]
        elif not any(word.startswith("--") for word in words):
            continue
        looked += 1
        text = help_of(program, *verb)
        if text is None:
            found.append(f"{program} {' '.join(verb)}: no such verb")
            continue
        found += [f"{' '.join([program, *verb])}: has no option {option}"
                  for option in OPTION.findall(" ".join(words)) if not re.search(re.escape(option) + r"(?![\w-])", text)]
    return looked, found


def self_check():
    assert problems_of("./shardscope run --config a.json --no-such-option")[1]
    assert problems_of("shardscope nonsense run.zscope")[1]
    assert not problems_of("./shardscope summary run.zscope   # its numbers; --nonsense")[1]
    assert not problems_of("shardscope: what, value, what to do")[1]


def main() -> int:
    self_check()
    looked, found = 0, []
    for page in documents():
        for code in code_of(page.read_text()):
            count, wrong = problems_of(code)
            looked += count
            found += [f"{page.relative_to(ROOT)}: {problem}" for problem in wrong]
    if looked < 60:
        found.append(f"only {looked} commands could be read")
    print("\n".join(sorted(set(found))) if found else f"{looked} commands, every verb and option exists")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
