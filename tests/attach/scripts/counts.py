"""DistributedDataParallel with counters of its own: shardscope.counter() in each step."""
import torch
import torch.distributed as dist
from torch import nn

import shardscope


def main():
    shardscope.counter("before", 1.0)  # nothing is recorded yet: no event and no error
    dist.init_process_group("gloo")
    model = nn.parallel.DistributedDataParallel(nn.Linear(16, 16))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        model(torch.ones(2, 16)).sum().backward()
        shardscope.counter("reward", torch.tensor(0.5 * step), unit="points")
        shardscope.counter("sent", 1000 * step, "B", accumulated=True)
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
