#!/usr/bin/env python3
"""Holds `shardscope simulate` against published throughput of FSDP runs on A100 and H100 (published_runs.json).

The efficiencies of the hardware files were fitted to the runs with an even number in that list; the others judge them.

Usage: published_runs.py [BIN_FOLDER] [--rows]      --rows: a line for every run
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def configuration(run):
    return {
        "train_micro_batch_size_per_gpu": run["micro_batch"],
        "gradient_accumulation_steps": run["accumulation"],
        "bf16": {"enabled": True},
        "communication_data_type": run["gradients_reduced_in"],
        "zero_optimization": {"stage": run["stage"], "overlap_comm": True},
        "shardscope": {"activation_checkpointing": run["checkpointing"]},
    }


def simulated_tokens(program, run, shape):
    """Tokens per second and rank of the second simulated step."""
    layers, width, heads = shape
    with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
        json.dump(configuration(run), config)
        config.flush()
        result = subprocess.run(
            [program, "simulate", "--layers", str(layers), "--width", str(width), "--heads", str(heads), "--context",
             str(run["context"]), "--vocab", "50368", "--ranks", str(run["ranks"]), "--hardware", run["hardware"], "--config",
             config.name, "--steps", "2", "--detail", "steps", "--no-memory-limit", "--json"],
            capture_output=True, text=True, env={**os.environ, "SHARDSCOPE_ROOT": str(ROOT)}, check=False)
    if result.returncode:
        sys.exit(f"{run}: {result.stderr}")
    step_ms = json.loads(result.stdout)["step_ms"][-1]
    return run["micro_batch"] * run["accumulation"] * run["context"] / step_ms * 1e3


def quantile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(part * len(values)))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_folder", nargs="?", default=ROOT / "build/release/bin", type=pathlib.Path)
    parser.add_argument("--rows", action="store_true")
    options = parser.parse_args()
    table = json.loads((HERE / "published_runs.json").read_text())
    runs = [dict(zip(table["columns"], row)) for row in table["runs"]]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as executor:
        tokens = list(executor.map(
            lambda run: simulated_tokens(options.bin_folder / "shardscope", run, table["models"][run["model"]]), runs))
    errors = [100 * (simulated / run["tokens_per_s_per_gpu"] - 1) for run, simulated in zip(runs, tokens)]
    if options.rows:
        print("| hardware | model | context | ranks | micro-batch | accumulation | stage | checkpointing | published | simulated | error |")
        print("|---|---|---|---|---|---|---|---|---|---|---|")
        for run, simulated, error in zip(runs, tokens, errors):
            print(f"| {run['hardware']} | {run['model']} | {run['context']} | {run['ranks']} | {run['micro_batch']} | "
                  f"{run['accumulation']} | {run['stage']} | {'yes' if run['checkpointing'] else 'no'} | "
                  f"{run['tokens_per_s_per_gpu']} | {simulated:.0f} | {error:+.0f} % |")
        print()
    print("| runs | of | median error | median of absolute errors | 90th percentile of them |")
    print("|---|---|---|---|---|")
    for name, parity in (("fitted", 0), ("judged", 1)):
        for hardware in ("a100-40gb", "a100", "h100", None):
            some = [error for i, (run, error) in enumerate(zip(runs, errors))
                    if i % 2 == parity and hardware in (None, run["hardware"])]
            absolute = [abs(error) for error in some]
            print(f"| {name}, {hardware or 'all'} | {len(some)} | {statistics.median(some):+.1f} % | "
                  f"{statistics.median(absolute):.1f} % | {quantile(absolute, 0.9):.1f} % |")


if __name__ == "__main__":
    main()
