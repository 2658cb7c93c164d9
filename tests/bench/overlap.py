#!/usr/bin/env python3
"""What overlapping communication gains: predicted by the critical path, and measured. And stage 3 beside stage 0.

usage: tests/bench/overlap.py [--gbps 10] [--repeat 3] [--steps 12] [--stages 1 2 3] [--build FOLDER]

Per stage, runs with overlap_comm off and on take turns, over an emulated link, on the GPT of the throughput comparison
with 2 ranks. Beside the gain seen stand two that were computed:

- *bound*: with overlap no run is shorter than the larger of computation and communication, plus the rest (copies,
  idle). Nothing reaches it: the last bucket's reduction and, in stages 1 and 2, the gather after the update have
  nothing to hide behind.
- *critical path*: `shardscope what-if` on a run without overlap, with overlap: the longest path through the engine's own
  waits, where kernels and collectives take what they took in that run.

Then stages 0 and 3 without a link, overlap on: what partitioning costs when communication is hidden. Medians over the
runs; times are those of the slower rank, over all steps.
"""
import argparse
import json
import pathlib
import signal
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "peers"))
import children  # noqa: E402
import launch  # noqa: E402
import peer_models  # noqa: E402


LATENCY_US = 20


def described(options, folder, stage, overlap, gbps):
    """Writes the configuration and the model into the folder."""
    zero = {"stage": stage, "overlap_comm": overlap, "reduce_bucket_size": 1_000_000,
            "stage3_prefetch_bucket_size": 2_000_000}
    config = {"train_micro_batch_size_per_gpu": options.micro_batch, "zero_optimization": zero,
              "optimizer": {"type": "AdamW", "params": {"lr": 3e-4}}}
    if gbps:
        config["shardscope"] = {"emulated_link": {"gbps": gbps, "latency_us": LATENCY_US}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.json").write_text(peer_models.tree("gpt", peer_models.SMALL_GPT))


def shardscope(options, *arguments):
    done = subprocess.run([str(pathlib.Path(options.build) / "bin" / "shardscope"), *map(str, arguments)],
                          capture_output=True, text=True, check=False, preexec_fn=children.bound(signal.SIGTERM))
    if done.returncode != 0:
        raise launch.PeerError(f"{arguments[0]} ended with {done.returncode}: {done.stdout[-300:]}{done.stderr[-900:]}")
    return done.stdout


def run(options, folder, stage, overlap, gbps):
    folder = launch.fresh(folder)
    described(options, folder, stage, overlap, gbps)
    recording = folder / "run.zscope"
    shardscope(options, "run", "--no-view", "--ranks", 2, "--config", folder / "config.json", "--model",
               folder / "model.json", "--data", "golden:gpt", "--steps", options.steps, "--record", recording)
    return json.loads(shardscope(options, "summary", recording, "--json"))


def critical_path_gain(options, folder):
    """Per cent of a step that overlap saves on the longest path, where each part takes what the recording says."""
    outcome = json.loads(shardscope(options, "what-if", folder / "run.zscope", "--model", folder / "model.json", "--set",
                                    "zero_optimization.overlap_comm=true", "--json"))
    return -outcome["predicted_change_pct"]


def milliseconds(summary):
    """(total, computation, communication, rest) of the slower rank."""
    rank = max(summary["ranks"], key=lambda r: r["time_ms"]["total"])
    time = rank["time_ms"]
    hidden = min((rank["overlap_pct"] or 0.0) / 100, 0.999)
    communication = time["exposed_comm"] / (1 - hidden)
    return time["total"], time["compute"], communication, time["exposed_copy"] + time["idle"]


def alternate(options, name, variants):
    """Medians of milliseconds() by variant; (stage, overlap, gbps) in turns."""
    seen = {variant: [] for variant in variants}
    for turn in range(options.repeat):
        for variant in variants:
            folder = pathlib.Path(options.scratch) / f"{name}-{variant[0]}-{variant[1]}-{turn}"
            seen[variant].append(milliseconds(run(options, folder, *variant)))
    return {variant: [statistics.median(column) / options.steps for column in zip(*rows)]
            for variant, rows in seen.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gbps", type=float, default=10)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--stages", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--micro-batch", type=int, default=1)
    parser.add_argument("--build", default=launch.DEFAULT_BUILD)
    parser.add_argument("--scratch", default=launch.ROOT / "build" / "overlap")
    options = parser.parse_args()
    print(f"emulated link of {options.gbps} Gbit/s; milliseconds per step, medians of {options.repeat} runs")
    print("| stage | off | computation | communication | rest | on | bound | critical path | gain seen |")
    print("|---|---|---|---|---|---|---|---|---|")
    for stage in options.stages:
        off, on = (stage, False, options.gbps), (stage, True, options.gbps)
        times = alternate(options, "link", [off, on])
        total, compute, communication, rest = times[off]
        bound = max(compute, communication) + rest
        path = statistics.median(
            critical_path_gain(options, pathlib.Path(options.scratch) / f"link-{stage}-False-{turn}")
            for turn in range(options.repeat))
        print(f"| {stage} | {total:.1f} | {compute:.1f} | {communication:.1f} | {rest:.1f} | {times[on][0]:.1f} | "
              f"{100 * (1 - bound / total):.0f} % | {path:.0f} % | {100 * (1 - times[on][0] / total):.0f} % |", flush=True)
    times = alternate(options, "memory", [(0, True, 0), (3, True, 0)])
    plain, partitioned = times[0, True, 0][0], times[3, True, 0][0]
    print(f"stage 3 without a link: {partitioned:.1f} ms per step, stage 0: {plain:.1f} ms "
          f"({100 * (partitioned / plain - 1):+.1f} %)")


if __name__ == "__main__":
    main()
