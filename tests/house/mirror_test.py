#!/usr/bin/env python3
"""Asserts that tests are where what they test is: the test of runtime/comm/x.cpp is found in tests/runtime/comm.

A C++ test includes a header of the folder that its own mirrors, or what the tests of its folder share. Every folder with
sources, up to two levels below the top, has its folder of tests. Usage: mirror_test.py [--self-test]
"""
import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MIRRORED = ("app", "instrumentation", "kernels", "runtime")
# What is included where the folder's headers are for others.
PUBLIC = {"instrumentation/c_api": "shardscope/", "app/analysis/findings": "app/analysis/summary.h"}
# Folders without tests of their own, and what tests them.
UNTESTED = {
    "app/gui/platform": "the windows of tests/app/gui",
    "kernels/cpu": "tests/kernels, through ops.h",
    "kernels/cuda": "tests/gpu, through ops.h",
    "kernels/cpu/simd": "tests/kernels, through ops.h",
    "runtime/comm/cuda": "tests/gpu, through communicator.h",
    "runtime/comm/mpi": "tests/runtime/comm, through communicator.h",
    "runtime/comm/shm": "tests/runtime/comm, through communicator.h",
    "runtime/device/cpu": "tests/runtime/device, through device.h",
    "runtime/device/cuda": "tests/gpu, through device.h",
    "runtime/offload/io": "tests/runtime/offload, through the swap space",
    "runtime/profile/attached": "tests/gpu/host_cuda",
    "runtime/profile/cuda": "tests/gpu/host_cuda",
    "python/shardscope": "tests/attach",
    "python/src": "tests/attach",
}
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


def folder_problems(root, untested):
    """Folders one or two levels below a top folder that have sources and no tests, unless `untested` lists them."""
    found, seen = [], set()
    for top in (*MIRRORED, "python"):
        for part in sorted(path for pattern in ("*", "*/*") for path in (root / top).glob(pattern) if path.is_dir()):
            name = part.relative_to(root).as_posix()
            if not any(path.suffix in (".cpp", ".cu") for path in part.iterdir()):
                continue
            tested = any((root / "tests" / name).rglob("*_test.*"))
            if tested == (name in untested):
                found.append(f"UNTESTED: {name} has tests; take it from the list" if tested else
                             f"{name}: tests/{name} has no test")
            seen.add(name)
    return found + [f"UNTESTED: {name} has no sources" for name in untested if name not in seen]


def problems():
    found = []
    for folder in MIRRORED:
        for path in sorted((ROOT / "tests" / folder).rglob("*_test.cpp")):
            test = path.relative_to(ROOT / "tests").as_posix()
            if is_at_home(test, path.read_text(encoding="utf-8")) == (test in ELSEWHERE):
                found.append(f"tests/{test}: is no exception any more; take it from ELSEWHERE" if test in ELSEWHERE else
                             f"tests/{test}: includes nothing of {test.rpartition('/')[0]}; move it to what it tests")
    found += folder_problems(ROOT, UNTESTED)
    return found + [f"ELSEWHERE: {test} is not there" for test in ELSEWHERE if not (ROOT / "tests" / test).is_file()]


def self_test():
    assert is_at_home("runtime/comm/x_test.cpp", '#include <vector>\n#include "runtime/comm/x.h"\n')
    assert is_at_home("runtime/comm/x_test.cpp", '#include "tests/runtime/comm/thread_ranks.h"\n')
    assert is_at_home("instrumentation/c_api/x_test.cpp", '#include "shardscope/shardscope.h"\n')
    assert not is_at_home("runtime/comm/x_test.cpp", '#include "runtime/plan/x.h"\n')
    assert not is_at_home("runtime/comm/x_test.cpp", '// #include "runtime/comm/x.h"\n')
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name in ("app/a/x.cpp", "app/a/b/x.cpp", "app/a/c/x.cpp", "runtime/d/x.h", "tests/app/a/x_test.cpp"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).touch()
        assert folder_problems(root, {"app/a/c": ""}) == ["app/a/b: tests/app/a/b has no test"]
        assert folder_problems(root, {"app/a": "", "app/a/b": "", "app/a/c": "", "app/e": ""}) == [
            "UNTESTED: app/a has tests; take it from the list", "UNTESTED: app/e has no sources"]
    print("self-test: 7 cases")


if __name__ == "__main__":
    self_test()
    wrong = [] if sys.argv[1:] == ["--self-test"] else problems()
    print("\n".join(wrong) if wrong else "tests are where what they test is")
    sys.exit(bool(wrong))
