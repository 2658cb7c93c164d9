#!/usr/bin/env python3
"""Asserts the include graph: which folder may include which, edge by edge (docs/architecture.md).

Usage: include_graph_test.py [ROOT]        checks the tree, without ROOT the one that this file is in
       include_graph_test.py --self-test   checks that every kind of violation is found, in made-up trees

Four rules:
1. An include crosses folders only along an edge of EDGES. A target that ends in .h permits that header alone.
2. EDGES has no cycle, and neither have the headers; an edge that no file uses is to be removed.
3. MAY_REACH bounds what a folder sees through any number of includes, and REACHED_ONLY_BY who sees a library.
4. No public header includes a header of MPI or CUDA.
"""
import collections
import pathlib
import re
import sys
import tempfile

EDGES = {
    "assets": [],
    "kernels": [],
    "instrumentation": [],
    "runtime/base": [],
    "runtime/plan": [],
    "runtime/config": ["kernels/dtype.h", "instrumentation", "runtime/base", "runtime/plan"],
    "runtime/checkpoint": ["kernels/dtype.h", "runtime/base", "runtime/plan"],
    "runtime/data": ["runtime/base", "runtime/plan"],
    "runtime/device": ["kernels/types.h", "kernels/cuda/context.h", "instrumentation"],
    "runtime/comm": ["kernels/types.h", "kernels/ops.h", "kernels/cuda/context.h", "instrumentation", "runtime/base", "runtime/plan", "runtime/device"],
    "runtime/model": ["kernels/types.h", "kernels/ops.h", "instrumentation", "runtime/base", "runtime/plan", "runtime/device"],
    "runtime/execution": ["kernels/types.h", "instrumentation", "runtime/plan", "runtime/config", "runtime/device",
                          "runtime/comm"],
    "runtime/optim": ["kernels/types.h", "kernels/ops.h", "runtime/base", "runtime/plan", "runtime/device", "runtime/comm",
                      "runtime/execution"],
    "runtime/offload": ["kernels/ops.h", "kernels/columns.h", "kernels/cost.h", "runtime/base", "runtime/plan", "runtime/device", "runtime/execution",
                        "runtime/optim"],
    "runtime/engine": ["kernels/types.h", "kernels/ops.h", "instrumentation", "runtime/base", "runtime/plan", "runtime/config",
                       "runtime/checkpoint", "runtime/data", "runtime/device", "runtime/comm", "runtime/model",
                       "runtime/execution", "runtime/optim", "runtime/offload"],
    "runtime/profile": ["instrumentation", "runtime/device"],
    "runtime/train": ["kernels/types.h", "instrumentation", "runtime/base", "runtime/plan", "runtime/config",
                      "runtime/checkpoint", "runtime/data", "runtime/device", "runtime/comm", "runtime/model",
                      "runtime/execution", "runtime/engine", "runtime/profile"],
    "runtime/simulate": ["kernels/cost.h", "instrumentation", "runtime/base", "runtime/plan", "runtime/config",
                         "runtime/device", "runtime/comm", "runtime/engine", "runtime/train"],
    "app/store": ["instrumentation", "runtime/base/open_file.h"],
    "app/collector": ["instrumentation", "app/store"],
    "app/analysis": ["instrumentation", "runtime/plan", "runtime/config/config.h", "app/store"],
    "app/export": ["assets", "instrumentation", "runtime/plan", "app/store", "app/analysis"],
    "app/arrow": ["instrumentation", "runtime/plan", "app/store", "app/analysis", "app/export"],
    "app/cli": ["assets", "instrumentation", "runtime/base/build_facts.h", "runtime/base/open_file.h", "runtime/plan", "runtime/config/above_zero.h", "runtime/config/config.h", "runtime/config/fault_check.h", "runtime/config/given_settings.h", "runtime/config/option_checks.h",
                "runtime/config/json_section.h", "runtime/config/parse_json.h",
                "app/store", "app/collector",
                "app/analysis", "app/export"],
    "app/gui/model": ["assets", "instrumentation", "runtime/plan", "app/store", "app/collector", "app/analysis", "app/export"],
    "app/gui/views": ["instrumentation", "runtime/plan", "app/store", "app/analysis", "app/gui/model"],
    "app/gui/platform": ["app/gui/model", "app/gui/views"],
    "app/gui": ["instrumentation", "runtime/base/build_facts.h", "runtime/config/option_checks.h", "app/export", "app/gui/model", "app/gui/platform"],  # main()
    "python/src": ["instrumentation/include/shardscope", "app/arrow/reader.h"],
    "python/shardscope": [],
}

