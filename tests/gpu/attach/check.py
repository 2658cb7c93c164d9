#!/usr/bin/env python3
"""Attached runs on a GPU against plain ones: tests/gpu/attach/check.py --bin FOLDER --package FOLDER [--keep FOLDER] [CASE ...]

Needs PyTorch with CUDA in the Python that runs this, the Python package (python/, installed into --package) and `shardscope`
in --bin; DeepSpeed's cases are left out where it is not installed. Each case is trained plain, attached at `params` and
attached at `kernels`. It checks:

- losses, gradient norms and weights: the same bits in all three;
- waits of the host for the device, by torch's own count: none more;
- memory by category: its sum is what torch's allocator holds at the end of each step;
- kernels: of a step as many as torch.profiler counts in it in a plain run;
- torch.profiler in an attached run still sees them all, and the recording says that ours left.

A line for each check; exits with 1 if one failed, 2 where there is no GPU.
"""
import argparse
import collections
import csv
import importlib.util
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CASES = {"fsdp2": ("fsdp2", 1, ()), "ddp": ("ddp", 1, ()), "zero2": ("zero2", 1, ()), "zero3": ("zero3", 1, ()),
         "zero3-bf16": ("zero3", 1, ("dtype=bf16",)), "zero2-fp16": ("zero2", 1, ("dtype=fp16",)),
         # Two ranks on one GPU, which NCCL refuses. (FSDP2's gathers end in a fault within gloo, PyTorch 2.11.)
         "ddp-two": ("ddp", 2, ("backend=gloo",))}
failed = 0


def check(name, good, said=""):
    global failed
    failed += not good
    print(f"{'ok    ' if good else 'FAILED'} {name}{': ' + str(said) if said != '' else ''}", flush=True)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Runner:
    def __init__(self, options, folder):
        self.shardscope, self.folder = options.bin / "shardscope", folder
        path = ":".join(filter(None, (str(options.package), os.environ.get("PYTHONPATH", ""))))
        self.environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "2", "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
                            "GLOO_SOCKET_IFNAME": "lo", "PYTHONWARNINGS": "ignore"}

    def train(self, case, how, detail=None, *more):
        """(results by rank, recording or None)."""
        framework, ranks, rest = CASES[case]
        out, made = self.folder / f"{case}.{how}", None
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks), "--master-port",
                   str(free_port()), HERE / "train.py", framework, out, *rest, *more]
        if detail:
            made = self.folder / f"{case}.{how}.zscope"
            command = [self.shardscope, "attach", "--record", made, "--overwrite", "--detail", detail, "--", *command]
        done = subprocess.run(list(map(str, command)), env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=120, check=False)
        (self.folder / f"{case}.{how}.log").write_text(done.stdout, encoding="utf-8")
        if done.returncode != 0:
            raise RuntimeError(f"{case} {how} ended with {done.returncode}:\n{done.stdout[-2500:]}")
        return [json.loads(pathlib.Path(f"{out}.{rank}").read_text(encoding="utf-8")) for rank in range(ranks)], made, done.stdout

    def figures(self, made):
        return json.loads(subprocess.run([self.shardscope, "summary", "--json", made], capture_output=True, text=True,
                                         check=True).stdout)

    def table(self, made, name):
        folder = pathlib.Path(f"{made}.csv")
        if not folder.exists():
            subprocess.run([self.shardscope, "export", made, "--format", "csv", "-o", folder], check=True, capture_output=True)
        with open(folder / f"{name}.csv", newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))


