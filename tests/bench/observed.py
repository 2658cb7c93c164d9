#!/usr/bin/env python3
"""What being observed costs training: the demo model's step time at detail `params` against emission off.

usage: tests/bench/observed.py [--ranks 2] [--steps 60] [--rounds 6] [--observers none absent stopped slow killed reconnecting]
                               [--build FOLDER]

Runs with emission off and with each kind of observer take turns, in another order every round:
  none          events have nowhere to go: nothing listens at the endpoint
  absent        a collector records, nobody looks
  stopped       a viewer that got SIGSTOP after a second
  slow          a viewer that looks every two seconds
  killed        a viewer that got SIGKILL after a second
  reconnecting  a viewer that begins anew twice a second
Per run: the median step time without the first ten. Per observer: the mean over rounds of (observed / off - 1) with its
95 % confidence interval (Student's t), target 0.5 %. Collector and viewer run on the machine that trains, so what they take
of its cores is in the figure.
"""
import argparse
import json
import math
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
WARM_UP = 10
# Two-sided 95 % quantiles of Student's t by degrees of freedom.
T95 = {1: 12.71, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228, 15: 2.131}
VIEWER_MODE = {"stopped": "follow", "slow": "slow", "killed": "follow", "reconnecting": "reconnect"}


class Failed(Exception):
    pass


def t95(freedom):
    return T95[max(n for n in T95 if n <= freedom)]


def step_seconds(losses):
    ended = json.loads(losses.read_text())["ended_s"]
    steps = [b - a for a, b in zip(ended, ended[1:])][WARM_UP:]
    if not steps:
        raise Failed(f"{len(ended)} steps are too few: the first {WARM_UP} do not count; give --steps a larger number")
    return statistics.median(steps)


def train(options, folder, endpoint):
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(options.ranks),
               options.bin / "zero_train", "--config", ROOT / "samples" / "demo.json", "--model", "gpt-mini", "--data",
               "golden:gpt", "--steps", str(options.steps), "--losses", folder / "losses.json", "--quiet"]
    if endpoint:
        command += ["--publish", endpoint, "--detail", "params"]
    return subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def run(options, observer):
    """Median step time in seconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        endpoint = f"ipc://{folder}/c" if observer else None
        helpers = []
        try:
            if observer not in (None, "none"):
                helpers.append(subprocess.Popen([str(options.bin / "shardscope"), "record", str(folder / "run.zscope"),
                                                 "--listen", endpoint], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
                while not (folder / "c").exists():
                    if helpers[0].poll() is not None:
                        raise Failed(f"shardscope record ended with {helpers[0].returncode}")
                    time.sleep(0.01)
            training = train(options, folder, endpoint)
            if observer in VIEWER_MODE:
                viewer = subprocess.Popen([str(options.bin / "bench_viewer"), endpoint, VIEWER_MODE[observer]])
                helpers.append(viewer)
                if observer in ("stopped", "killed"):
                    time.sleep(1)
                    viewer.send_signal(signal.SIGSTOP if observer == "stopped" else signal.SIGKILL)
            words, _ = training.communicate()
            if training.returncode != 0:
                raise Failed(f"zero_train ended with {training.returncode}: {words[-900:]}")
            return step_seconds(folder / "losses.json")
        finally:
            for helper in helpers:
                helper.kill()
                helper.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--observers", nargs="+", default=["none", "absent", "stopped", "slow", "killed", "reconnecting"],
                        choices=["none", "absent", "stopped", "slow", "killed", "reconnecting"])
    parser.add_argument("--build", default=ROOT / "build" / "release")
    options = parser.parse_args()
    options.bin = pathlib.Path(options.build) / "bin"
    print(f"{options.ranks} ranks on {os.cpu_count()} cores, {options.steps} steps, {options.rounds} rounds; collector and "
          "viewer share the cores with training")
    kinds = [None, *options.observers]
    seen = {kind: [] for kind in kinds}
    for turn in range(options.rounds):
        order = kinds[:]
        random.Random(turn).shuffle(order)
        for kind in order:
            seen[kind].append(run(options, kind))
    off = seen[None]
    print(f"off: {statistics.median(off) * 1e3:.3f} ms per step, {min(off) * 1e3:.3f} to {max(off) * 1e3:.3f} over the rounds")
    for kind in options.observers:
        change = [100 * (a / b - 1) for a, b in zip(seen[kind], off)]
        mean = statistics.fmean(change)
        width = t95(len(change) - 1) * statistics.stdev(change) / math.sqrt(len(change)) if len(change) > 1 else math.nan
        print(f"{kind:13s} {mean:+6.2f} % +- {width:.2f} (95 %), median {statistics.median(change):+.2f} %   target below +0.5 %")


if __name__ == "__main__":
    try:
        main()
    except Failed as error:
        sys.exit(f"observed.py: {error}")
