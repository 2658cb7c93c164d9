#!/usr/bin/env python3
"""Asserts that libraries which are opened after the program has started keep little for each thread.

An emission reads its thread's ring at a fixed distance (initial-exec), so all thread-locals of such a library must lie in
the room that the loader left free when the program started: 1.6 KB in glibc for all libraries together. Beside PyTorch a
library with 1.3 KB could not be imported.

Usage: thread_locals_test.py FOLDER      of a build's libraries
"""
import pathlib
import re
import subprocess
import sys

MOST = 640  # bytes


def readelf(option, file):
    return subprocess.run(["readelf", option, file], capture_output=True, text=True, check=True).stdout


def bytes_of(file):
    """Bytes for each thread at a fixed distance; 0: none, or reached another way."""
    if "STATIC_TLS" not in readelf("-dW", file):
        return 0
    found = re.search(r"^ *TLS( +0x[0-9a-f]+){5}", readelf("-lW", file), re.M)
    return int(found.group(1), 16) if found else 0


def main():
    files = [file for file in sorted(pathlib.Path(sys.argv[1]).glob("lib*.so")) if not file.is_symlink() or file.exists()]
    sizes = {file.name: bytes_of(file) for file in files}
    if not any(sizes.values()):
        sys.exit(f"thread_locals_test: {sys.argv[1]}: no library with thread-locals at a fixed distance; is anything built?")
    large = {name: size for name, size in sizes.items() if size > MOST}
    for name, size in large.items():
        print(f"{name}: {size} bytes for each thread, {MOST} at most; keep large ones in the heap")
    print(", ".join(f"{name} {size}" for name, size in sizes.items()), "bytes for each thread")
    sys.exit(1 if large else 0)


main()
