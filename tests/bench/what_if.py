#!/usr/bin/env python3
"""What `shardscope what-if` predicts of a changed run, and what the changed run takes: step time and peak memory.

usage: tests/bench/what_if.py [--repeat 3] [--steps 8] [--only WORD] [--build FOLDER] [--scratch FOLDER] [--again]

Recorded runs of the small GPT of the throughput comparison are the bases of PAIRS: each names one change. Base and
changed runs take turns: a base, the runs changed from it, the next base. Every repeat predicts from its own base. Of
base, changed and predicted step times the medians over the repeats are compared. The device's peak is the largest over
the ranks; where something is offloaded, so is that of pinned memory.

The measured runs want a machine with nothing else to do (9 minutes on two cores); predictions do not, and come after
them. --again predicts anew from the recordings that are there; of changed data types it keeps the rates that the trial
of the first time found, because a trial trains.
"""
import argparse
import dataclasses
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
GBPS = 10
CHECKPOINTING = "shardscope.activation_checkpointing=true"
OFFLOAD = 'zero_optimization.offload_optimizer={"device":"cpu"}'
# What is within these counts as predicted.
STEP_PCT, MEMORY_PCT = 10, 2


def zero(stage, overlap, **more):
    return {"stage": stage, "overlap_comm": overlap, "reduce_bucket_size": 1_000_000,
            "stage3_prefetch_bucket_size": 2_000_000, **more}


# By name: ranks, whether a link is emulated, zero_optimization.
BASES = {
    "stage 1": (2, True, zero(1, False)),
    "stage 2": (2, True, zero(2, True)),
    "stage 3": (2, True, zero(3, True)),
    "offloaded": (2, True, zero(2, True, offload_optimizer={"device": "cpu"})),
    "one rank": (1, True, zero(1, False)),
    "no link": (2, False, zero(0, False)),
}


@dataclasses.dataclass(frozen=True)
class Pair:
    base: str
    name: str
    sets: tuple = ()
    ranks: int = 0  # 0: the base's
    gbps: float = 0  # 0: the base's
    trial: bool = False


def of(key, *values):
    return tuple((f"{key} {value}", (f"zero_optimization.{key}={value}",)) for value in values)


def stages(overlap, *values):
    """overlap_comm stays: its default follows the stage, and a recording does not say whether it was set."""
    return tuple((f"stage {value}", (f"zero_optimization.stage={value}", f"zero_optimization.overlap_comm={overlap}"))
                 for value in values)


def bf16(base):
    return Pair(base, "bf16", ("bf16.enabled=true",), trial=True)


PAIRS = [
    *(Pair("stage 1", name, sets) for name, sets in (
        *of("overlap_comm", "true"), *stages("false", 0, 2, 3), *of("reduce_bucket_size", 250_000, 4_000_000),
        ("accumulation 4", ("gradient_accumulation_steps=4",)), ("checkpointing", (CHECKPOINTING,)))),
    Pair("stage 1", "link 2.5 Gbit/s", gbps=2.5), Pair("stage 1", "1 rank", ranks=1), bf16("stage 1"),
    *(Pair("stage 2", name, sets) for name, sets in (
        *of("overlap_comm", "false"), *stages("true", 1, 3), *of("reduce_bucket_size", 250_000, 10_000_000),
        ("accumulation 2", ("gradient_accumulation_steps=2",)), ("micro-batch 2", ("train_micro_batch_size_per_gpu=2",)),
        ("checkpointing", (CHECKPOINTING,)), ("offload_optimizer cpu", (OFFLOAD,)))),
    Pair("stage 2", "link 40 Gbit/s", gbps=40), bf16("stage 2"),
    *(Pair("stage 3", name, sets) for name, sets in (
        *of("overlap_comm", "false"), *stages("true", 2), *of("stage3_prefetch_bucket_size", 0, 500_000),
        ("stage3_max_live_parameters 1500000", ("zero_optimization.stage3_max_live_parameters=1500000",
                                                "zero_optimization.stage3_max_reuse_distance=0")),
        *of("stage3_param_persistence_threshold", 0), *of("reduce_bucket_size", 4_000_000),
        ("accumulation 2", ("gradient_accumulation_steps=2",)), ("checkpointing", (CHECKPOINTING,)))),
    Pair("stage 3", "link 2.5 Gbit/s", gbps=2.5), bf16("stage 3"),
    *(Pair("offloaded", name, sets) for name, sets in (
        *of("overlap_comm", "false"), *stages("true", 3), ("accumulation 2", ("gradient_accumulation_steps=2",)),
        ("micro-batch 2", ("train_micro_batch_size_per_gpu=2",)),
        ("no offloading", ('zero_optimization.offload_optimizer={"device":"none"}',)))),
    Pair("one rank", "accumulation 2", ("gradient_accumulation_steps=2",)),
    Pair("one rank", "2 ranks", ranks=2, gbps=GBPS),
    *(Pair("no link", name, sets) for name, sets in stages("false", 1, 2, 3)),
]


