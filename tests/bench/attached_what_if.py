#!/usr/bin/env python3
"""What `shardscope what-if` predicts of attached runs of DeepSpeed, FSDP2 and DDP, and what the changed runs take: step time and model states.

usage: tests/bench/attached_what_if.py [--repeat 3] [--steps 24] [--only WORD] [--scratch FOLDER] [--again]

Of each pair three runs (attached_training.py or attached_torch.py, two CPU ranks, gloo) are made one after the other: the base, the run changed
from it, the base again. Where the two bases differ by more than DISTURBED, other work was on the machine: the three are made
once more, at most --tries times, and the pair is left out of that repeat where none agree. Every repeat predicts from the first of
its bases; medians over the repeats are compared. Model states are the largest of the ranks' peaks of
parameters, gradients, master weights and moments. The measured runs want a machine with nothing else to do: 20 minutes on two
cores for three repeats. --again predicts anew from the recordings that are there. Environment and package are those of the attach tests.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "attach"))
import runs  # noqa: E402

ZERO, FULLY_SHARD, DDP = "zero_optimization.", "fully_shard.", "DistributedDataParallel."
DISTURBED = 0.15
BASES = {"stage 3": {"stage": 3, "stage3_prefetch_bucket_size": 300_000, "stage3_param_persistence_threshold": 1_000},
         "stage 2": {"stage": 2}, "FSDP2": {"framework": "FSDP2"}, "FSDP2 accumulating": {"framework": "FSDP2", "gradient_accumulation_steps": 2},
         "DDP": {"framework": "DDP"}, "DDP accumulating": {"framework": "DDP", "gradient_accumulation_steps": 2},
         "DDP reducing in each": {"framework": "DDP", "gradient_accumulation_steps": 2, "reduce_in_last_micro_step_only": False}}
# By base: what is changed, as KEY=VALUE of the configuration.
PAIRS = {
    "stage 3": (
        (ZERO + "reduce_bucket_size=100000",), (ZERO + "reduce_bucket_size=2000000",),
        (ZERO + "stage3_prefetch_bucket_size=0",), (ZERO + "stage3_prefetch_bucket_size=1000000",),
        (ZERO + "stage3_max_live_parameters=400000",), (ZERO + "stage3_max_reuse_distance=0",),
        (ZERO + "overlap_comm=false",), ("gradient_accumulation_steps=2",), (ZERO + "stage=2",)),
    "stage 2": (
        (ZERO + "reduce_bucket_size=100000",), (ZERO + "reduce_bucket_size=2000000",), (ZERO + "overlap_comm=true",),
        ("gradient_accumulation_steps=2",), (ZERO + "stage=1",), (ZERO + "stage=3", ZERO + "stage3_prefetch_bucket_size=300000",
                                                                  ZERO + "stage3_param_persistence_threshold=1000")),
    "FSDP2": (
        (FULLY_SHARD + "reshard_after_forward=false",), (FULLY_SHARD + "root_reshard_after_forward=true",),
        (FULLY_SHARD + "groups_to_forward_prefetch=1",), (FULLY_SHARD + "groups_to_forward_prefetch=3",),
        (FULLY_SHARD + "groups_to_backward_prefetch=3",), ("gradient_accumulation_steps=2",)),
    "FSDP2 accumulating": (
        (FULLY_SHARD + "reduce_in_last_micro_step_only=true",), (FULLY_SHARD + "reshard_after_forward=false",),
        ("gradient_accumulation_steps=4",)),
    "DDP": ((DDP + "bucket_cap_mb=0.5",), (DDP + "bucket_cap_mb=1",), (DDP + "bucket_cap_mb=2",), (DDP + "bucket_cap_mb=100",)),
    # With one micro-step there is none without a reduction to learn from.
    "DDP accumulating": (("gradient_accumulation_steps=4",), (DDP + "bucket_cap_mb=100",)),
    "DDP reducing in each": ((DDP + "reduce_in_last_micro_step_only=true",),),
}


def configuration(base, sets=()):
    """DeepSpeed's configuration, or the settings of attached_torch.py."""
    if "framework" in BASES[base]:
        return {**BASES[base], **{key.rpartition(".")[2]: json.loads(value) for key, value in (one.split("=") for one in sets)}}
    config = {"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 1, "gradient_clipping": 1.0,
              "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
              "zero_optimization": {"reduce_bucket_size": 500_000, **BASES[base]}}
    for one in sets:
        key, value = one.split("=")
        at = config["zero_optimization"] if key.startswith(ZERO) else config
        at[key.removeprefix(ZERO)] = json.loads(value)
    return config


