#!/usr/bin/env python3
"""Asserts that tests are where what they test is: the test of runtime/comm/x.cpp is found in tests/runtime/comm.

A C++ test includes a header of the folder that its own mirrors, or what the tests of its folder share; every part of the program and of
the runtime has its folder of tests. Usage: mirror_test.py [--self-test]
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MIRRORED = ("app", "instrumentation", "kernels", "runtime")
# What is included where the folder's headers are for others.
PUBLIC = {"instrumentation/c_api": "shardscope/"}
ELSEWHERE = {
    "instrumentation/c_api/events_page_test.cpp": "writes docs/events.md from the table of events",
    "instrumentation/nccl_profiler/own_run_test.cpp": "loads the plugin as NCCL does",
    "runtime/device/events_test.cpp": "sees streams, arena and collectives through their events alone",
}


def is_at_home(test, text):
    """`test`: its path below tests/."""
    folder = test.rpartition("/")[0]
    included = re.findall(r'^#include ["<]([^">]+)[">]', text, re.M)
    homes = (folder + "/", "tests/" + folder, PUBLIC.get(folder, folder + "/"))
    return any(name.startswith(homes) for name in included)


def problems():
    found = []
    for folder in MIRRORED:
        for path in sorted((ROOT / "tests" / folder).rglob("*_test.cpp")):
            test = path.relative_to(ROOT / "tests").as_posix()
            if is_at_home(test, path.read_text(encoding="utf-8")) == (test in ELSEWHERE):
                found.append(f"tests/{test}: is no exception any more; take it from ELSEWHERE" if test in ELSEWHERE else
                             f"tests/{test}: includes nothing of {test.rpartition('/')[0]}; move it to what it tests")
    for folder in ("app", "runtime"):
        for part in sorted(path for path in (ROOT / folder).iterdir() if path.is_dir()):
            name = part.relative_to(ROOT).as_posix()
            if any(part.glob("*.cpp")) and not any((ROOT / "tests" / name).rglob("*_test.*")):
                found.append(f"{name}: tests/{name} has no test")
    return found + [f"ELSEWHERE: {test} is not there" for test in ELSEWHERE if not (ROOT / "tests" / test).is_file()]


def self_test():
    assert is_at_home("runtime/comm/x_test.cpp", '#include <vector>\n#include "runtime/comm/x.h"\n')
    assert is_at_home("runtime/comm/x_test.cpp", '#include "tests/runtime/comm/thread_ranks.h"\n')
    assert is_at_home("instrumentation/c_api/x_test.cpp", '#include "shardscope/shardscope.h"\n')
    assert not is_at_home("runtime/comm/x_test.cpp", '#include "runtime/plan/x.h"\n')
    assert not is_at_home("runtime/comm/x_test.cpp", '// #include "runtime/comm/x.h"\n')
    print("self-test: 5 cases")


if __name__ == "__main__":
    self_test()
    wrong = [] if sys.argv[1:] == ["--self-test"] else problems()
    print("\n".join(wrong) if wrong else "tests are where what they test is")
    sys.exit(bool(wrong))
