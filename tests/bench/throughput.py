#!/usr/bin/env python3
"""Tokens per second and memory of zero_train beside DeepSpeed, PyTorch DDP and FSDP2, on the same model and data.

usage: tests/bench/throughput.py [--stages 0 1 2 3] [--types fp32 bf16] [--micro-batch N] [--rounds N] [--json FILE]

All runs of one line of the table are alive at the same time; one after the other is let go on for a few seconds
(SIGCONT) while the rest are stopped (SIGSTOP), round after round, so that drift of the machine falls on all of them.
A step counts when it began and ended within one such window. Every rank computes with one thread.

Memory: VmHWM is the kernel's largest resident size of a rank. A rank of zero_train has mapped the other ranks' device
memory, whose pages count again in its VmHWM; PSS, where a page counts once over all processes, is given beside it.
"""
import argparse
import json
import os
import pathlib
import platform
import signal
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "peers"))
import launch  # noqa: E402
import peer_models  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")
NICE = ("nice", "-n", "-5") if os.geteuid() == 0 else ()


def config(stage, bf16, micro_batch):
    settings = {"train_micro_batch_size_per_gpu": micro_batch, "gradient_accumulation_steps": 1,
                "gradient_clipping": 1.0, "steps_per_print": 1,
                "optimizer": {"type": "AdamW", "params": {"lr": 3e-4, "betas": [0.9, 0.999], "eps": 1e-8,
                                                          "weight_decay": 0.01}},
                "zero_optimization": {"stage": stage}}
    if bf16:
        settings["bf16"] = {"enabled": True}
    return settings


def cpu_seconds(pids):
    total = 0
    for pid in pids:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def status_mib(pid, file, key):
    for line in pathlib.Path(f"/proc/{pid}/{file}").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) / 1024
    return float("nan")


class Contestant:
    def __init__(self, run):
        self.run = run
        self.windows, self.cpu_s, self.pss_mib, self.peak_mib = [], 0.0, 0.0, 0.0

    def warm(self):
        """Waits until the third step has ended, then is stopped."""
        run = self.run
        made = run.started_steps if isinstance(run, launch.OwnRun) else lambda: len(run.steps())
        while made() < 3:
            if not run.running():
                run.wait(60)
                raise launch.PeerError(f"{run.name} ended before it was measured; see {run.folder}")
            time.sleep(0.1)
        self.pids = run.ranks
        run.signal(signal.SIGSTOP)

    def go(self, seconds):
        cpu = cpu_seconds(self.pids)
        begin = time.monotonic()
        self.run.signal(signal.SIGCONT)
        time.sleep(seconds)
        self.run.signal(signal.SIGSTOP)
        self.windows.append((begin, time.monotonic()))
        self.cpu_s += cpu_seconds(self.pids) - cpu
        self.pss_mib = max(self.pss_mib, sum(status_mib(p, "smaps_rollup", "Pss") for p in self.pids) / len(self.pids))

    def finish(self):
        self.peak_mib = max(status_mib(p, "status", "VmHWM") for p in self.pids)
        if isinstance(self.run, launch.OwnRun):  # it writes its log when asked to stop
            for number in (signal.SIGTERM, signal.SIGCONT):
                self.run.signal(number)
            self.run.wait(120)
        else:
            self.run.kill()

    def result(self, tokens):
        ends = [step[0] for step in self.run.steps()]
        inside = lambda t: any(a <= t <= b for a, b in self.windows)
        whole = [b - a for a, b in zip(ends, ends[1:])
                 if any(begin <= a and b <= end for begin, end in self.windows)]
        median = statistics.median(whole) if whole else float("nan")
        return {"tokens_per_s": tokens / median, "steps": len(whole), "fastest_step_s": min(whole, default=None),
                "median_step_s": median, "cpu_s_per_step": self.cpu_s / max(1, sum(map(inside, ends))),
                "vmhwm_mib": self.peak_mib, "pss_mib": self.pss_mib}


