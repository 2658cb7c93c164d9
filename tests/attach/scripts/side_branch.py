"""A training with FSDP2 of two ranks in which a group has no backward: side_branch.py [named]. What the branch `side` gives is
computed in the forward and is in no loss. `named`: each block names the group whose backward comes next."""
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

WIDTH, STEPS = 64, 6


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.low, self.side, self.high = (nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)) for _ in range(3))
        self.seen = None

    def forward(self, x):
        x = self.low(x)
        self.seen = self.side(x).detach().mean()  # looked at, not trained
        return self.high(x).square().mean()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(7)
    model = Net()
    for block in (model.low, model.side, model.high):
        fully_shard(block)
    fully_shard(model)
    if "named" in sys.argv:
        model.high.set_modules_to_backward_prefetch([model.low])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(STEPS):
        model(torch.randn(4, WIDTH)).backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.barrier()
    dist.destroy_process_group()


main()
