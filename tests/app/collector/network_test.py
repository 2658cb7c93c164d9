#!/usr/bin/env python3
"""Ranks on several hosts: network namespaces joined by a link with delay, loss and cuts.

A collector with keys on host-a, one rank each on host-b and host-c. The link to host-c is cut and healed; the
collector is killed and started again. The ranks must run on, the recordings must be consistent and say what is
missing, and who has no key must not get in.

Then a chain: a collector on each of host-b and host-c, with keys of its own for the rank beside it, passes on to
the one on host-a. A link is cut and healed, a node's collector is killed and started again; rank and root go on,
and the one recording is whole but for the gap.

The link is made here, out of one TUN device per host: packets are read from one, kept for the delay, lost with the
given probability, and written to the other. (Kernels without `tc netem` have it too, and a test can cut it.)

Usage: network_test.py BIN_FOLDER        needs root, iproute2 and /dev/net/tun; ends with 77 (skipped) without
"""
import contextlib
import fcntl
import heapq
import json
import os
import pathlib
import random
import select
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time

BIN = pathlib.Path(sys.argv[1]).resolve()
SKIPPED = 77
DELAY_S, LOSS = 0.005, 0.005
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x1, 0x1000


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


class Network:
    """Hosts 10.77.0.1, .2, ... in namespaces of their own, and the link between them."""

    def __init__(self, names):
        self.prefix = f"ss{os.getpid()}"
        self.hosts = {}  # name -> (namespace, device)
        self.by_address = {}
        self.cut = set()
        self.random = random.Random(7)
        self.carried = self.lost = 0
        self.stopping = False
        self.names = names

    def __enter__(self):
        try:
            for number, name in enumerate(self.names, 1):
                namespace, device = f"{self.prefix}{name}", f"{self.prefix}{number}"[-15:]
                ip("netns", "add", namespace)
                self.hosts[name] = (namespace, None)
                tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
                fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TUN | IFF_NO_PI))
                self.hosts[name] = (namespace, tun)
                ip("link", "set", device, "netns", namespace)
                ip("-n", namespace, "addr", "add", f"10.77.0.{number}/24", "dev", device)
                ip("-n", namespace, "link", "set", device, "mtu", "9000", "up")
                ip("-n", namespace, "link", "set", "lo", "up")
                self.by_address[socket.inet_aton(f"10.77.0.{number}")] = name
        except (OSError, subprocess.CalledProcessError) as error:
            self.remove()
            skip(f"no network namespaces here: {getattr(error, 'stderr', '') or error}")
        self.thread = threading.Thread(target=self.carry, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping = True
        self.thread.join()
        self.remove()

    def remove(self):
        for namespace, tun in self.hosts.values():
            if tun is not None:
                os.close(tun)
            subprocess.run(["ip", "netns", "del", namespace], stderr=subprocess.DEVNULL, check=False)

    def carry(self):
        waiting, number = [], 0  # (due, order, device, packet)
        devices = {tun: name for name, (_, tun) in self.hosts.items()}
        while not self.stopping:
            timeout = max(0.0, waiting[0][0] - time.monotonic()) if waiting else 0.1
            readable, _, _ = select.select(devices, [], [], min(timeout, 0.1))
            for tun in readable:
                try:
                    packet = os.read(tun, 65536)
                except OSError:
                    continue
                if len(packet) < 20 or packet[0] >> 4 != 4:
                    continue
                target = self.by_address.get(packet[16:20])
                if target is None:
                    continue
                if target in self.cut or devices[tun] in self.cut or self.random.random() < LOSS:
                    self.lost += 1
                    continue
                number += 1
                heapq.heappush(waiting, (time.monotonic() + DELAY_S, number, self.hosts[target][1], packet))
            now = time.monotonic()
            while waiting and waiting[0][0] <= now:
                _, _, tun, packet = heapq.heappop(waiting)
                try:
                    os.write(tun, packet)
                    self.carried += 1
                except OSError:
                    self.lost += 1

    def start(self, host, *command, environment=None):
        """A process on `host`, which has a host name of its own."""
        inside = f"hostname host-{host} && exec \"$@\""
        return subprocess.Popen(
            ["ip", "netns", "exec", self.hosts[host][0], "unshare", "--uts", "sh", "-c", inside, "sh", *map(str, command)],
            env={**os.environ, **(environment or {})}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True)


def until(condition, what, limit=60):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    sys.exit(f"FAILED: waited {limit} s in vain: {what}")


def catches_sigterm(process):
    """Whether it is the program yet, which asks for that first, and no longer what starts it."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:"))
    return int(caught, 16) >> (signal.SIGTERM - 1) & 1


def check(good, what):
    if not good:
        sys.exit(f"FAILED: {what}")


def rows(path, query):
    try:
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=1)) as database:
            return database.execute(query).fetchall()
    except sqlite3.Error:
        return []


def events(path):
    """rank -> events that its recording counts so far."""
    return dict(rows(path, "SELECT rank, events FROM ranks"))


def read(verb, path):
    result = subprocess.run([BIN / "shardscope", verb, path, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, check=False)
    check(result.returncode == 0, f"{verb} {path}: {result.stderr}")
    return json.loads(result.stdout)


def check_chunks(path):
    check(rows(path, "PRAGMA integrity_check") == [("ok",)], f"{path}: SQLite finds damage")
    for rank in (0, 1):
        # In the order of their numbers: joined chunks are written after later small ones.
        chunks = rows(path, "SELECT sequence, begin_ns, end_ns, events, parts FROM chunks "
                            f"WHERE rank = {rank} ORDER BY sequence")
        following = [0] + [chunk[0] + chunk[4] for chunk in chunks]
        check(chunks and all(chunk[0] == expected for chunk, expected in zip(chunks, following)),
              f"{path}: chunks of rank {rank} have holes")
        check(all(begin <= end for _, begin, end, count, _ in chunks if count), f"{path}: a chunk ends before it begins")


def scenario(network, folder):
    subprocess.run([BIN / "shardscope", "keys", folder / "keys"], check=True, stdout=subprocess.DEVNULL)
    endpoint = "tcp://10.77.0.1:5711"
    first, second = folder / "first.zscope", folder / "second.zscope"

    def collector(path):
        return network.start("a", BIN / "shardscope", "record", path, "--keys", folder / "keys", "--listen", endpoint)

    def rank(number, host, key=None, world=2):
        return network.start(host, BIN / "zero3_run", number, world, endpoint, 1_000_000_000, "network-test",
                             environment={"SHARDSCOPE_KEY": str(key)} if key else None)

    recorder = collector(first)
    ranks = [rank(0, "b", folder / "keys/publish.key"), rank(1, "c", folder / "keys/publish.key")]
    processes = [recorder, *ranks]
    try:
        until(lambda: min(events(first).get(r, 0) for r in (0, 1)) > 0, "events of both ranks")

        # Without a key, from a host that is on the same link.
        stranger = rank(0, "c", world=1)  # it meets no other rank
        processes.append(stranger)
        until(lambda: catches_sigterm(stranger), "the stranger's start")
        time.sleep(1)
        os.killpg(stranger.pid, signal.SIGTERM)
        check(stranger.wait(30) == 0, "the stranger's own run was disturbed")

        # A cut link: one still receives, the other does not.
        network.cut.add("c")
        at_cut = events(first)
        # What had arrived before is written by then: the recorder writes in the order in which events come.
        until(lambda: events(first)[0] > at_cut[0] + 1000, "events of rank 0 after the cut")
        before = events(first)
        until(lambda: events(first)[0] > before[0] + 1000, "rank 0 while the link of rank 1 is cut")
        check(events(first)[1] == before[1], "events came over a cut link")
        check(all(r.poll() is None for r in ranks), "a rank ended because a link was cut")
        network.cut.clear()
        until(lambda: events(first)[1] > before[1] + 1000, "rank 1 after its link was healed")

        # A killed collector: the ranks do not notice, the next one takes over.
        os.killpg(recorder.pid, signal.SIGKILL)
        recorder.wait()
        time.sleep(1)
        check(all(r.poll() is None for r in ranks), "a rank ended with the collector")
        recorder = collector(second)
        processes.append(recorder)
        until(lambda: min(events(second).get(r, 0) for r in (0, 1)) > 1000, "both ranks at the restarted collector")
        until(lambda: rows(second, "SELECT count(*) FROM ranks WHERE host != '' AND connected")[0][0] == 2, "both hosts")
        for process in ranks:
            os.killpg(process.pid, signal.SIGTERM)
        for process in ranks:
            check(process.wait(30) == 0, f"a rank ended badly: {process.stdout.read()}")
        check(recorder.wait(30) == 0, f"the collector did not end with the run: {recorder.stdout.read()}")
    finally:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    # What the killed collector had committed opens, and says that it is not all.
    info = read("info", first)
    check(not info["complete"] and info["events"] > 0, f"the first recording: {info}")
    check({r["host"] for r in info["ranks"]} == {"host-b", "host-c"}, f"hosts: {info['ranks']}")
    check_chunks(first)
    messages = [text for (text,) in rows(first, "SELECT text FROM messages")]
    check(any("refused a connection" in text for text in messages), f"no message about the refused connection: {messages}")

    # The second is whole but for what was before it, and that is shown as a gap of each rank.
    info = read("info", second)
    check(not info["complete"] and not info["problems"], f"the second recording: {info}")
    check(all(r["finished"] and r["exit_code"] == 0 and r["lost_messages"] > 0 for r in info["ranks"]), f"{info['ranks']}")
    check_chunks(second)
    gaps = {rank for (rank,) in rows(second, "SELECT rank FROM gaps")}
    check(gaps == {0, 1}, f"gaps of ranks {gaps}")
    summary = read("summary", second)
    [(lost, in_gaps)] = rows(second, "SELECT (SELECT sum(lost_messages) FROM ranks), (SELECT sum(messages) FROM gaps)")
    check(lost > 0 and lost == in_gaps == summary["lost_messages"],
          f"lost {lost}, in gaps {in_gaps}, in the summary {summary['lost_messages']}")
    # A step that one rank lost may be there from the other; none is missing in between.
    steps = [step for (step,) in rows(second, "SELECT step FROM steps ORDER BY step")]
    check(len(steps) > 10 and steps == list(range(steps[0], steps[-1] + 1)), f"steps have holes: {steps}")
    check(summary["run"]["world"] == 2, f"{summary}")
    print(f"{network.carried} packets carried, {network.lost} lost; steps {steps[0]} to {steps[-1]} in the second recording")


def chain(network, folder):
    for name in ("top", "b", "c"):
        subprocess.run([BIN / "shardscope", "keys", folder / name], check=True, stdout=subprocess.DEVNULL)
    path, endpoint, inner = folder / "chain.zscope", "tcp://10.77.0.1:5711", "tcp://127.0.0.1:5811"
    processes = []

    def started(*arguments, **options):
        processes.append(network.start(*arguments, **options))
        return processes[-1]

    def node(host):
        return started(host, BIN / "shardscope", "collect", "--upstream", endpoint, "--upstream-key",
                       folder / "top/publish.key", "--listen", inner, "--keys", folder / host)

    def gone_past(rank, count, what):
        before = events(path).get(rank, 0)
        until(lambda: events(path).get(rank, 0) > before + count, what)

    try:
        root = started("a", BIN / "shardscope", "record", path, "--keys", folder / "top", "--listen", endpoint)
        nodes = {host: node(host) for host in "bc"}
        ranks = [started(host, BIN / "zero3_run", number, 2, inner, 1_000_000_000, "chain-test",
                         environment={"SHARDSCOPE_KEY": str(folder / host / "publish.key"), "LOCAL_WORLD_SIZE": "1"})
                 for number, host in enumerate("bc")]
        until(lambda: min(events(path).get(r, 0) for r in (0, 1)) > 1000, "events of both ranks through their nodes")

        network.cut.add("c")
        gone_past(0, 1000, "rank 0 while the link of the other node is cut")
        check(all(process.poll() is None for process in processes), "a process ended because a link was cut")
        network.cut.clear()
        gone_past(1, 1000, "rank 1 after its node's link was healed")

        os.killpg(nodes["b"].pid, signal.SIGKILL)
        nodes["b"].wait()
        gone_past(1, 1000, "rank 1 while the collector of the other node is dead")
        check(all(r.poll() is None for r in ranks), "a rank ended with its node's collector")
        nodes["b"] = node("b")
        gone_past(0, 1000, "rank 0 through the restarted collector of its node")
        for process in ranks:
            os.killpg(process.pid, signal.SIGTERM)
        for process in [*ranks, *nodes.values(), root]:
            check(process.wait(60) == 0, f"a process ended badly: {process.stdout.read()}")
    finally:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    info = read("info", path)
    check(info["complete"] == (info["dropped"] + info["lost_messages"] == 0) and not info["problems"], f"the chain's recording: {info}")
    check({r["host"] for r in info["ranks"]} == {"host-b", "host-c"}, f"hosts: {info['ranks']}")
    check(all(r["finished"] and r["exit_code"] == 0 for r in info["ranks"]), f"{info['ranks']}")
    check_chunks(path)
    # What the killed collector had received and not passed on is lost between rank and root, and shown.
    lost = {r["rank"]: r["lost_messages"] for r in info["ranks"]}
    in_gaps = dict(rows(path, "SELECT rank, sum(messages) FROM gaps GROUP BY rank"))
    check(all(in_gaps.get(rank, 0) == count for rank, count in lost.items()), f"lost {lost}, in gaps {in_gaps}")
    check(read("summary", path)["lost_messages"] == sum(lost.values()), f"lost {lost}, in the summary something else")
    print(f"chain: messages lost by rank {lost}, events {events(path)}")


def main():
    if os.geteuid() != 0:
        skip("network namespaces need root")
    for program in ("ip", "unshare"):
        if shutil.which(program) is None:
            skip(f"{program} is not installed (apt-get install iproute2 util-linux)")
    with Network("abc") as network, tempfile.TemporaryDirectory() as folder:
        scenario(network, pathlib.Path(folder))
        chain(network, pathlib.Path(folder))


main()
