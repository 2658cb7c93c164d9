#!/usr/bin/env python3
"""Holds `shardscope simulate` against published throughput of FSDP and ZeRO-3 runs on A100 and H100 (published_runs.json).

The efficiencies of the hardware files were fitted to the runs of FSDP with an even number in that list; the others judge
them. Runs of ZeRO-3 stand in a table of their own, with the time of a micro-step, how fast a rank's 3S elements travelled if that
was all of it, and simulated with one link of a node too.

Usage: published_runs.py [BIN_FOLDER] [--rows | --check | --fit HARDWARE KEY [KEY ...]]

--rows   a line for every run, as in docs/published-runs.md
--fit    fits keys of a hardware file (launch_us, between.ring_step_us, ...) to the runs with an even number, one after the
         other, from the file's values; prints for each value the mean error and how far the others are from the best
--check  six of the runs that judge, two of each GPU: each is to be within 15 % (a test; the whole table takes minutes)
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


# Numbers of runs in the list, odd ones: small and long contexts, one on 256 GPUs, with activations recomputed and without.
CHECKED = (1, 33, 77, 101, 155, 187)
WITHIN_PERCENT = 15


def configuration(run):
    return {
        "train_micro_batch_size_per_gpu": run["micro_batch"],
        "gradient_accumulation_steps": run["accumulation"],
        run.get("type", "bf16"): {"enabled": True},
        "communication_data_type": run["gradients_reduced_in"],
        "zero_optimization": {"stage": run["stage"], "overlap_comm": True},
        # FSDP's runs recompute without reentrance (llm-foundry's activation_checkpointing_reentrant: false), DeepSpeed's with.
        "shardscope": {"activation_checkpointing": run["checkpointing"], "checkpoint_early_stop": run.get("type", "bf16") == "bf16"},
    }


def simulated_tokens(program, run, shape):
    """Tokens per second and rank of the second simulated step."""
    layers, width, heads = shape
    with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
        json.dump(configuration(run), config)
        config.flush()
        result = subprocess.run(
            [program, "simulate", "--layers", str(layers), "--width", str(width), "--heads", str(heads), "--context",
             str(run["context"]), "--vocab", str(run.get("vocabulary", 50368)), "--ranks", str(run["ranks"]), "--hardware", run["hardware"], "--config",
             config.name, "--steps", "2", "--detail", "steps", "--no-memory-limit", "--json"],
            capture_output=True, text=True, env={**os.environ, "SHARDSCOPE_ROOT": str(ROOT)}, check=False)
    if result.returncode:
        sys.exit(f"{run}: {result.stderr}")
    step_ms = json.loads(result.stdout)["step_ms"][-1]
    return run["micro_batch"] * run["accumulation"] * run["context"] / step_ms * 1e3


def zero3_runs(table):
    """As the runs of FSDP, and the FLOP of a token by the paper's formula."""
    for row in table["runs"]:
        run = dict(zip(table["columns"], row))
        layers, width, _ = table["models"][run["model"]]
        context, words = table["context"], table["vocabulary"]
        flop = 96 * layers * width**2 * (1 + context / (6 * width) + words / (16 * layers * width))
        yield {**run, "hardware": "a100", "context": context, "vocabulary": words, "accumulation": 1, "stage": 3, "checkpointing": True,
               "gradients_reduced_in": "fp16", "type": "fp16", "flop_per_token": flop,
               "tokens_per_s_per_gpu": run["tflops_per_gpu"] * 1e12 / flop}