def train(options, recording, base, sets=()):
    file = recording.with_suffix(".json")
    file.write_text(json.dumps(configuration(base, sets)), encoding="utf-8")
    script = "attached_torch.py" if "framework" in BASES[base] else "attached_training.py"
    runs.finish(runs.start([*runs.attach(recording, "--detail", "params"), *runs.torchrun(HERE / script, file, options.steps)]))


def measured(recording):
    """(milliseconds of a step, bytes of model states)"""
    figures = runs.figures(recording)
    return figures["step_ms"]["median"], figures["memory_model"]["measured_bytes_per_rank"]


def predicted(recording, sets):
    done = subprocess.run([runs.SHARDSCOPE, "what-if", recording, "--json", *(part for one in sets for part in ("--set", one))],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"{recording.name} {' '.join(sets)}: {done.stderr.strip()}", file=sys.stderr)
        return None
    return json.loads(done.stdout)


def name_of(sets):
    """Of the first change: the others only complete it."""
    key, value = sets[0].split("=")
    return f"{key.rpartition('.')[2]} {value}"


def recording_of(options, turn, base, sets):
    return options.scratch / f"{turn}-{base}-{name_of(sets)}.zscope".replace(" ", "_")


def base_of(options, turn, base, sets):
    return recording_of(options, turn, base, sets).with_suffix(".base.zscope")


def make_pair(options, turn, base, sets):
    changed, before = recording_of(options, turn, base, sets), base_of(options, turn, base, sets)
    after = before.with_suffix(".after.zscope")
    for _ in range(options.tries):
        train(options, before, base)
        train(options, changed, base, sets)
        train(options, after, base)
        first, second = measured(before)[0], measured(after)[0]
        if abs(first / second - 1) <= DISTURBED:
            return
        print(f"{before.name}: {first:.0f} and {second:.0f} ms: disturbed", file=sys.stderr)
    before.unlink()


def count(answer, metric, side):
    """Of a step; a dash where there is no answer."""
    return next(f"{row[side]:.0f}" for row in answer["comparison"]["metrics"] if row["metric"] == metric) if answer else "-"


def percent(value, wanted):
    return f"{100 * (value / wanted - 1):+.1f} %"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--only", default="", help="pairs whose base or change has this word")
    parser.add_argument("--scratch", type=pathlib.Path, default=pathlib.Path("/tmp/shardscope-attached-what-if"))
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    options.scratch.mkdir(parents=True, exist_ok=True)
    pairs = [(base, sets) for base, changes in PAIRS.items() for sets in changes if options.only in f"{base} {' '.join(sets)}"]
    if not options.again:
        runs.build_package()
        for turn in range(options.repeat):
            for base, sets in pairs:
                make_pair(options, turn, base, sets)
    print("| base | change | gathers | predicted | buckets | predicted | states, MiB | predicted | error | base, ms | changed, ms | predicted, ms "
          "| error | model's error |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for base, sets in pairs:
        rows = []
        for turn in range(options.repeat):
            before = base_of(options, turn, base, sets)
            outcome = before.exists() and recording_of(options, turn, base, sets).exists() and predicted(before, sets)
            if outcome:
                changed = recording_of(options, turn, base, sets)
                # What the changed run decided: its own replay is refused where that does not decide the same.
                made = predicted(changed, ())
                rows.append((measured(before)[0], *measured(changed), outcome["predicted_step_ms"], outcome["model_error_pct"],
                             outcome["predicted_model_state_bytes"]))
                counts = [count(made, "gathers", "a"), count(outcome, "gathers", "b"), count(made, "reduced buckets", "a"),
                          count(outcome, "reduced buckets", "b")]
        if not rows:
            print(f"| {base} | {name_of(sets)} |" + " - |" * 12)
            continue
        # Without times where a replay of the recorded settings missed the recorded step.
        timed = [row for row in rows if row[4] is not None]
        ms, after, states = (statistics.median(row[i] for row in rows) for i in (0, 1, 2))
        bytes_ = statistics.median(row[5] for row in rows)
        step, error = (statistics.median(row[i] for row in timed) if timed else None for i in (3, 4))
        times = f"{step:.0f} | {percent(step, after)} | {error:+.1f} %" if timed else "- | - | -"
        mib = 1 << 20
        print(f"| {base} | {name_of(sets)} | {' | '.join(counts)} | {states / mib:.2f} | {bytes_ / mib:.2f} | {percent(bytes_, states)} "
              f"| {ms:.0f} | {after:.0f} | {times} |", flush=True)


if __name__ == "__main__":
    main()
