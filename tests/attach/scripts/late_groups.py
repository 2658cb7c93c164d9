"""A training with FSDP2 of two ranks whose large groups are prefetched too late for their backward: late_groups.py [ahead].
Groups come in threes: one that computes for long, one that does not, and a large one. By itself FSDP2 asks for the next group
alone, which is for a large one while hardly anything is computed. `ahead`: each group names the two that come."""
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

from computes import Computes

WIDTH, LARGE, THREES, STEPS, COMPUTES_S = 64, 6_000_000, 4, 8, 0.08


class Part(nn.Module):
    def __init__(self, long=False, frozen=0, trained=True):
        super().__init__()
        self.linear, self.long = nn.Linear(WIDTH, WIDTH).requires_grad_(trained), long
        # Of a large model that is adapted: gathered, and not trained.
        self.frozen = nn.Parameter(torch.randn(frozen), requires_grad=False) if frozen else None

    def forward(self, x):
        x = x + torch.tanh(self.linear(x))
        if self.frozen is not None:
            x = x + self.frozen[:WIDTH]
        return Computes.apply(x, COMPUTES_S) if self.long else x


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(7)
    # As the backward meets them: long, short, large. The short one is not trained: on gloo the host would wait for its
    # reduction, and for the gather ahead of it.
    parts = [part for _ in range(THREES) for part in (Part(frozen=LARGE), Part(trained=False), Part(long=True))]
    model = nn.Sequential(*parts)
    for part in parts:
        fully_shard(part)
    fully_shard(model)
    model._set_unshard_async_op(True)  # as on a GPU, where a stream waits: else the host does, for each gather as it issues it
    for index, part in enumerate(parts):
        part.set_modules_to_forward_prefetch(parts[index + 1:index + 3])
        if "ahead" in sys.argv:
            part.set_modules_to_backward_prefetch(parts[max(index - 2, 0):index][::-1])
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    for _ in range(STEPS):
        model(torch.randn(4, WIDTH)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.barrier()
    dist.destroy_process_group()


main()
