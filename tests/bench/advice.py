#!/usr/bin/env python3
"""Follows the advice of findings: each configuration that provokes one is trained on CPUs over an emulated link, then trained
again with the changes that the finding names, in turns. No median step may get longer than the noise of the machine.

usage: tests/bench/advice.py [--build FOLDER] [--repeat 2] [--steps 12] [--tolerance 0.03] [CASE...]

Prints a table row for each case: as docs/findings/advice.md has them.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = {  # finding that must be there: (Gbit/s, zero_optimization, more of the configuration)
    "overlap_off": (1, {"stage": 3, "overlap_comm": False, "reduce_bucket_size": 200_000,
                        "stage3_prefetch_bucket_size": 200_000}, {}),
    "large_bucket": (1, {"stage": 2, "overlap_comm": True, "reduce_bucket_size": 1_000_000_000}, {}),
    "large_prefetch": (1, {"stage": 3, "overlap_comm": True, "reduce_bucket_size": 200_000,
                           "stage3_prefetch_bucket_size": 50_000_000, "stage3_param_persistence_threshold": 0}, {}),
    "accumulated_reductions": (0.3, {"stage": 2, "overlap_comm": True, "reduce_bucket_size": 200_000},
                               {"gradient_accumulation_steps": 4}),
    "link_bound": (0.2, {"stage": 3, "overlap_comm": True, "reduce_bucket_size": 200_000,
                         "stage3_prefetch_bucket_size": 200_000, "stage3_param_persistence_threshold": 0}, {}),
}


def shardscope(build, *arguments):
    done = subprocess.run([pathlib.Path(build) / "bin/shardscope", *map(str, arguments)], text=True, capture_output=True, check=False,
                          env={**os.environ, "SHARDSCOPE_ROOT": str(ROOT)})
    if done.returncode != 0:
        sys.exit(f"{arguments}: {done.stderr}")
    return done.stdout


def train(options, folder, case, sets):
    gbps, zero, root = CASES[case]
    config, recording = pathlib.Path(folder) / "config.json", pathlib.Path(folder) / "run.zscope"
    config.write_text(json.dumps({"train_micro_batch_size_per_gpu": 4, "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}},
                                  "zero_optimization": zero, "shardscope": {"emulated_link": {"gbps": gbps, "latency_us": 20}},
                                  **root}))
    shardscope(options.build, "run", "--no-view", "--config", config, "--ranks", 2, "--model", "gpt-mini", "--steps", options.steps,
               "--record", recording, "--overwrite", *[part for one in sets for part in ("--set", one)])
    return (json.loads(shardscope(options.build, "summary", recording, "--json"))["step_ms"]["median"],
            json.loads(shardscope(options.build, "findings", recording, "--json")))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build/release")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--tolerance", type=float, default=0.03)
    parser.add_argument("case", nargs="*", default=list(CASES))
    options = parser.parse_args()
    wrong = []
    print("| finding | setting | step before | step after | change | predicted gain |\n|---|---|---|---|---|---|")
    for case in options.case:
        before, after, sets, bound = [], [], None, None
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(options.repeat):
                step, findings = train(options, folder, case, [])
                before.append(step)
                found = next((one for one in findings if one["id"] == case), None)
                if found is None:
                    wrong.append(f"{case}: not found, but {[one['id'] for one in findings]}")
                    break
                sets = [f"{change['key']}={change['value']}" for change in found["changes"]]
                bound = found["gain_ms"]
                after.append(train(options, folder, case, sets)[0])
        if not after:
            continue
        a, b = statistics.median(before), statistics.median(after)
        print(f"| {case} | `{' '.join(sets)}` | {a:.1f} ms | {b:.1f} ms | {100 * (b / a - 1):+.1f} % | "
              f"{'' if bound is None else f'{bound:.1f} ms'} |", flush=True)
        if b > a * (1 + options.tolerance):
            wrong.append(f"{case}: {a:.1f} -> {b:.1f} ms by following {sets}")
    sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
