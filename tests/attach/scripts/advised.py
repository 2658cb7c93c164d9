"""A training of two ranks that a finding is about, and what the finding says: advised.py CASE [followed].

accumulate_ddp, accumulate_fsdp2: four micro-steps of a step reduce each; followed: the last one only.
held_fsdp2: groups stay gathered from their forward to their backward; followed: they are resharded.
diverge_fsdp2: a learning rate with which the loss is soon not finite; followed: a millionth of it."""
import contextlib
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from computes import Computes

WIDTH, LAYERS, STEPS, MICRO_STEPS, COMPUTES_S = 1024, 6, 6, 4, 0.02


class Layer(nn.Sequential):
    def forward(self, x):
        return Computes.apply(super().forward(x), COMPUTES_S)


def main(case, followed):
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(7)
    held = case == "held_fsdp2"
    layers = [(Layer if held else nn.Sequential)(nn.Linear(WIDTH, WIDTH), nn.Identity() if case == "diverge_fsdp2" else nn.Tanh())
              for _ in range(LAYERS)]
    model = nn.Sequential(*layers)
    if case == "accumulate_ddp":
        model = DistributedDataParallel(model)
    else:
        for layer in layers:
            fully_shard(layer, reshard_after_forward=followed or not held)
        fully_shard(model, reshard_after_forward=followed or not held)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e6 if case == "diverge_fsdp2" and not followed else 1e-3)
    for _ in range(STEPS):
        for micro_step in range(1 if held else MICRO_STEPS):
            last, within = held or micro_step == MICRO_STEPS - 1, contextlib.nullcontext()
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
