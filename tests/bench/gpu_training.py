#!/usr/bin/env python3
"""Training speed on one GPU: stages and detail levels of zero_train, and PyTorch at its best, on the same GPT in the same
run, in turns.

usage: tests/bench/gpu_training.py [--bin FOLDER] [--models 124m 350m] [--micro-batch N] [--steps N] [--rounds N]
                                   [--limit SECONDS] [--json FILE] [--from FILE]

Each contestant is a process that trains alone on the GPU; contestants take turns, round after round, and a figure is the
median over the steps of all rounds. After --limit seconds no round is begun that would not end before them, going by the
longest so far; the table says how many rounds there were. Without PyTorch the table is made without it and says so; without a GPU nothing is
measured and the exit code is 2. --from makes the table from a file that --json wrote.

MFU = tokens/s x flops/token / peak, flops/token = 6 (P - C T) + 12 L C T: P parameters, C width, T context, L layers
(positions are looked up; attention counted whole, not by its causal half), peak: dense bf16 of the GPU's data sheet.
The vocabulary is 50304, GPT-2's rounded up to a multiple of 64, for every contestant: rows of 50257 16-bit numbers are
not aligned, which costs every library its fastest products.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import children

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SHAPES = {"124m": {"layers": 12, "width": 768, "heads": 12}, "350m": {"layers": 24, "width": 1024, "heads": 16}}
CONTEXT, VOCABULARY = 1024, 50304
PEAK_TFLOPS = {"H200": 989.4, "H100": 989.4, "A100": 312.0, "B200": 2250.0}
# Our contestants: stage and detail level. The first is what the others are compared with.
OURS = [(0, "steps"), (1, "steps"), (2, "steps"), (3, "steps"), (0, "params"), (0, "kernels")]
# The first of them once more with cuDNN's attention instead of our own kernels, where the machine has it.
BY_CUDNN = "stage 0, cuDNN attention"
PEER = "PyTorch"
# What is asked of an H200, each with the models it is asked of.
LEAST_MFU, MFU_MODELS = 45.0, ("124m",)
LEAST_OF_PEER = 1.1
MOST_OF_STAGE_0 = {(1, "steps"): 1.03, (2, "steps"): 1.03, (3, "steps"): 1.03, (0, "params"): 1.005, (0, "kernels"): 1.03}


class Failure(Exception):
    pass


def params_of(shape):
    c = shape["width"]
    return VOCABULARY * c + CONTEXT * c + shape["layers"] * (12 * c * c + 13 * c) + 2 * c


def flops_per_token(shape):
    return 6 * (params_of(shape) - shape["width"] * CONTEXT) + 12 * shape["layers"] * shape["width"] * CONTEXT


def gpu_name():
    if shutil.which("nvidia-smi") is None:
        raise Failure("no GPU here (no nvidia-smi); see docs/gpu-checks.md")
    found = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True)
    names = found.stdout.strip().splitlines()
    if found.returncode != 0 or not names:
        raise Failure("no GPU here (nvidia-smi finds none); see docs/gpu-checks.md")
    return names[0]


def label(stage, detail):
    return f"stage {stage}, detail {detail}"


def run_ours(bin_folder, shape, stage, detail, args, folder, attention="own"):
    tokens = folder / "tokens.bin"
    if not tokens.exists():
        # 16-bit tokens of a fixed sequence; what they are costs nothing.
        count = args.micro_batch * (CONTEXT + 1) * 64
        state, data = 1, bytearray()
        for _ in range(count):
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF
            data += (state >> 8 & 0x7FFF).to_bytes(2, "little")
        tokens.write_bytes(data)
    config = folder / f"stage{stage}.json"
    config.write_text(json.dumps({
        "train_micro_batch_size_per_gpu": args.micro_batch, "gradient_clipping": 1.0, "bf16": {"enabled": True},
        "optimizer": {"type": "AdamW", "params": {"lr": 3e-4, "weight_decay": 0.01}},
        "zero_optimization": {"stage": stage}}))
    recording = folder / "run.zscope"
    recording.unlink(missing_ok=True)
    model = (f"gpt:layers={shape['layers']},width={shape['width']},heads={shape['heads']},context={CONTEXT},"
             f"vocabulary={VOCABULARY}")
    program = bin_folder / "shardscope"
    command = [program, "run", "--ranks", "1", "--device", "cuda", "--config", config, "--model", model, "--data", tokens,
               "--steps", str(args.warm_up + args.steps), "--detail", detail, "--record", recording, "--no-view"]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          env={**os.environ, "SHARDSCOPE_ATTENTION": attention}, preexec_fn=children.bound(signal.SIGTERM))
    if attention == "cudnn" and "libcudnn.so.9 cannot be loaded" in done.stderr:
        return None
    if done.returncode != 0:
        raise Failure(f"{label(stage, detail)}: {done.stderr.strip()[-500:]}")
    summary = subprocess.run([str(program), "summary", "--json", str(recording)], capture_output=True, text=True)
    if summary.returncode != 0:
        raise Failure(f"summary of {label(stage, detail)}: {summary.stderr.strip()[-500:]}")
    figures = json.loads(summary.stdout)
    memory = figures["ranks"][0]["memory"].get("device", {})
    # The summary's measured steps leave out the first ones.
    return {"step_ms": [figures["step_ms"]["median"]], "peak_bytes": memory.get("peak_bytes")}


def run_peer(shape, args):
    command = [sys.executable, str(HERE / "gpu_torch_peer.py"), "--context", str(CONTEXT), "--vocabulary", str(VOCABULARY),
               "--micro-batch", str(args.micro_batch), "--steps", str(args.steps), "--warm-up", str(args.warm_up)]
    for key, value in shape.items():
        command += [f"--{key}", str(value)]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=children.bound())
    if done.returncode == 3:
        return None
    if done.returncode != 0:
        raise Failure(f"{PEER}: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def median_ms(row):
    return statistics.median(row["step_ms"])


def mfu_percent(ms, shape, result, peak):
    tokens = result["micro_batch"] * result["context"]
    return 100 * tokens / ms * 1e3 * flops_per_token(shape) / (peak * 1e12)


def goals(result):
    """Lines that tell what was asked for, what was measured and whether that is met; what could not be measured says so."""
    lines = []

    def tell(text, value, met, form):
        lines.append(f"goal {text}: " + ("not measured" if value is None else
                                         f"{value:{form}}, {'met' if met(value) else 'MISSED'}"))

    peak = next((value for key, value in PEAK_TFLOPS.items() if key in result["device"]), None)
    for name, rows in result["models"].items():
        first, peer = rows[label(*OURS[0])], rows.get(PEER)
        base = median_ms(first)
        if name in MFU_MODELS:
            tell(f"{name}, MFU of at least {LEAST_MFU} %",
                 mfu_percent(base, SHAPES[name], result, peak) if peak else None, lambda x: x >= LEAST_MFU, ".1f")
        tell(f"{name}, at least {LEAST_OF_PEER} times {PEER}", median_ms(peer) / base if peer else None,
             lambda x: x >= LEAST_OF_PEER, ".3f")
        for one, bound in MOST_OF_STAGE_0.items():
            row = rows.get(label(*one))
            tell(f"{name}, {label(*one)}, at most {bound} of stage 0", median_ms(row) / base if row else None,
                 lambda x, most=bound: x <= most, ".4f")
        known = peer and peer.get("peak_bytes") and first.get("peak_bytes")
        tell(f"{name}, peak memory below {PEER}'s, of it", first["peak_bytes"] / peer["peak_bytes"] if known else None,
             lambda x: x < 1, ".3f")
    return lines


def measure(args):
    device = gpu_name()
    bin_folder = (ROOT / args.bin).resolve()
    for program in ("shardscope", "zero_train"):
        if not (bin_folder / program).exists():
            raise Failure(f"{bin_folder}/{program} is not there; cmake --preset cuda && cmake --build build/cuda")
    result = {"device": device, "micro_batch": args.micro_batch, "context": CONTEXT, "models": {}, "rounds": {}}
    begin, longest = time.monotonic(), 0.0
    with tempfile.TemporaryDirectory() as place:
        for name in args.models:
            rows = {}
            for done in range(args.rounds):
                round_begin = time.monotonic()
                if done > 0 and args.limit and round_begin - begin + longest > args.limit:
                    break
                contestants = [(label(*one), *one, "own") for one in OURS] + [(BY_CUDNN, *OURS[0], "cudnn")]
                for who, stage, detail, attention in contestants:
                    one = run_ours(bin_folder, SHAPES[name], stage, detail, args, pathlib.Path(place), attention)
                    if one is None:
                        continue
                    row = rows.setdefault(who, {"step_ms": [], "peak_bytes": None})
                    row["step_ms"] += one["step_ms"]
                    row["peak_bytes"] = one["peak_bytes"]
                peer = run_peer(SHAPES[name], args)
                if peer is not None:
                    row = rows.setdefault(PEER, {"step_ms": [], "version": peer["version"]})
                    row["step_ms"] += peer["step_ms"]
                    row["peak_bytes"] = peer["peak_bytes"]
                result["rounds"][name] = done + 1
                longest = max(longest, time.monotonic() - round_begin)
            result["models"][name] = rows
    return result


def table(result):
    peak = next((value for key, value in PEAK_TFLOPS.items() if key in result["device"]), None)
    lines = [f"{result['device']}, micro-batch {result['micro_batch']}, context {result['context']}, bf16, one rank"]
    if result.get("made_up"):
        lines.append("MADE-UP FIGURES, only to test this table")
    lines.append("MFU: tokens/s x (6 (P - C T) + 12 L C T) / " +
                 (f"{peak} TFLOP/s" if peak else "the peak of this GPU, which is not known here"))
    tokens = result["micro_batch"] * result["context"]
    for name, rows in result["models"].items():
        shape = SHAPES[name]
        rounds = result.get("rounds", {}).get(name)
        lines += ["", f"GPT-2 {name}: P = {params_of(shape)}, {flops_per_token(shape) * 1e-9:.3f} GFLOP per token" +
                  (f", {rounds} rounds" if rounds else ""),
                  f"{'':24}{'ms/step':>10}{'tokens/s':>12}{'MFU %':>8}{'peak GiB':>10}{'of stage 0':>12}"
                  f"{'of PyTorch':>12}"]
        base = median_ms(rows[label(*OURS[0])])
        peer = median_ms(rows[PEER]) if PEER in rows else None
        for who, row in rows.items():
            ms = median_ms(row)
            mfu = f"{mfu_percent(ms, shape, result, peak):.1f}" if peak else "-"
            memory = f"{row['peak_bytes'] / 2**30:.2f}" if row.get("peak_bytes") else "-"
            lines.append(f"{who:24}{ms:>10.2f}{tokens / ms * 1e3:>12.0f}{mfu:>8}{memory:>10}{ms / base:>12.4f}"
                         f"{peer / ms if peer else float('nan'):>12.3f}" if peer else
                         f"{who:24}{ms:>10.2f}{tokens / ms * 1e3:>12.0f}{mfu:>8}{memory:>10}{ms / base:>12.4f}{'-':>12}")
        if BY_CUDNN in rows:
            by_cudnn = median_ms(rows[BY_CUDNN])
            lines.append(f"attention: {'cuDNN' if by_cudnn < base else 'our own'} is the faster one, by "
                         f"{100 * abs(by_cudnn / base - 1):.2f} % of a step")
        else:
            lines.append("attention: no cuDNN here to compare with")
        if peer is None:
            lines.append("PyTorch is not installed here: nothing to compare with")
    lines += ["", "of stage 0: step time over that of stage 0 at detail steps; of PyTorch: its step time over this one's.",
              "Peak: what was in use at most, of the runtime's arenas and of PyTorch's allocator; what either keeps beyond "
              "that for later is not in it.", ""]
    lines += goals(result)
    return "\n".join(lines)


def parse(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default="build/cuda/bin", help="folder of the programs, from the repository's root")
    parser.add_argument("--models", nargs="+", choices=sorted(SHAPES), default=sorted(SHAPES))
    parser.add_argument("--micro-batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--warm-up", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=int, default=0, help="seconds after which no round is begun; 0: none")
    parser.add_argument("--json", help="write what was measured to this file")
    parser.add_argument("--from", dest="source", help="measure nothing: the table of a file that --json wrote")
    args = parser.parse_args(argv)
    for name in ("micro_batch", "steps", "warm_up", "rounds"):
        if getattr(args, name) < 1:
            parser.error(f"--{name.replace('_', '-')} is {getattr(args, name)}; it must be at least 1")
    return args


def main():
    args = parse()
    try:
        result = json.loads(pathlib.Path(args.source).read_text()) if args.source else measure(args)
    except Failure as failure:
        print(f"gpu_training.py: {failure}", file=sys.stderr)
        return 2 if "no GPU here" in str(failure) else 1
    except (OSError, ValueError) as error:
        print(f"gpu_training.py: {args.source}: {error}", file=sys.stderr)
        return 1
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(result, indent=1))
    print(table(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
