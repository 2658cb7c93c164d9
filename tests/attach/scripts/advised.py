"""A training of two ranks that accumulates, and what a finding says about it: advised.py CASE [followed].

accumulate_ddp, accumulate_fsdp2: four micro-steps of a step reduce each; followed: the last one only."""
import contextlib
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

WIDTH, LAYERS, STEPS, MICRO_STEPS = 1024, 6, 6, 4


def main(case, followed):
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(7)
    layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(LAYERS)]
    model = nn.Sequential(*layers)
    if case == "accumulate_ddp":
        model = DistributedDataParallel(model)
    else:
        for layer in layers:
            fully_shard(layer)
        fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(STEPS):
        for micro_step in range(MICRO_STEPS):
            last, within = micro_step == MICRO_STEPS - 1, contextlib.nullcontext()
            if followed and case == "accumulate_ddp" and not last:
                within = model.no_sync()
            if followed and case == "accumulate_fsdp2":
                model.set_requires_gradient_sync(last)
            with within:
                model(torch.randn(4, WIDTH)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.barrier()
    dist.destroy_process_group()


main(sys.argv[1], "followed" in sys.argv)
