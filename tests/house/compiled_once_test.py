#!/usr/bin/env python3
"""Asserts that a build compiles each product file once: what two programs need is a library.

Usage: compiled_once_test.py ROOT COMPILE_COMMANDS.json
       compiled_once_test.py --self-test
"""
import collections
import json
import pathlib
import sys

PRODUCT = ("kernels/", "instrumentation/", "runtime/", "app/")
# One source for each instruction set (kernels/CMakeLists.txt).
TIMES = {"kernels/cpu/simd/": 3}


def errors_of(commands, root):
    """The files below `root` that `commands` (compile_commands.json) compile too often."""
    times = collections.Counter()
    for command in commands:
        file = pathlib.PurePath(command["directory"], command["file"])
        if file.is_relative_to(root):
            times[file.relative_to(root).as_posix()] += 1
    return [f"{file}: compiled {count} times; make it part of a library"
            for file, count in sorted(times.items()) if file.startswith(PRODUCT)
            and count > next((most for folder, most in TIMES.items() if file.startswith(folder)), 1)]


def self_test():
    def errors(*files):
        return errors_of([{"directory": "/r/build", "file": file} for file in files], "/r")

    assert not errors("/r/app/a.cpp", "/r/runtime/a.cpp", "/r/tests/a.cpp", "/r/tests/a.cpp")
    assert errors("/r/app/a.cpp", "/r/app/a.cpp") == ["app/a.cpp: compiled 2 times; make it part of a library"]
    assert not errors(*["/r/kernels/cpu/simd/a.cpp"] * 3)
    assert errors(*["/r/kernels/cpu/simd/a.cpp"] * 4)
    print("self-test: 4 cases")


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        sys.exit(0)
    found = errors_of(json.loads(pathlib.Path(sys.argv[2]).read_text(encoding="utf-8")), sys.argv[1])
    print("\n".join(found))
    sys.exit(1 if found else 0)