def shardscope(options, *arguments):
    done = subprocess.run([str(pathlib.Path(options.build) / "bin" / "shardscope"), *map(str, arguments)],
                          capture_output=True, text=True, check=False, preexec_fn=children.bound(signal.SIGTERM))
    if done.returncode != 0:
        raise launch.PeerError(f"{arguments} ended with {done.returncode}: {done.stdout[-300:]}{done.stderr[-900:]}")
    return done.stdout


def train(options, folder, base, pair=None):
    """Records the base, or the run that the pair makes of it, as folder/run.zscope."""
    ranks, link, zero_section = BASES[base]
    config = {"train_micro_batch_size_per_gpu": 1, "zero_optimization": zero_section,
              "optimizer": {"type": "AdamW", "params": {"lr": 3e-4}}}
    gbps = pair.gbps if pair and pair.gbps else GBPS
    if link:
        config["shardscope"] = {"emulated_link": {"gbps": gbps, "latency_us": LATENCY_US}}
    folder = launch.fresh(folder)
    (folder / "config.json").write_text(json.dumps(config))
    shardscope(options, "run", "--no-view", "--ranks", pair.ranks if pair and pair.ranks else ranks, "--config",
               folder / "config.json", "--model", options.model, "--data", "golden:gpt", "--steps", options.steps,
               "--record", folder / "run.zscope", *(part for one in (pair.sets if pair else ()) for part in ("--set", one)))


def measured(options, folder):
    """(milliseconds of a step, {pool: peak bytes})"""
    summary = json.loads(shardscope(options, "summary", folder / "run.zscope", "--json"))
    pools = {}
    for rank in summary["ranks"]:
        for pool, sample in rank["memory"].items():
            pools[pool] = max(pools.get(pool, 0), sample["peak_bytes"])
    return summary["step_ms"]["median"], pools


def what_if(options, scratch, pair, turn, *more):
    sets = (part for one in pair.sets for part in ("--set", one))
    return json.loads(shardscope(options, "what-if", scratch / f"{turn}-{pair.base}" / "run.zscope", "--model",
                                 options.model, "--json", *sets, *more))


def host_link(options, scratch, turn):
    """The link to the host as a run that offloads measured it, for changes of runs that had none to measure."""
    outcome = what_if(options, scratch, Pair("offloaded", ""), turn)["fitted"]["host"]
    return f"{outcome['gb_per_s']}:{outcome['latency_us']}"


def trial(options, scratch, pair):
    """How many times as fast products are in the pair's data type. Trains; kept for --again."""
    kept = scratch / f"trial-{pair.base}.json"
    if not kept.exists():
        kept.write_text(json.dumps(what_if(options, scratch, pair, 0, "--trial")))
    outcome = json.loads(kept.read_text())
    return outcome["changed"]["matrix_tflops"] / outcome["fitted"]["matrix_tflops"]


