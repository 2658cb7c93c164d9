#!/usr/bin/env python3
"""Asserts the include graph: which folder may include which (docs/architecture.md).

Usage: include_graph_test.py ROOT          checks the tree
       include_graph_test.py --self-test   checks that forbidden edges are found
"""
import pathlib
import re
import sys
import tempfile

RUNTIME = ["runtime/device", "runtime/comm", "runtime/model", "runtime/optim", "runtime/offload", "runtime/data",
           "runtime/profile", "runtime/checkpoint", "runtime/config", "runtime/engine", "runtime/simulate", "runtime"]

# folder -> folders it may include besides itself. The longest matching folder counts.
ALLOWED = {
    "kernels": [],
    "instrumentation": [],
    "runtime/plan": [],
    **{folder: ["runtime/plan", "kernels", "instrumentation"] + RUNTIME for folder in RUNTIME},
    "app/store": ["instrumentation", "runtime/plan"],
    "app/collector": ["instrumentation", "runtime/plan", "app/store"],
    "app/analysis": ["instrumentation", "runtime/plan", "runtime/config", "app/store"],
    "app/export": ["instrumentation", "runtime/plan", "app/store", "app/analysis"],
    "app/cli": ["instrumentation", "runtime/plan", "runtime/config", "app/store", "app/collector", "app/analysis", "app/export"],
    "app/gui": ["instrumentation", "runtime/plan", "app/store", "app/collector", "app/analysis", "app/export"],
}
# Headers of libraries that only some folders may see: pattern -> folders.
RESTRICTED = {
    r"imgui|GLFW|GL/|EGL/": ["app/gui"],
    r"^mpi\.h$": ["runtime/comm"],
    r"^(cuda|cublas|cudnn|nccl|cupti|nvtx)": ["kernels/cuda", "runtime/device", "runtime/comm", "runtime/profile",
                                              "instrumentation"],
}
# What no header may include, so that these types stay behind our own; the headers inside a backend's own
# folder are not public.
NOT_IN_HEADERS = r"^(mpi\.h|cuda|cublas|cudnn|nccl|cupti)"
BACKEND_FOLDER = re.compile(r"/(cuda|mpi)/")
PUBLIC_C = "shardscope/"  # the C interface, found through an include path of its own
SUFFIXES = {".h", ".cpp", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def folder_of(path):
    """The longest folder of ALLOWED that holds `path`, or None."""
    best = None
    for folder in ALLOWED:
        if path.startswith(folder + "/") and (best is None or len(folder) > len(best)):
            best = folder
    return best


def check(root):
    errors = []
    files = 0
    for top in ("kernels", "instrumentation", "runtime", "app"):
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in SUFFIXES:
                continue
            files += 1
            name = file.relative_to(root).as_posix()
            source = folder_of(name)
            if source is None:
                errors.append(f"{name}: in no known folder; add it to ALLOWED with the edges it may have")
                continue
            for quote, target in INCLUDE.findall(file.read_text(encoding="utf-8")):
                for pattern, folders in RESTRICTED.items():
                    if re.search(pattern, target) and not any(name.startswith(f + "/") for f in folders):
                        errors.append(f"{name}: includes {target}, which only {', '.join(folders)} may see")
                if file.suffix in (".h", ".cuh") and re.search(NOT_IN_HEADERS, target) and \
                        not BACKEND_FOLDER.search(name):
                    errors.append(f"{name}: a header includes {target}")
                if quote != '"':
                    continue
                if target.startswith(PUBLIC_C):
                    target = "instrumentation/include/" + target
                wanted = folder_of(target)
                if wanted is None:
                    if not (root / target).exists() and "generated" not in target and "/" not in target:
                        continue  # a library header in quotes
                    errors.append(f"{name}: includes {target}, which is in no known folder")
                elif wanted != source and wanted not in ALLOWED[source]:
                    errors.append(f"{name}: {source} may not include {wanted} ({target})")
    return files, errors


def self_test():
    cases = {
        "runtime/plan/a.h": ('#include "runtime/engine/engine.h"', True),
        "runtime/plan/b.cpp": ('#include "shardscope/shardscope.h"', True),
        "kernels/a.cpp": ('#include "instrumentation/event.h"', True),
        "app/store/a.cpp": ('#include "app/gui/view.h"', True),
        "app/cli/a.cpp": ('#include "runtime/comm/world.h"', True),
        "app/analysis/a.cpp": ("#include <imgui.h>", True),
        "runtime/engine/a.cpp": ("#include <mpi.h>", True),
        "runtime/comm/a.h": ("#include <mpi.h>", True),
        "runtime/comm/mpi/a.h": ("#include <mpi.h>", False),
        "runtime/engine/b.cpp": ('#include "runtime/plan/ids.h"', False),
        "app/gui/views/a.cpp": ("#include <imgui.h>", False),
        "runtime/comm/a.cpp": ("#include <mpi.h>", False),
    }
    for name, (text, forbidden) in cases.items():
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True)
            path.write_text(text + "\n", encoding="utf-8")
            found = bool(check(pathlib.Path(folder))[1])
            if found != forbidden:
                sys.exit(f"self-test: {name} with {text}: found {found}, expected {forbidden}")
    print(f"self-test: {len(cases)} cases")


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        sys.exit(0)
    count, problems = check(pathlib.Path(sys.argv[1]))
    print("\n".join(problems))
    print(f"{count} files, {len(problems)} forbidden includes")
    sys.exit(1 if problems or count == 0 else 0)