APP_REACHES = ["assets", "instrumentation", "kernels/dtype.h", "runtime/base", "runtime/plan", "runtime/config", "app"]
# Folder -> all that its files may reach. The longest prefix counts; what is not listed is bounded by EDGES alone.
MAY_REACH = {
    "runtime/plan": ["runtime/plan"],
    "runtime/config": ["instrumentation", "kernels/dtype.h", "runtime/base", "runtime/plan", "runtime/config"],
    "app": APP_REACHES,
    "python/src": [*APP_REACHES, "python/src"],
}
# Headers of libraries, through any number of includes: pattern -> folders.
REACHED_ONLY_BY = {
    r"imgui|GL/|EGL/|GLFW|fontconfig/": ["app/gui/views", "app/gui/platform", "app/gui/shardscope_gui.cpp"],
    r"^mpi\.h$": ["runtime/comm"],
    r"^(cuda|cublas|cudnn|nccl|cupti|nvtx)": ["kernels/cuda", "runtime/device", "runtime/comm", "runtime/profile",
                                              "instrumentation"],
}
# What no header may include, so that these types stay behind our own; the headers inside a backend's own
# folder are not public.
NOT_IN_HEADERS = r"^(mpi\.h|cuda|cublas|cudnn|nccl|cupti)"
BACKEND_FOLDER = re.compile(r"/(cuda|mpi)/")
PUBLIC_C = "shardscope/"  # the C interface, found through an include path of its own
# These two include each other, so that a C program may begin with either.
PUBLIC_HEADERS = "instrumentation/include/"
TOPS = ("assets", "kernels", "instrumentation", "runtime", "app", "python")
SUFFIXES = {".h", ".cpp", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def inside(name, place):
    """Whether the file `name` is `place` or below it."""
    return name == place or name.startswith(place + "/")


def longest(name, places):
    """The longest of `places` that `name` is inside, or None."""
    return max((place for place in places if inside(name, place)), key=len, default=None)


def path_of(root, file, quote, target):
    """The target as a path in the tree, where it is one: of the C interface, or relative to the file."""
    if target.startswith(PUBLIC_C):
        return PUBLIC_HEADERS + target
    beside = file.parent / target
    return beside.relative_to(root).as_posix() if quote == '"' and beside.is_file() else target


def read_tree(root):
    """File -> [(quote, target)] of its includes."""
    tree = {}
    for top in TOPS:
        for file in sorted((root / top).rglob("*")):
            if file.suffix in SUFFIXES:
                tree[file.relative_to(root).as_posix()] = [
                    (quote, path_of(root, file, quote, target))
                    for quote, target in INCLUDE.findall(file.read_text(encoding="utf-8"))]
    return tree


def is_library(target, tree):
    """Whether `target` is no file of ours, nor one that the build generates."""
    return target not in tree and longest(target, TOPS) is None


def direct_errors(tree, used):
    """Rules 1 and 4. Adds the edges that files use to `used`, as (folder, entry of EDGES)."""
    errors = []
    for name, includes in tree.items():
        source = longest(name, EDGES)
        if source is None:
            errors.append(f"{name}: in no known folder; add it to EDGES with the edges it may have")
            continue
        for _, target in includes:
            if name.endswith((".h", ".cuh")) and re.search(NOT_IN_HEADERS, target) and not BACKEND_FOLDER.search(name):
                errors.append(f"{name}: a header includes {target}")
            if is_library(target, tree):
                continue
            wanted = longest(target, EDGES)
            if wanted == source:
                continue
            edge = longest(target, EDGES[source])
            # An edge to a folder is none to the folders below it that have edges of their own.
            if edge is None or (edge in EDGES and edge != wanted):
                errors.append(f"{name}: {source} may not include {wanted} ({target})")
            else:
                used.add((source, edge))
    return errors


def chain_text(name, target, parents):
    """How the include of `target` in the last file came about: "a.cpp -> b.h -> target"."""
    chain = [target]
    while name is not None:
        chain.append(name)
        name = parents[name]
    return " -> ".join(reversed(chain))


def reach_errors(tree):
    """Rule 3: what every file sees, through any number of includes, by the shortest way to it."""
    errors = []
    for name in tree:
        bound = longest(name, MAY_REACH)
        parents = {name: None}
        queue = collections.deque([name])
        while queue:
            at = queue.popleft()
            for _, target in tree[at]:
                if is_library(target, tree):
                    for pattern, folders in REACHED_ONLY_BY.items():
                        if re.search(pattern, target) and longest(name, folders) is None:
                            errors.append(f"{chain_text(at, target, parents)}: only {', '.join(folders)} may see it")
                    continue
                if target not in tree or target in parents:
                    continue
                parents[target] = at
                queue.append(target)
                if bound is not None and longest(target, MAY_REACH[bound]) is None:
                    errors.append(f"{chain_text(at, target, parents)}: {bound} may not reach it")
    return errors


def cycle(graph):
    """One cycle of `graph` (node -> nodes) as a list that ends where it begins, or None."""
    done, path = set(), []

    def visit(node):
        if node in path:
            return path[path.index(node):] + [node]
        if node in done:
            return None
        path.append(node)
        for follower in graph.get(node, ()):
            if found := visit(follower):
                return found
        done.add(path.pop())
        return None

    return next((found for node in graph if (found := visit(node))), None)


def cycle_errors(tree):
    """Rule 2, for the list of edges and for the files."""
    folders = {folder: sorted({longest(target, EDGES) for target in targets}) for folder, targets in EDGES.items()}
    files = {name: [target for _, target in includes if target in tree] for name, includes in tree.items()
             if not name.startswith(PUBLIC_HEADERS)}
    return [f"a cycle: {' -> '.join(found)}" for found in (cycle(folders), cycle(files)) if found]


def check(root):
    """(number of files, errors, edges in use) of the tree at `root`."""
    tree = read_tree(root)
    used = set()
    errors = direct_errors(tree, used) + reach_errors(tree) + cycle_errors(tree)
    return len(tree), errors, used


def unused_errors(used):
    return [f"EDGES: {folder} -> {target}: no file needs it any more; remove it"
            for folder, targets in EDGES.items() for target in targets if (folder, target) not in used]


def self_test():
    config = {"runtime/config/config.h": '#include "runtime/comm/communicator.h"', "runtime/comm/communicator.h": ""}
    cases = [  # files of a tree, and a part of the error that it must give; None: it must give none
        ({"runtime/plan/a.h": '#include "runtime/engine/engine.h"'}, "runtime/plan may not include runtime/engine"),
        ({"runtime/plan/a.h": '#include "runtime/base/hash.h"'}, "runtime/plan may not include runtime/base"),
        ({"runtime/plan/b.cpp": '#include "shardscope/shardscope.h"'}, "may not include instrumentation"),
        ({"runtime/base/a.h": '#include "kernels/types.h"'}, "runtime/base may not include kernels"),
        ({"runtime/data/a.h": '#include "runtime/checkpoint/weights.h"'}, "may not include runtime/checkpoint"),
        ({"runtime/optim/a.h": '#include "runtime/offload/optimizer.h"'}, "may not include runtime/offload"),
        ({"runtime/offload/a.h": '#include "runtime/engine/engine.h"'}, "may not include runtime/engine"),
        ({"runtime/execution/a.h": '#include "runtime/optim/param_sink.h"'}, "may not include runtime/optim"),
        ({"runtime/config/a.h": '#include "kernels/types.h"'}, "runtime/config may not include kernels"),
        ({"runtime/config/a.h": '#include "kernels/dtype.h"'}, None),
        ({"kernels/a.cpp": '#include "instrumentation/event.h"'}, "kernels may not include instrumentation"),
        ({"app/store/a.cpp": '#include "app/gui/model/names.h"'}, "app/store may not include app/gui/model"),
        ({"app/gui/model/a.cpp": '#include "app/gui/views/view.h"'}, "app/gui/model may not include app/gui/views"),
        ({"app/cli/a.cpp": '#include "runtime/comm/world.h"'}, "app/cli may not include runtime/comm"),
        ({"app/cli/a.cpp": '#include "runtime/config/zero_section.h"'}, "app/cli may not include runtime/config"),
        ({"runtime/a.cpp": ""}, "in no known folder"),
        ({"python/src/a.cpp": '#include "instrumentation/ring.h"'}, "python/src may not include instrumentation"),
        ({"python/src/a.cpp": '#include "app/store/store.h"'}, "python/src may not include app/store"),
        ({"python/src/a.cpp": '#include "shardscope/shardscope.h"\n#include "app/arrow/reader.h"'}, None),
        ({"python/src/a.cpp": '#include "b.h"', "python/src/b.h": '#include "app/arrow/reader.h"',
          "app/arrow/reader.h": '#include "runtime/engine/engine.h"', "runtime/engine/engine.h": ""},
         "python/src/a.cpp -> python/src/b.h -> app/arrow/reader.h -> runtime/engine/engine.h: python/src may not reach it"),
        # Transitively: each include but one is allowed, and the chain is named.
        (config | {"app/analysis/a.cpp": '#include "runtime/config/config.h"'},
         "app/analysis/a.cpp -> runtime/config/config.h -> runtime/comm/communicator.h: app may not reach it"),
        ({"app/cli/a.cpp": '#include "app/store/a.h"', "app/store/a.h": "#include <imgui.h>"},
         "app/cli/a.cpp -> app/store/a.h -> imgui.h: only app/gui/views"),
        ({"runtime/engine/a.cpp": '#include "runtime/comm/mpi/a.h"', "runtime/comm/mpi/a.h": "#include <mpi.h>"},
         "runtime/engine/a.cpp -> runtime/comm/mpi/a.h -> mpi.h: only runtime/comm"),
        ({"app/analysis/a.cpp": "#include <imgui.h>"}, "only app/gui/views"),
        ({"runtime/engine/a.cpp": "#include <mpi.h>"}, "only runtime/comm"),
        ({"runtime/comm/a.h": "#include <mpi.h>"}, "a header includes mpi.h"),
        # Cycles, of two headers and of one through a third.
        ({"runtime/plan/a.h": '#include "runtime/plan/b.h"', "runtime/plan/b.h": '#include "runtime/plan/a.h"'},
         "a cycle: runtime/plan/a.h -> runtime/plan/b.h -> runtime/plan/a.h"),
        ({"kernels/a.h": '#include "kernels/b.h"', "kernels/b.h": '#include "kernels/c.h"',
          "kernels/c.h": '#include "kernels/b.h"'}, "a cycle: kernels/b.h -> kernels/c.h -> kernels/b.h"),
        ({"runtime/comm/mpi/a.h": "#include <mpi.h>"}, None),
        ({"runtime/engine/b.cpp": '#include "runtime/plan/ids.h"', "runtime/plan/ids.h": ""}, None),
        ({"app/gui/views/a.cpp": "#include <imgui.h>"}, None),
        ({"runtime/comm/a.cpp": "#include <mpi.h>"}, None),
    ]
    for files, expected in cases:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text + "\n", encoding="utf-8")
            errors = check(pathlib.Path(folder))[1]
            if (not errors) if expected is None else any(expected in error for error in errors):
                continue
            sys.exit(f"self-test: {files}: {errors}, expected {expected}")
    EDGES["runtime/base"].append("runtime/engine")  # closes runtime/base -> runtime/engine -> runtime/base
    if not any("a cycle: " in error and "runtime/engine" in error for error in cycle_errors({})):
        sys.exit("self-test: a cycle in EDGES was not found")
    if not any("runtime/base -> runtime/engine: no file" in error for error in unused_errors(set())):
        sys.exit("self-test: an edge without use was not found")
    print(f"self-test: {len(cases) + 2} cases")


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        sys.exit(0)
    count, problems, in_use = check(pathlib.Path(sys.argv[1]) if sys.argv[1:] else pathlib.Path(__file__).resolve().parents[2])
    problems += unused_errors(in_use)
    print("\n".join(problems))
    print(f"{count} files, {len(problems)} forbidden includes")
    sys.exit(1 if problems or count == 0 else 0)
