#!/usr/bin/env python3
"""Follows every advice of findings over random runs on a virtual clock, which changes make a step shorter and which longer.

usage: tests/bench/followed_advice.py [--build FOLDER] [--runs 45] [--seed 4] [--model gpt2] [--worst 0.01]

Prints a row for each advice and their sums. Ends with 1 where a step got longer by more than --worst. `ctest -R cli_findings`
has the same of fewer runs of a smaller model.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
RATES = [2, 10, 50, 200, 370]
LATENCIES = [2, 20, 200, 1000]


def random_run(dice):
    """A configuration, a link and a number of ranks."""
    link = {"gb_per_s": dice.choice(RATES), "latency_us": dice.choice(LATENCIES)}
    stage = dice.choice([1, 2, 3, 3, 3])
    zero = {"stage": stage, "overlap_comm": dice.random() < 0.8,
            "reduce_bucket_size": dice.choice([200_000, 5_000_000, 50_000_000, 500_000_000])}
    if stage == 3:
        zero.update({"stage3_prefetch_bucket_size": dice.choice([0, 1, 500_000, 5_000_000, 50_000_000]),
                     "stage3_param_persistence_threshold": dice.choice([0, 100_000]),
                     "stage3_max_live_parameters": dice.choice([1_000_000, 30_000_000, 1_000_000_000]),
                     "stage3_max_reuse_distance": dice.choice([0, 1_000_000_000])})
    config = {"train_micro_batch_size_per_gpu": dice.choice([1, 4]), "gradient_accumulation_steps": dice.choice([1, 1, 4]),
              "bf16": {"enabled": dice.random() < 0.6}, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
              "zero_optimization": zero}
    return config, link, dice.choice([2, 4, 8])


class Player:
    def __init__(self, build, model, folder):
        self.program, self.model, self.folder = pathlib.Path(build) / "bin/shardscope", model, pathlib.Path(folder)
        self.hardware = {**json.loads((ROOT / "assets/hardware/h100.json").read_text()), "processors": 0, "matrix_half_depth": 0,
                         "overlap_slowdown": 0}

    def shardscope(self, *arguments):
        done = subprocess.run([self.program, *map(str, arguments)], text=True, capture_output=True, check=False,
                              env={**os.environ, "SHARDSCOPE_ROOT": str(ROOT)})
        if done.returncode != 0:
            raise RuntimeError(f"{arguments}: {done.stderr}")
        return done.stdout

    def play(self, run, sets, name):
        """The recording of a run with these changes, and its step."""
        config, link, ranks = run
        (self.folder / "config.json").write_text(json.dumps(config))
        (self.folder / "hardware.json").write_text(json.dumps({**self.hardware, "inside": link}))
        recording = self.folder / f"{name}.zscope"
        self.shardscope("simulate", "--model", self.model, "--ranks", ranks, "--steps", 4, "--config", self.folder / "config.json",
                        "--hardware", self.folder / "hardware.json", "--no-memory-limit", "--record", recording,
                        *[part for one in sets for part in ("--set", one)])
        return recording, json.loads(self.shardscope("summary", recording, "--json"))["step_ms"]["median"]

    def followed(self, run):
        """Of each advice: its finding, the changes, the step before and after, what was predicted to be gained."""
        recording, before = self.play(run, [], "run")
        rows = []
        for finding in json.loads(self.shardscope("findings", recording, "--json")):
            if not finding["changes"] or finding["gain_ms"] is None:
                continue
            sets = [f"{change['key']}={change['value']}" for change in finding["changes"]]
            rows.append((finding["id"], sets, before, self.play(run, sets, "followed")[1], finding["gain_ms"]))
        return rows, before


def verdict(before, after, gain):
    """Longer, within a fifth of the prediction, less or more than it."""
    if after > before * 1.002:
        return "worse"
    if abs(before - after - gain) <= 0.2 * gain:
        return "as predicted"
    return "less" if before - after < gain else "more"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build/release")
    parser.add_argument("--runs", type=int, default=45)
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--model", default="gpt2")
    parser.add_argument("--worst", type=float, default=0.01)
    options = parser.parse_args()
    dice, counts, longer = random.Random(options.seed), {}, []
    with tempfile.TemporaryDirectory() as folder:
        player = Player(options.build, options.model, folder)
        print("| run | finding | change | step before | after | predicted gain | |\n|---|---|---|---|---|---|---|")
        for index in range(options.runs):
            run = random_run(dice)
            for finding, sets, before, after, gain in player.followed(run)[0]:
                outcome = verdict(before, after, gain)
                counts[outcome] = counts.get(outcome, 0) + 1
                text = " ".join(one.removeprefix("zero_optimization.") for one in sets)
                print(f"| {index} | {finding} | `{text}` | {before:.1f} ms | {after:.1f} ms | {gain:.1f} ms | {outcome} |", flush=True)
                if after > before * (1 + options.worst):
                    longer.append(f"run {index}: {finding}: {before:.1f} -> {after:.1f} ms by {sets}; {run}")
    print(f"\n{options.runs} runs, {sum(counts.values())} changes followed: "
          + ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))
    sys.exit("\n".join(longer))


if __name__ == "__main__":
    main()
