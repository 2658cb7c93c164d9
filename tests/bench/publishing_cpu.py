#!/usr/bin/env python3
"""CPU time that an event of the demo costs after it was emitted: in the rank's threads that publish, and in the collector.

usage: tests/bench/publishing_cpu.py [--ranks 2] [--steps 250] [--rounds 2] [--viewer] [--build FOLDER ...]

gpt-mini is trained at detail `params` while `shardscope record` takes it in. A rank says itself what its threads took; the
collector's time is all of its process, from its start to the closed recording, as the system counts it. Several builds run in
turns, so that what else the machine does falls on all alike. With --viewer a viewer follows, which makes ranks publish and the
collector write as often as a live view needs; its own time is not counted.
"""
import argparse
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

import children

ROOT = pathlib.Path(__file__).resolve().parents[2]
COST = re.compile(r"cost of profiling: (\d+) events .* took ([\d.]+) ms")
WAIT_S = 300


class Failed(Exception):
    pass


def wait_for(path, process):
    while not path.exists():
        if process.poll() is not None:
            raise Failed(f"shardscope record ended with {process.returncode}")
        time.sleep(0.01)


def measure(options, build):
    programs = pathlib.Path(build).resolve() / "bin"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        recording, endpoint = folder / "run.zscope", f"ipc://{folder}/c"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "preexec_fn": children.bound()}
        helpers = [subprocess.Popen([programs / "shardscope", "record", recording, "--listen", endpoint], **quiet)]
        collector = helpers[0]
        try:
            wait_for(folder / "c", collector)
            if options.viewer:
                helpers.append(subprocess.Popen([programs / "bench_viewer", endpoint, "follow"], **quiet))
            training = subprocess.run(
                ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(options.ranks),
                 programs / "zero_train", "--config", ROOT / "samples" / "demo.json", "--model", "gpt-mini", "--data", "golden:gpt",
                 "--steps", str(options.steps), "--publish", endpoint],
                cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=WAIT_S,
                preexec_fn=children.bound(signal.SIGTERM))
            if training.returncode != 0:
                raise Failed(f"zero_train ended with {training.returncode}: {(training.stdout + training.stderr)[-900:]}")
            # Ends by itself once all ranks have; the system's count is only to be had by who waits for it.
            _, status, usage = os.wait4(collector.pid, 0)
            collector.returncode = os.waitstatus_to_exitcode(status)
            if collector.returncode != 0:
                raise Failed(f"shardscope record ended with {collector.returncode}")
            texts = [row[0] for row in sqlite3.connect(recording).execute("SELECT text FROM messages")]
            said = [match for match in map(COST.search, texts) if match]
            if len(said) != options.ranks:
                raise Failed(f"{len(said)} of {options.ranks} ranks said what their publishing costs")
            events = sum(int(match[1]) for match in said)
            publishing_ns = sum(float(match[2]) for match in said) * 1e6
            collector_ns = (usage.ru_utime + usage.ru_stime) * 1e9
            print(f"{build}: {events} events, publishing {publishing_ns / events:.0f}, collector {collector_ns / events:.0f}, "
                  f"together {(publishing_ns + collector_ns) / events:.0f} ns of CPU per event; "
                  f"{recording.stat().st_size / events:.2f} bytes per event", flush=True)
        finally:
            for helper in helpers:
                if helper.returncode is None:
                    helper.kill()
                    helper.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--viewer", action="store_true")
    parser.add_argument("--build", nargs="+", default=[ROOT / "build" / "release"])
    options = parser.parse_args()
    for _ in range(options.rounds):
        for build in options.build:
            measure(options, build)


if __name__ == "__main__":
    try:
        main()
    except (Failed, subprocess.TimeoutExpired) as error:
        sys.exit(f"publishing_cpu.py: {error}")