def predict(options, scratch, pair, turn):
    more = []
    if pair.ranks:
        more += ["--ranks", pair.ranks]
    if pair.gbps:
        more += ["--link", f"{pair.gbps / 8}:{LATENCY_US}"]
    if OFFLOAD in pair.sets:
        more += ["--host-link", host_link(options, scratch, turn)]
    if pair.trial:
        fitted = what_if(options, scratch, dataclasses.replace(pair, sets=()), turn)["fitted"]["matrix_tflops"]
        more += ["--matrix-tflops", fitted * trial(options, scratch, pair)]
    outcome = what_if(options, scratch, pair, turn, *more)
    return outcome["predicted_step_ms"], outcome["changed"]["peak_memory_bytes"]


def quantile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(part * len(values)))]


def pct(a, b):
    return 100 * (a / b - 1)


def table(options, scratch, pairs):
    print("| base | change | base, ms | changed, ms | predicted, ms | error | peak MiB | predicted | error | pinned error |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    step_errors, memory_errors = [], []
    for pair in pairs:
        turns = []
        for turn in range(options.repeat):
            base, _ = measured(options, scratch / f"{turn}-{pair.base}")
            changed, pools = measured(options, scratch / f"{turn}-{pair.base}-{pair.name}")
            predicted, predicted_pools = predict(options, scratch, pair, turn)
            turns.append((base, changed, predicted, pools["device"], predicted_pools["device"],
                          pools.get("pinned", 0), predicted_pools.get("pinned", 0)))
        base, changed, predicted, peak, predicted_peak, pinned, predicted_pinned = (
            statistics.median(column) for column in zip(*turns))
        step_error, memory_error = pct(predicted, changed), pct(predicted_peak, peak)
        step_errors.append(abs(step_error))
        memory_errors.append(abs(memory_error))
        pinned_error = f"{pct(predicted_pinned, pinned):+.1f} %" if pinned else "-"
        print(f"| {pair.base} | {pair.name} | {base:.1f} | {changed:.1f} | {predicted:.1f} | {step_error:+.1f} % | "
              f"{peak / 2**20:.1f} | {predicted_peak / 2**20:.1f} | {memory_error:+.2f} % | {pinned_error} |", flush=True)
    print(f"\n{len(pairs)} pairs, medians of {options.repeat}: step time of {sum(e <= STEP_PCT for e in step_errors)} within "
          f"{STEP_PCT} % (median {statistics.median(step_errors):.1f} %, 90th percentile {quantile(step_errors, 0.9):.1f} %, "
          f"largest {max(step_errors):.1f} %); peak memory of {sum(e <= MEMORY_PCT for e in memory_errors)} within "
          f"{MEMORY_PCT} % (largest {max(memory_errors):.2f} %)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--only", default="", help="pairs whose base or change has this word")
    parser.add_argument("--build", default=launch.DEFAULT_BUILD)
    parser.add_argument("--scratch", default=launch.ROOT / "build" / "what-if")
    parser.add_argument("--again", action="store_true", help="no run is made; predictions are")
    parser.add_argument("--measure", action="store_true", help="runs are made; predictions are not")
    options = parser.parse_args()
    pairs = [pair for pair in PAIRS if options.only in f"{pair.base}: {pair.name}"]
    if not pairs:
        sys.exit(f"--only {options.only}: no pair has it; they are {', '.join(f'{p.base}: {p.name}' for p in PAIRS)}")
    scratch = pathlib.Path(options.scratch)
    options.model = scratch / "model.json"
    if not options.again:
        launch.fresh(scratch)
        options.model.write_text(peer_models.tree("gpt", peer_models.SMALL_GPT))
        bases = list(dict.fromkeys([pair.base for pair in pairs] + ["offloaded"]))
        for turn in range(options.repeat):
            for base in bases:
                train(options, scratch / f"{turn}-{base}", base)
                for pair in (pair for pair in pairs if pair.base == base):
                    train(options, scratch / f"{turn}-{base}-{pair.name}", base, pair)
        for pair in pairs:
            if pair.trial:  # while nothing else runs
                trial(options, scratch, pair)
    if not options.measure:
        table(options, scratch, pairs)


if __name__ == "__main__":
    main()
