"""Collectives of three ranks from before any training: beginning.py OUT [trains]. Two groups of two ranks, one of them destroyed at
once; the model's broadcasts follow. Without `trains` no model is made, which is no training that Shardscope knows."""
import json
import os
import sys

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    gone, pair = (dist.new_group([0, 1], group_desc=name) for name in ("gone", "tp"))
    value = torch.full((8,), float(rank))
    dist.broadcast(value, src=0)
    if rank < 2:
        dist.all_reduce(value, group=gone)
        dist.all_reduce(value, group=pair)
        dist.destroy_process_group(gone)
    dist.all_reduce(value)
    losses = []
    if "trains" in sys.argv:
        torch.manual_seed(7)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(2):
            loss = model(torch.ones(2, 8) * (rank + 1)).square().sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item().hex())
            if rank < 2 and step == 0:
                dist.all_reduce(value, group=pair)
    with open(f"{sys.argv[1]}.{os.environ['RANK']}", "w", encoding="utf-8") as file:
        json.dump({"losses": losses, "value": value.tolist()}, file)
    dist.barrier()
    dist.destroy_process_group()


main()
