"""What attaching costs a training run: tests/attach/overhead.py [--pairs N] [--width N]    (python of tests/attach/environment)

1. Steps of FSDP2 and of DeepSpeed stage 3, attached at `params` and plain in turns within one run: paired differences of step
   time and of processor time of the rank (its publishing thread included), with intervals of 95 %. Beside it in turns of the same
   kind: torch.profiler, and DeepSpeed's comms_logger.
2. Records of a step, and what they cost by tests/attach/cost.py's figure for a hook.
3. Start-up: a rank until its first step is over, attached and plain in turns.
4. `import torch` where the package is installed and nothing has armed it.
Beside other work the step times mean little; processor time means more.
"""
import argparse
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import runs  # noqa: E402

RANK = runs.HERE / "overhead_rank.py"


def interval(values):
    """Mean and half the width of its interval of 95 %, by batches of the normal approximation."""
    mean = statistics.fmean(values)
    return mean, 1.96 * statistics.stdev(values) / math.sqrt(len(values))


def trimmed(values, share=0.1):
    """Without the tenth at either end: one step during which the machine did something else outweighs all others."""
    cut = int(len(values) * share)
    return sorted(values)[cut:len(values) - cut] if cut else values


def steps(framework, watcher, pairs, width, scratch):
    out, recording = scratch / f"{framework}-{watcher}", scratch / f"{framework}-{watcher}.zscope"
    command = runs.torchrun(RANK, framework, watcher, pairs, width, out)
    if watcher == "shardscope":
        command = runs.attach(recording) + command
    runs.finish(runs.start(command))
    results = runs.results(out)
    line = f"{framework:6} {watcher:13}"
    for what in ("wall_ns", "cpu_ns"):
        differences, plain = [], []
        for result in results:
            by_pair = {}
            for row in result["rows"]:
                by_pair.setdefault(row["pair"], {})[row["on"]] = row[what]
            differences += [(pair[True] - pair[False]) / pair[False] * 100 for pair in by_pair.values()]
            plain += [pair[False] for pair in by_pair.values()]
        mean, half = interval(trimmed(differences))
        line += f"  {what[:-3]} {statistics.median(plain) * 1e-6:7.1f} ms, {mean:+6.2f} % [{mean - half:+.2f}, {mean + half:+.2f}]"
    print(line, flush=True)
    if watcher == "shardscope":
        summary, facts = runs.figures(recording), results[0]
        attached = pairs + 3
        per_step = summary["events"] / 2 / attached
        hook_ns = cost_of_a_hook()
        cpu = statistics.median(row["cpu_ns"] for row in facts["rows"] if not row["on"])
        print(f"       {facts['params']} parameters in {facts['tensors']} tensors, {facts['modules']} modules: {per_step:.0f} records a step of a "
              f"rank, dropped {summary['dropped']}; x {hook_ns / 2:.0f} ns (half a hook with two events) = {per_step * hook_ns / 2e3:.0f} us, "
              f"{per_step * hook_ns / 2 / cpu * 100:.2f} % of a step's processor time", flush=True)


def cost_of_a_hook():
    done = subprocess.run([runs.PYTHON, runs.HERE / "cost.py"], env=runs.process_environment(), capture_output=True, text=True, check=True)
    return next(float(line.split()[3]) for line in done.stdout.splitlines() if line.startswith("wrapped, two events"))


def start_up(repeats, scratch):
    """Until the end of the first step, whole process tree: wall and processor time."""
    for framework in ("fsdp2", "zero3"):
        wall, cpu = {True: [], False: []}, {True: [], False: []}
        for repeat in range(repeats):
            for on in ((True, False) if repeat % 2 else (False, True)):
                command = runs.torchrun(runs.HERE / "train.py", framework, scratch / "first", "steps=1", ranks=1)
                if on:
                    command = runs.attach(scratch / "first.zscope") + command
                began, used = time.perf_counter(), os.times()
                runs.finish(runs.start(command))
                now = os.times()
                wall[on].append(time.perf_counter() - began)
                cpu[on].append(now.children_user + now.children_system - used.children_user - used.children_system)
        text = ", ".join(f"{name} {statistics.median(values[False]):.2f} s, {interval([1e3 * (a - b) for a, b in zip(values[True], values[False])])[0]:+.0f} "
                         f"± {interval([1e3 * (a - b) for a, b in zip(values[True], values[False])])[1]:.0f} ms" for name, values in (("wall", wall), ("cpu", cpu)))
        print(f"start-up, {framework}, one rank from launch to exit after a step ({repeats} pairs): {text}", flush=True)


def unarmed(repeats):
    code = ("import importlib.metadata, time; points = [p for p in importlib.metadata.entry_points(group='torch.backends') "
            "if p.name == 'shardscope']; assert points; began = time.perf_counter_ns(); points[0].load()(); "
            "print(time.perf_counter_ns() - began)")
    took = [int(subprocess.run([runs.PYTHON, "-c", code], env=runs.process_environment(), capture_output=True, text=True, check=True).stdout)
            for _ in range(repeats)]
    print(f"import torch, installed and not armed: {statistics.median(took) * 1e-6:.2f} ms more (median of {repeats}, highest {max(took) * 1e-6:.2f})")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=80)
    parser.add_argument("--width", type=int, default=256, help="of the model: the time of a step grows with its square, its hooks stay the same")
    parser.add_argument("--start-ups", type=int, default=6)
    options = parser.parse_args()
    runs.build_package()
    with tempfile.TemporaryDirectory(prefix="shardscope-overhead-") as folder:
        scratch = pathlib.Path(folder)
        unarmed(20)
        for framework in ("fsdp2", "zero3"):
            for watcher in ("shardscope", "profiler") + (("comms_logger",) if framework == "zero3" else ()):
                steps(framework, watcher, options.pairs, options.width, scratch)
        start_up(options.start_ups, scratch)


if __name__ == "__main__":
    main()