def print_zero3(program, table):
    """Returns the errors with the unchanged hardware file, in percent."""
    errors = []
    hardware = json.loads((ROOT / "assets/hardware/a100.json").read_text())
    hardware["between"]["gb_per_s"] = table["one_link_gb_per_s"]
    print("\n| model | ranks | micro-batch | published TFLOP/s | micro-step | 3S in that time | simulated, eight links a node | one link |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.NamedTemporaryFile("w", suffix=".json") as one_link:
        json.dump({**hardware, "name": "one link of a node"}, one_link)
        one_link.flush()
        for run in zero3_runs(table):
            layers, width, heads = table["models"][run["model"]]
            published = run["tokens_per_s_per_gpu"]
            micro_s = run["micro_batch"] * run["context"] / published
            moved = 3 * 2 * 12 * layers * width**2  # bytes in 16 bits
            cells = []
            for machine in ("a100", one_link.name):
                simulated = simulated_tokens(program, {**run, "hardware": machine}, (layers, width, heads))
                if machine == "a100":
                    errors.append(100 * (simulated / published - 1))
                cells.append(f"{simulated * run['flop_per_token'] * 1e-12:.0f} ({100 * (simulated / published - 1):+.0f} %)")
            print(f"| {run['model']} | {run['ranks']} | {run['micro_batch']} | {run['tflops_per_gpu']} | {micro_s:.0f} s | "
                  f"{moved / micro_s * 1e-9:.0f} GB/s | {' | '.join(cells)} |")
    return errors


def check(program, runs, models):
    """The exit code."""
    off = 0
    for run in runs:
        error = 100 * (simulated_tokens(program, run, models[run["model"]]) / run["tokens_per_s_per_gpu"] - 1)
        off += abs(error) > WITHIN_PERCENT
        print(f"{run['hardware']}, {run['model']}, context {run['context']}, {run['ranks']} ranks: {error:+.1f} %")
    if off:
        print(f"{off} of {len(runs)} are off by more than {WITHIN_PERCENT} %")
    return 1 if off else 0


def with_value(hardware, key, value):
    out = json.loads(json.dumps(hardware))
    *outer, last = key.split(".")
    part = out
    for name in outer:
        part = part[name]
    part[last] = value
    return out


def value_of(hardware, key):
    for name in key.split("."):
        hardware = hardware.get(name, 0)
    return hardware


def fit(program, runs, models, name, keys):
    """Each key in turn: the value at which the mean of the absolute errors is least (errors above 30 % count as 30 %)."""
    mine = [run for run in runs[::2] if run["hardware"] == name]
    hardware = json.loads((ROOT / f"assets/hardware/{name}.json").read_text())

    def mean_error(tried):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as executor:
            json.dump(tried, file)
            file.flush()
            tokens = executor.map(lambda run: simulated_tokens(program, {**run, "hardware": file.name}, models[run["model"]]), mine)
            return statistics.mean(min(30, abs(100 * (found / run["tokens_per_s_per_gpu"] - 1))) for run, found in zip(mine, tokens))

    for key in keys:
        at = value_of(hardware, key)
        known = {at: mean_error(hardware)}
        for factor in (2, 1.25):
            for direction in (factor, 1 / factor):
                value = (min(known, key=known.get) or 1) * direction
                while value not in known:
                    known[value] = mean_error(with_value(hardware, key, value))
                    if known[value] > min(known.values()):
                        break
                    value *= direction
        best = min(known, key=known.get)
        print(f"{name}, {len(mine)} runs, {key}: " + ", ".join(f"{value:.4g}: {known[value]:.2f} %" for value in sorted(known)) +
              f"; least at {best:.4g}", flush=True)
        hardware = with_value(hardware, key, best)
    return 0


def quantile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(part * len(values)))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_folder", nargs="?", default=ROOT / "build/release/bin", type=pathlib.Path)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--rows", action="store_true")
    what.add_argument("--check", action="store_true")
    what.add_argument("--fit", nargs="+", metavar=("HARDWARE", "KEY"))
    options = parser.parse_args()
    table = json.loads((HERE / "published_runs.json").read_text())
    runs = [dict(zip(table["columns"], row)) for row in table["runs"]]
    if options.check:
        return check(options.bin_folder / "shardscope", [runs[number] for number in CHECKED], table["models"])
    if options.fit:
        return fit(options.bin_folder / "shardscope", runs, table["models"], options.fit[0], options.fit[1:])
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as executor:
        tokens = list(executor.map(
            lambda run: simulated_tokens(options.bin_folder / "shardscope", run, table["models"][run["model"]]), runs))
    errors = [100 * (simulated / run["tokens_per_s_per_gpu"] - 1) for run, simulated in zip(runs, tokens)]
    if options.rows:
        print("| run | hardware | model | context | ranks | micro-batch | accumulation | stage | checkpointing | published | simulated | error | |")
        print("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
        for number, (run, simulated, error) in enumerate(zip(runs, tokens, errors)):
            print(f"| {number} | {run['hardware']} | {run['model']} | {run['context']} | {run['ranks']} | {run['micro_batch']} | "
                  f"{run['accumulation']} | {run['stage']} | {'yes' if run['checkpointing'] else 'no'} | "
                  f"{run['tokens_per_s_per_gpu']} | {simulated:.0f} | {error:+.0f} % | {'judged' if number % 2 else 'fitted'} |")
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
    zero3 = print_zero3(options.bin_folder / "shardscope", table["zero3"])
    absolute = [abs(error) for error in [*errors[1::2], *zero3]]
    print(f"\nJudged runs and these: {len(absolute)}, median of absolute errors {statistics.median(absolute):.1f} %, "
          f"90th percentile {quantile(absolute, 0.9):.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
