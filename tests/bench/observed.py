#!/usr/bin/env python3
"""What being observed costs training: step time at detail `params` against emission off, within one process.

usage: tests/bench/observed.py [--seconds 10] [--ranks 1 2] [--models demo small] [--observers none absent ...]
                               [--build FOLDER]

observed_steps switches the level off and on between blocks of a few steps, in random order, hundreds of times; so whatever
else the machine does falls on both alike. Observers:
  none          nothing listens at the endpoint
  absent        a collector records, no viewer
  stopped       a viewer that got SIGSTOP after a second
  slow          a viewer that looks every two seconds
  killed        a viewer that got SIGKILL after a second
  reconnecting  a viewer that begins anew twice a second
  halted        the collector itself got SIGSTOP after a second, until the measurement is over
Models: `demo` is gpt-mini as `shardscope demo` trains it; `small` is a residual MLP of 100,417 parameters in fp32, stage 3,
whose steps are short: the worst case, as many events per second as there can be.

Per line: the change of the step time, a mean over pairs of blocks without the outer fifth on either side, with its 95 %
confidence interval (bootstrap over the pairs); what the threads that publish took of a core while the level was on (their
CPU time, all of it on the half of the time that was observed); the change of the CPU time of all other threads of rank 0, with
its interval: what the rank itself pays, which neither waiting nor the collector's own work blurs; the sum of share and that
change, which is the cost where no core is free; the longest step off and on: nothing waits for an
observer; and events dropped. The last line of several observers takes all their pairs together: its interval is the narrow
one, --seconds 40 makes each observer's as narrow. Ranks are 1 with a core left for collector and viewer, or 2 with the cores of a machine of
two shared by everybody: there the change also holds what collector and viewer take from training.
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

import children

ROOT = pathlib.Path(__file__).resolve().parents[2]
OBSERVERS = ["none", "absent", "stopped", "slow", "killed", "reconnecting", "halted"]
VIEWER_MODE = {"stopped": "follow", "slow": "slow", "killed": "follow", "reconnecting": "reconnect"}
MODELS = {"demo": ["--model", "gpt-mini", "--data", "golden:gpt"],
          "small": ["--model", ROOT / "samples" / "models" / "mlp.json", "--data", "golden:mlp"]}
RESAMPLES = 2000
TARGET = 0.5  # per cent


class Failed(Exception):
    pass


def trimmed_mean(ordered):
    cut = len(ordered) // 5
    return statistics.fmean(ordered[cut:len(ordered) - cut])


def change(pairs):
    """Per cent by which `on` is above `off`, and the 95 % confidence interval around it."""
    logs = [math.log(on / off) for off, on in pairs]
    draw = random.Random(1)
    means = sorted(trimmed_mean(sorted(draw.choices(logs, k=len(logs)))) for _ in range(RESAMPLES))
    return tuple(100 * math.expm1(x) for x in (trimmed_mean(sorted(logs)), means[RESAMPLES // 40], means[-RESAMPLES // 40]))


def interval(middle, low, high):
    return f"{middle:+7.2f} {f'[{low:+.2f}, {high:+.2f}]':17s}"


def start_collector(options, folder, endpoint):
    collector = subprocess.Popen([str(options.bin / "shardscope"), "record", str(folder / "run.zscope"), "--listen", endpoint],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=children.bound())
    while not (folder / "c").exists():
        if collector.poll() is not None:
            raise Failed(f"shardscope record ended with {collector.returncode}")
        time.sleep(0.01)
    return collector


def measure(options, model, ranks, observer):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        endpoint = f"ipc://{folder}/c"
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", ranks,
                   options.bin / "observed_steps", "--config", ROOT / "samples" / "demo.json", *MODELS[model], "--publish",
                   endpoint, "--seconds", options.seconds, "--out", folder / "result.json"]
        helpers = []
        try:
            if observer != "none":
                helpers.append(start_collector(options, folder, endpoint))
            training = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        preexec_fn=children.bound(signal.SIGTERM))
            helpers.append(training)
            if observer in VIEWER_MODE:
                helpers.append(subprocess.Popen([str(options.bin / "bench_viewer"), endpoint, VIEWER_MODE[observer]],
                                                preexec_fn=children.bound()))
            if observer in ("stopped", "killed", "halted"):
                time.sleep(1)
                (helpers[0] if observer == "halted" else helpers[-1]).send_signal(
                    signal.SIGKILL if observer == "killed" else signal.SIGSTOP)
            words, _ = training.communicate(timeout=options.seconds + 120)
            if training.returncode != 0:
                raise Failed(f"observed_steps ended with {training.returncode}: {words[-900:]}")
            return json.loads((folder / "result.json").read_text())
        finally:
            for helper in helpers:
                helper.kill()
                helper.wait()


def report(model, ranks, observer, result):
    pairs = result["pairs_ns"]
    middle, low, high = change(pairs)
    # The level was on for half of the time.
    share = 100 * 2 * result["publishing_cpu_ns"] / result["elapsed_ns"] if result["publishing_cpu_ns"] >= 0 else math.nan
    off_ms = statistics.median(off for off, _ in pairs) * 1e-6
    longest = [ns * 1e-6 for ns in result["longest_ns"]]
    cpu, cpu_low, cpu_high = change(result["cpu_pairs_ns"])
    print(f"{model:6s} {ranks} {observer:13s} {len(pairs):5d} {off_ms:8.3f} {interval(middle, low, high)} {share:6.2f}"
          f" {interval(cpu, cpu_low, cpu_high)} {cpu + share:+6.2f}   {longest[0]:7.1f} {longest[1]:7.1f}"
          f" {result['dropped']:8.0f}", flush=True)


def joined(results):
    """As if it had been one run."""
    return {**{key: [pair for result in results for pair in result[key]] for key in ("pairs_ns", "cpu_pairs_ns")},
            "longest_ns": [max(result["longest_ns"][level] for result in results) for level in (0, 1)],
            **{key: sum(result[key] for result in results) for key in ("elapsed_ns", "publishing_cpu_ns", "dropped")}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--observers", nargs="+", default=OBSERVERS, choices=OBSERVERS)
    parser.add_argument("--build", default=ROOT / "build" / "release")
    options = parser.parse_args()
    options.bin = pathlib.Path(options.build) / "bin"
    print(f"{os.cpu_count()} cores, {options.seconds:g} s each; change and share in per cent, target below {TARGET}\n"
          "model  ranks observer   pairs  off ms  change [95 % interval]    share  CPU [95 % interval]         sum   longest off,"
          " on ms  dropped")
    for model in options.models:
        for ranks in options.ranks:
            # The small model is there for the worst rate of events, not for one more look at every observer.
            observers = options.observers if model == "demo" else [o for o in options.observers if o == "absent"]
            results = []
            for observer in observers:
                results.append(measure(options, model, ranks, observer))
                report(model, ranks, observer, results[-1])
            if len(results) > 1:
                report(model, ranks, "all of them", joined(results))


if __name__ == "__main__":
    try:
        main()
    except (Failed, subprocess.TimeoutExpired) as error:
        sys.exit(f"observed.py: {error}")