def run_case(runner, case):
    plain, _, _ = runner.train(case, "plain")
    counted, _, _ = runner.train(case, "profiled", None, "profile=1")
    for detail in ("params", "kernels"):
        attached, made, said = runner.train(case, detail, detail)
        for field in ("losses", "norms", "weights"):
            check(f"{case} {detail}: {field} are the plain run's", [r[field] for r in attached] == [r[field] for r in plain])
        check(f"{case} {detail}: no hook failed", " is off" not in said and "not counted any more" not in said,
              next((line for line in said.splitlines() if " is off" in line or "not counted" in line), ""))
        check(f"{case} {detail}: no more waits for the device", [r["waits"] for r in attached] == [r["waits"] for r in plain],
              f"{[r['waits'] for r in attached]}, plain {[r['waits'] for r in plain]}")
        figures = runner.figures(made)
        print("      step:", json.dumps([round(s * 1e3, 2) for s in attached[0]["seconds"]]), "ms; plain",
              json.dumps([round(s * 1e3, 2) for s in plain[0]["seconds"]]), flush=True)
        for rank, result in enumerate(attached):
            sums = device_bytes(runner, made, rank)
            check(f"{case} {detail}: rank {rank}'s memory by category is the allocator's", sums == result["allocated"],
                  f"{sums}, allocator {result['allocated']}")
        if detail == "kernels":
            kernels(runner, case, made, counted, figures)
    attached, made, said = runner.train(case, "both", "kernels", "profile=1")
    check(f"{case} with torch.profiler: it sees as many kernels as without us",
          [sum(r["kernels"].values()) for r in attached] == [sum(r["kernels"].values()) for r in counted],
          f"{[sum(r['kernels'].values()) for r in attached]}, alone {[sum(r['kernels'].values()) for r in counted]}")
    texts = subprocess.run([runner.shardscope, "info", made], capture_output=True, text=True, check=False).stdout
    print("      info:", " | ".join(line.strip() for line in texts.splitlines() if "kernel" in line.lower())[:400], flush=True)


def device_bytes(runner, made, rank):
    """What the device's pool holds at the end of each step."""
    ends = [int(s["end_ns"]) for s in runner.table(made, "spans") if int(s["rank"]) == rank and s["kind"] == "step_begin"]
    levels = [(int(m["at_ns"]), int(m["pool_bytes_after"])) for m in runner.table(made, "memory")
              if int(m["rank"]) == rank and m["pool"] == "device"]
    return [next((held for at, held in reversed(levels) if at <= end), 0) for end in sorted(ends)]


def kernels(runner, case, made, counted, figures):
    spans = runner.table(made, "spans")
    for rank, result in enumerate(counted):
        own = [s for s in spans if int(s["rank"]) == rank]
        steps = sorted(int(s["begin_ns"]) for s in own if s["kind"] == "step_begin")
        work = [s for s in own if s["kind"] == "gpu_begin"]
        # The script waits for the device between steps.
        profiled = [s for s in work if steps[-2] <= int(s["begin_ns"]) < steps[-1]
                    and not s["label"].startswith(("copy", "memset"))]
        check(f"{case} kernels: rank {rank} has as many as torch.profiler in a step",
              len(profiled) == sum(result["kernels"].values()),
              f"{len(profiled)}, torch.profiler {sum(result['kernels'].values())}")
        print("      lanes:", dict(collections.Counter(s["stream"] for s in work)), "owners:",
              dict(collections.Counter(int(s["code"]) >> 4 for s in profiled)), flush=True)
    print("      summary:", json.dumps(figures["ranks"][0].get("gpu"))[:700], flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--package", type=pathlib.Path, required=True)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    import torch
    if not torch.cuda.is_available():
        print("tests/gpu/attach/check.py: PyTorch finds no GPU here", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="shardscope-gpu-attach-") as folder:
        runner = Runner(options, options.keep or pathlib.Path(folder))
        for case in options.cases or CASES:
            if case.startswith("zero") and importlib.util.find_spec("deepspeed") is None:
                print(f"left out: {case}, DeepSpeed is not installed")
                continue
            try:
                run_case(runner, case)
            except Exception as error:  # a case that cannot run is a line, the others go on
                check(f"{case}: runs", False, f"{type(error).__name__}: {error}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
