"""Ranks that hang on purpose, with PyTorch's Flight Recorder on: flight.py MODE FOLDER. After a while each writes
its dump as a pickle and as JSON and ends. What rank 1 does in its third step: nothing (healthy), returns, skips (a collective),
swaps (two of them), sizes (of one), types, group (another operation in a group of its own and rank 0), receives (what no rank
sends; gloo records no messages), alltoall (sums that do not agree), dies (before it writes)."""
import os
import pathlib
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

MODE, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
ODD, STEPS, SECONDS = 1, 4, 4.0
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def write():
    for folder, dump in (("pickle", c10d._dump_fr_trace), ("json", c10d._dump_fr_trace_json)):
        (FOLDER / folder).mkdir(parents=True, exist_ok=True)
        (FOLDER / folder / f"trace_rank_{RANK}").write_bytes(as_bytes(dump()))


def as_bytes(dump):
    return dump if isinstance(dump, bytes) else dump.encode()


def write_and_end():
    time.sleep(SECONDS)
    if not (MODE == "dies" and RANK == ODD):
        write()
    os._exit(0)


def forward(step, odd):
    size = 6 if odd and MODE == "sizes" else 4
    kind = torch.int32 if odd and MODE == "types" else torch.float32
    if odd and MODE == "swaps":
        dist.broadcast(torch.ones(8), 0)
    if not (odd and MODE == "skips"):
        dist.all_reduce(torch.ones(size, dtype=kind))
    if not (odd and MODE == "swaps"):
        dist.broadcast(torch.ones(8), 0)


def gather(odd):
    shard = torch.ones(3)
    if odd and MODE == "returns":
        return False
    dist.all_gather([torch.empty(3) for _ in range(WORLD)], shard)
    return True


def alltoall(odd):
    # Each gives one element to every rank; the odd one takes two of the last.
    takes = [1] * WORLD
    if odd:
        takes[-1] = 2
    dist.all_to_all_single(torch.empty(sum(takes)), torch.ones(WORLD), takes, [1] * WORLD)


def train(pair):
    for step in range(STEPS):
        odd = RANK == ODD and step == 2
        if odd and MODE == "dies":
            time.sleep(60)
        forward(step, odd)
        if not gather(odd):
            break
        if RANK < 2:
            (dist.barrier if odd and MODE == "group" else lambda group: dist.all_reduce(torch.ones(2), group=group))(group=pair)
        if odd and MODE == "receives":
            dist.recv(torch.empty(5), 0)
        if MODE == "alltoall":
            alltoall(odd)


def main():
    dist.init_process_group("gloo")
    pair = dist.new_group([0, 1], group_desc="pair")
    threading.Thread(target=write_and_end, daemon=True).start()
    try:
        train(pair)
    except RuntimeError as error:  # gloo itself finds that sizes differ, on one side; the others wait for it
        print(error, file=sys.stderr)
    time.sleep(60)


main()
