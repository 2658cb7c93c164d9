#!/usr/bin/env python3
"""Every source file is as clang-format 14 writes it (.clang-format).

Usage: format_test.py          names the files that are not; ends with 1 where there are any
       format_test.py --fix    writes them

Ends with 77 (skipped) where clang-format 14 is not installed: other versions write some lines differently.
"""

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUFFIXES = (".h", ".cpp", ".c", ".cu", ".cuh")
FOLDERS = ("app", "assets", "instrumentation", "kernels", "python", "runtime", "samples", "tests")
FILES_PER_CALL = 30
SKIPPED = 77


def clang_format() -> str | None:
    for name in ("clang-format-14", "clang-format"):
        if path := shutil.which(name):
            version = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
            if re.search(r"version 14\.", version):
                return path
    return None


def sources() -> list[str]:
    """Paths relative to ROOT: what git tracks or would track; all of the folders in a source archive."""
    if (ROOT / ".git").exists():
        names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *FOLDERS],
                               cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    else:
        names = [str(path.relative_to(ROOT)) for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    return sorted(name for name in set(names) if name.endswith(SUFFIXES) and (ROOT / name).is_file())


def check(program: str, files: list[str], fix: bool) -> list[str]:
    """The files of `files` that are written differently; with `fix` they are rewritten."""
    mode = ["-i"] if fix else ["--dry-run", "--Werror"]
    result = subprocess.run([program, *mode, *files], cwd=ROOT, capture_output=True, text=True)
    return sorted(set(re.findall(r"^(\S+?):\d+:\d+: error: code should be clang-formatted", result.stderr, re.M))) \
        or ([result.stderr] if result.returncode != 0 else [])


def main() -> int:
    program = clang_format()
    if program is None:
        print("clang-format 14 is not installed: formatting was not checked")
        return SKIPPED
    files = sources()
    if len(files) < 500:
        print(f"only {len(files)} source files found below {ROOT}")
        return 1
    parts = [files[i:i + FILES_PER_CALL] for i in range(0, len(files), FILES_PER_CALL)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = [name for part in pool.map(lambda part: check(program, part, "--fix" in sys.argv), parts) for name in part]
    for name in wrong:
        print(f"{name}: not as clang-format 14 writes it; tests/house/format_test.py --fix")
    print(f"{len(files)} files, {len(wrong)} to format")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
