#!/usr/bin/env python3
"""A simulated run of thousands of ranks, live through a collector for each node to one that records it: what each part takes.

usage: tests/bench/scale.py [--ranks 4096] [--nodes 64] [--steps 12] [--detail phases] [--leave S] [--watch] [--viewer S] [--keep FILE] [--build FOLDER]
       tests/bench/scale.py --table 256:8 1024:8 1024:32 4096:64        one run for each, ranks:collectors
       tests/bench/scale.py --reading FILE                              summary, findings, search and picture of a recording

`shardscope simulate --live` plays the ranks, which publish when a run's would; each `shardscope collect` has an equal part of them. The
hardware is slow on purpose (--slower), so that the run is paced below the machine's cores. Memory is what Linux calls Pss and Rss, CPU
time that of all threads of the process, bytes what the top collector's sockets have received (`ss`). Prints a line of JSON per run.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import children

ROOT = pathlib.Path(__file__).resolve().parents[2]
TICK = os.sysconf("SC_CLK_TCK")
MIB = 1 << 20
START_S = 60
LEVELS = ("steps", "phases", "modules", "params")


class Failed(Exception):
    pass


def memory(pid):
    """Rss, Pss and what is the process's alone (Private), MiB."""
    values = {}
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, kib = line.split(":")[0], line.split()[1]
        values[name] = int(kib) / 1024
    return {"rss": values["Rss"], "pss": values["Pss"], "private": values["Private_Clean"] + values["Private_Dirty"]}


def cpu_s(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def threads_of(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


def files_of(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def received_bytes(port):
    """By the sockets that a process listens for at this port and the two after it: publishing, views, control."""
    total = 0
    for each in (port, port + 2):
        out = subprocess.run(["ss", "-tinH", "state", "established", f"sport = :{each}"], capture_output=True, text=True).stdout
        total += sum(int(number) for number in re.findall(r"bytes_received:(\d+)", out))
    return total


class Program:
    """A program of ours that says on standard error where it listens."""

    def __init__(self, *command):
        self.process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                        preexec_fn=children.bound())
        self.pid, self.said, self.endpoint = self.process.pid, [], None
        self.found = threading.Event()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stderr:
            self.said.append(line.rstrip())
            if match := re.search(r"listening on (tcp://\S+?),", line):
                self.endpoint = match[1]
                self.found.set()
        self.found.set()

    def listening(self):
        self.found.wait(START_S)
        if self.endpoint is None:
            raise Failed(f"a collector does not listen: {' '.join(self.said[-3:])}")
        return self.endpoint

    @property
    def port(self):
        return int(self.endpoint.rsplit(":", 1)[1])

    def ended(self):
        return self.process.poll() is not None


def usage_of(pids):
    return {"cpu_s": sum(cpu_s(pid) for pid in pids), "memory": [memory(pid) for pid in pids]}


def slow_hardware(folder, options):
    """Hardware whose compute is slow enough that a step of the run takes about --step-s seconds of real time."""
    described = json.loads((ROOT / "assets" / "hardware" / "h100.json").read_text())
    described["name"] = "slow"
    described.update(memory_gib=0, processors=0, matrix_half_depth=0, overlap_slowdown=0)
    for key in ("f32_tflops", "f16_tflops", "memory_gb_per_s"):
        described[key] = described[key] / options.slower
    for link in ("inside", "between", "host"):
        described[link]["gb_per_s"] = described[link]["gb_per_s"] / options.slower
    path = folder / "slow.json"
    path.write_text(json.dumps(described))
    return path


def run(options, ranks, nodes):
    programs = pathlib.Path(options.build).resolve() / "bin"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        recording = folder / "run.zscope"
        top = Program(programs / "shardscope", "record", recording, "--listen", "tcp://127.0.0.1:0")
        started = [top]
        try:
            endpoint = top.listening()
            collectors = [Program(programs / "shardscope", "collect", "--upstream", endpoint, "--listen", "tcp://127.0.0.1:0")
                          for _ in range(nodes)]
            started += collectors
            ends = [collector.listening() for collector in collectors]
            out = {"ranks": ranks, "nodes": nodes, "detail": options.detail, "empty_top_mib": memory(top.pid)["pss"],
                   "empty_node_mib": sum(memory(c.pid)["pss"] for c in collectors) / nodes}
            command = [programs / "shardscope", "simulate", "--live", "--json", "--layers", options.layers, "--width", 1024, "--heads", 16,
                       "--context", 1024, "--ranks", ranks, "--steps", options.steps, "--detail", options.detail, "--hardware",
                       slow_hardware(folder, options), "--jitter", "0.05"]
            for each in ends:
                command += ["--connect", each]
            player = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                      preexec_fn=children.bound(signal.SIGTERM))
            started.append(player)
            out.update(follow(options, programs, player, top, collectors, endpoint))
            deadline = time.monotonic() + 120
            while not top.ended() and time.monotonic() < deadline:
                time.sleep(0.1)
            out["top_said"], out["top_code"] = top.said[-1:], top.process.poll()
            out["file_mb"] = recording.stat().st_size / 1e6
            if options.keep:
                shutil.copyfile(recording, options.keep)
            return out
        finally:
            for one in started:
                process = one.process if isinstance(one, Program) else one
                if process.poll() is None:
                    process.kill()
                process.wait()


def follow(options, programs, player, top, collectors, endpoint):
    """Samples during the run. The steady stretch is from when every rank was there until the first of them leave."""
    began = time.monotonic()
    nodes = [collector.pid for collector in collectors]
    peak_top, peak_node, peak_player = {}, {}, 0.0
    samples, viewers, watch, counts = [], [], None, {}
    def sampled():
        return {"at": time.monotonic(), "top": cpu_s(top.pid), "nodes": sum(map(cpu_s, nodes)), "bytes": received_bytes(top.port)}

    while player.poll() is None:
        time.sleep(1)
        if top.ended() or any(collector.ended() for collector in collectors):  # the run is over
            break
        now = memory(top.pid)
        peak_top = {key: max(value, peak_top.get(key, 0)) for key, value in now.items()}
        one = memory(nodes[0])
        peak_node = {key: max(value, peak_node.get(key, 0)) for key, value in one.items()}
        seen = time.monotonic() - began
        if not samples and seen >= options.settle:
            counts = {"top_files": files_of(top.pid), "top_threads": threads_of(top.pid), "node_files": files_of(nodes[0]),
                      "node_threads": threads_of(nodes[0])}
        if seen >= options.settle:
            samples.append(sampled())
            if options.viewer and samples[-1]["at"] - samples[0]["at"] >= options.viewer:
                viewers.append(subprocess.run([programs / "scale_viewer", endpoint, "10"], capture_output=True, text=True))
                if options.watch:
                    watch = watched(programs, endpoint)
                break
    ended = time.monotonic()
    outcome, said = player.communicate()
    if player.returncode != 0:
        raise Failed(f"simulate ended with {player.returncode}: {said[-900:]}")
    if not viewers:
        samples = [sample for sample in samples if sample["at"] <= ended - options.leave]
    if len(samples) < 2:
        raise Failed("the run was over before it was steady; more --steps")
    window = samples[0], samples[-1]
    seconds = window[1]["at"] - window[0]["at"]
    made = json.loads(outcome)
    out = {"events": made["events"], "step_s": made["step_ms"][-1] / 1e3, "wall_s": time.monotonic() - began, "steady_s": seconds,
           "top_cpu_percent": 100 * (window[1]["top"] - window[0]["top"]) / seconds,
           "nodes_cpu_percent": 100 * (window[1]["nodes"] - window[0]["nodes"]) / seconds,
           "top_received_kb_per_s": (window[1]["bytes"] - window[0]["bytes"]) / seconds / 1e3,
           "top_mib": peak_top, "node_mib": peak_node, **counts}
    if viewers:
        out["viewer"] = json.loads(viewers[0].stdout) if viewers[0].returncode == 0 else viewers[0].stderr[-300:]
    if watch:
        out["watch"] = watch
    return out


def watched(programs, endpoint):
    """`shardscope watch` for some lines: when the first came, and its memory then."""
    began = time.monotonic()
    process = subprocess.Popen([programs / "shardscope", "watch", endpoint, "--interval", "2"], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True, preexec_fn=children.bound())
    out = {}
    try:
        for count, line in enumerate(process.stdout, 1):
            out.setdefault("first_line_s", time.monotonic() - began)
            try:
                out.update(mib=memory(process.pid)["pss"], cpu_s=cpu_s(process.pid), line=line.rstrip())
            except ProcessLookupError:  # the run has ended
                break
            if count == 3:
                break
        return out
    finally:
        process.kill()
        process.wait()


def timed(command):
    """Seconds, CPU seconds and the most memory of a command."""
    began = time.monotonic()
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                               preexec_fn=children.bound())
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    if status != 0:
        raise Failed(f"{' '.join(map(str, command[1:3]))} ended with {os.waitstatus_to_exitcode(status)}: {said[-300:]}")
    return {"seconds": time.monotonic() - began, "cpu_s": used.ru_utime + used.ru_stime, "mib": used.ru_maxrss / 1024}