def measure(options, python, stage, bf16):
    job = {"model": "gpt", "shape": vars(peer_models.SMALL_GPT), "steps": 100000, "observe": False,
           "config": config(stage, bf16, options.micro_batch)}
    own = {"shardscope": options.build, **({"other build": options.other_build} if options.other_build else {})}
    names = list(own) + [p for p in options.peers if p == "deepspeed" or (p, stage) in (("ddp", 0), ("fsdp2", 3))]
    extra = options.bf16_environment if bf16 else {}
    scratch = pathlib.Path(options.scratch)
    contestants = {}
    try:
        for name in names:
            folder = scratch / f"{name.replace(' ', '-')}-{stage}-{'bf16' if bf16 else 'fp32'}"
            run = launch.start_own(own[name], job, 2, folder, ["--collective-timeout", "3600"], NICE) \
                if name in own else launch.start_peer(python, {**job, "peer": name}, 2, folder, extra, NICE)
            contestants[name] = Contestant(run)
            contestants[name].warm()
        for _ in range(options.rounds):
            for contestant in contestants.values():
                contestant.go(options.window)
        for contestant in contestants.values():
            contestant.finish()
    finally:
        for contestant in contestants.values():
            contestant.run.kill()
    tokens = 2 * options.micro_batch * peer_models.SMALL_GPT.context
    return {name: contestant.result(tokens) for name, contestant in contestants.items()}


def row(stage, bf16, results):
    own = results["shardscope"]
    lines = []
    for name, r in results.items():
        ratio = "" if r is own else f"{own['tokens_per_s'] / r['tokens_per_s']:.2f}"
        cpu = "" if r is own else f"{r['cpu_s_per_step'] / own['cpu_s_per_step']:.2f}"
        lines.append(f"| {stage} | {'bf16' if bf16 else 'fp32'} | {name} | {r['tokens_per_s']:.0f} | {ratio} | "
                     f"{r['cpu_s_per_step']:.2f} | {cpu} | {r['vmhwm_mib']:.0f} | {r['pss_mib']:.0f} | {r['steps']} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stages", type=int, nargs="+", default=[0, 1, 2, 3])
    parser.add_argument("--types", nargs="+", default=["fp32", "bf16"], choices=["fp32", "bf16"])
    parser.add_argument("--peers", nargs="*", default=["deepspeed", "ddp", "fsdp2"],
                        choices=["deepspeed", "ddp", "fsdp2"])
    parser.add_argument("--micro-batch", type=int, default=4, help="sequences of 256 tokens per rank and step")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--window", type=float, default=6.0, help="seconds of each run per round")
    parser.add_argument("--build", default=launch.DEFAULT_BUILD)
    parser.add_argument("--other-build", help="a second build of this project to run beside the first")
    parser.add_argument("--venv", default=launch.DEFAULT_VENV)
    parser.add_argument("--scratch", default=launch.ROOT / "build" / "throughput")
    parser.add_argument("--json")
    options = parser.parse_args()
    python = launch.ensure_venv(options.venv)
    options.bf16_environment = launch.bf16_environment(python) if "bf16" in options.types else {}
    print(f"{platform.node()}: {os.cpu_count()} CPUs; {launch.versions(python)}; 2 ranks with a thread each; "
          f"{options.micro_batch} x {peer_models.SMALL_GPT.context} tokens per rank and step; peers in bf16 with "
          f"{options.bf16_environment or 'no settings'}")
    print("| stage | type | run | tokens/s | ours/its | CPU s/step | its/ours | VmHWM MiB | PSS MiB | steps |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    results = []
    for bf16 in [t == "bf16" for t in options.types]:
        for stage in options.stages:
            outcome = measure(options, python, stage, bf16)
            results.append({"stage": stage, "type": "bf16" if bf16 else "fp32", "runs": outcome})
            print(row(stage, bf16, outcome), flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
