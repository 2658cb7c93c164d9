#!/usr/bin/env python3
"""A begin/end pair of ours beside a zone of Tracy's client, on one pinned core, in turns (tracy_zone.cpp).

usage: tests/bench/tracy_zone.py TRACY [--always] [--core N] [--work FOLDER]

TRACY is a checkout of https://github.com/wolfpld/tracy at tag v0.14.0 (MIT or BSD licence; only its folder public/ is read).
Both sides are compiled here, with the same compiler and flags, in a scratch folder outside the tree; its client takes a
quarter of a minute and is kept there for the next time. --always builds Tracy in its default mode, which queues from the
start of the process on; without it the client is on demand, where a zone also looks whether somebody is connected.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLAGS = ["-O3", "-DNDEBUG", "-std=c++20"]
PORT = 18086  # not the usual one: an instrumented program may be running
# What Tracy does besides zones is switched off: it would only cost.
TRACY = ["-DTRACY_ENABLE", "-DTRACY_ONLY_LOCALHOST", "-DTRACY_NO_BROADCAST", "-DTRACY_NO_SYSTEM_TRACING",
         "-DTRACY_NO_SAMPLING", "-DTRACY_NO_CRASH_HANDLER", "-DTRACY_NO_CODE_TRANSFER", "-DTRACY_NO_FRAME_IMAGE",
         f"-DTRACY_DATA_PORT={PORT}"]
OURS = ["instrumentation/clock.cpp", "instrumentation/emitter.cpp", "instrumentation/ring.cpp"]


def compile_to(target, arguments):
    result = subprocess.run(["g++", *map(str, arguments), "-o", str(target)], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"tracy_zone.py: {target.name} does not compile:\n{result.stderr[-3000:]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tracy", type=pathlib.Path)
    parser.add_argument("--always", action="store_true")
    parser.add_argument("--core", type=int, default=os.cpu_count() - 1)
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "shardscope-tracy-zone")
    options = parser.parse_args()
    public = options.tracy.resolve() / "public"
    if not (public / "TracyClient.cpp").exists():
        sys.exit(f"tracy_zone.py: {public / 'TracyClient.cpp'} is not there; give the folder of a checkout of Tracy v0.14.0")
    options.work.mkdir(parents=True, exist_ok=True)
    tracy = TRACY if options.always else [*TRACY, "-DTRACY_ON_DEMAND"]
    client = options.work / ("client-always.o" if options.always else "client.o")
    if not client.exists() or client.stat().st_mtime < (public / "TracyClient.cpp").stat().st_mtime:
        compile_to(client, [*FLAGS, *tracy, "-c", public / "TracyClient.cpp"])
    program = options.work / "tracy_zone"
    compile_to(program, [*FLAGS, *tracy, "-I", ROOT, "-isystem", public, ROOT / "tests/bench/tracy_zone.cpp",
                         *(ROOT / source for source in OURS), client, "-pthread", "-ldl"])
    sys.exit(subprocess.run([str(program), str(options.core)]).returncode)


if __name__ == "__main__":
    main()