def reading(options, path):
    programs = pathlib.Path(options.build).resolve() / "bin"
    out = {verb: timed([programs / "shardscope", verb, path, "--json"]) for verb in ("info", "summary", "findings")}
    with tempfile.TemporaryDirectory() as folder:
        picture = f"{folder}/picture.png"
        out["picture"] = timed([programs / "shardscope-gui", path, "--screenshot", picture, "--frame-stats"])
    viewed = subprocess.run([programs / "scale_viewer", path, "step"], capture_output=True, text=True)
    out["viewer"] = json.loads(viewed.stdout) if viewed.returncode == 0 else viewed.stderr[-300:]
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=4096)
    parser.add_argument("--nodes", type=int, default=64, help="node collectors; each has an equal part of the ranks")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--detail", choices=LEVELS, default="phases")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--slower", type=float, default=1000, help="than an H100: so that a step takes seconds")
    parser.add_argument("--settle", type=float, default=30, help="seconds until what is measured begins")
    parser.add_argument("--leave", type=float, default=8, help="seconds before the end that are not measured: ranks leave, the file is closed")
    parser.add_argument("--viewer", type=float, default=0, help="a viewer comes after so many more seconds; what is measured ends there")
    parser.add_argument("--watch", action="store_true", help="and then `shardscope watch`")
    parser.add_argument("--keep", help="copy the recording here")
    parser.add_argument("--table", nargs="+", metavar="RANKS:NODES", help="one run for each")
    parser.add_argument("--reading", metavar="FILE", help="only reads this recording")
    parser.add_argument("--build", default=str(ROOT / "build" / "release"))
    options = parser.parse_args()
    try:
        if options.reading:
            print(json.dumps(reading(options, options.reading)))
            return
        pairs = [tuple(map(int, pair.split(":"))) for pair in options.table] if options.table else [(options.ranks, options.nodes)]
        for ranks, nodes in pairs:
            if ranks % nodes != 0:
                parser.error(f"{ranks} ranks are no equal parts for {nodes} collectors")
            print(json.dumps(run(options, ranks, nodes)), flush=True)
    except Failed as failed:
        sys.exit(f"scale.py: {failed}")


if __name__ == "__main__":
    main()
