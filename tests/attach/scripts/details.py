"""Small trainings: details.py KIND OUT. KIND: `one`, DeepSpeed 3; `late`, the same with a module that is made after two steps;
`redundancy`, DistributedDataParallel with ZeroRedundancyOptimizer."""
import hashlib
import json
import os
import sys

import torch
import torch.distributed as dist
from torch import nn

WIDTH, STEPS = 16, 4


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.late = None

    def forward(self, x):
        x = self.last(self.second(self.first(x).relu()).relu())
        if self.late is not None:
            import deepspeed
            with deepspeed.zero.GatheredParameters(list(self.late.parameters())), torch.no_grad():
                more = 0.1 * torch.nn.functional.linear(torch.ones_like(x), self.late.weight)
            x = x + more
        return x.square().mean()


def batch(step, rank):
    return torch.randn(4, WIDTH, generator=torch.Generator().manual_seed(10 * step + rank))


def deepspeed_3(with_late):
    import deepspeed
    deepspeed.init_distributed("gloo")
    torch.manual_seed(7)
    config = {"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0},
              "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}}}
    engine, *_ = deepspeed.initialize(model=Net(), config=config)
    losses = []
    for step in range(STEPS):
        if with_late and step == 2:
            torch.manual_seed(11)
            late = nn.Linear(WIDTH, WIDTH, bias=False)
            deepspeed.zero.Init(module=late, config_dict_or_path=config)
            engine.module.late = late
        loss = engine(batch(step, dist.get_rank()))
        engine.backward(loss)
        engine.step()
        losses.append(loss.item().hex())
    with deepspeed.zero.GatheredParameters(list(engine.module.parameters())):
        return losses, digest(engine.module)


def redundancy():
    from torch.distributed.optim import ZeroRedundancyOptimizer
    dist.init_process_group("gloo")
    torch.manual_seed(7)
    model = nn.parallel.DistributedDataParallel(nn.Sequential(*(nn.Linear(64, 64) for _ in range(8))))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW, lr=1e-3)
    losses = []
    for step in range(STEPS):
        loss = model(torch.randn(4, 64, generator=torch.Generator().manual_seed(step))).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item().hex())
    return losses, digest(model)


def digest(model):
    total = hashlib.sha256()
    for name, param in model.named_parameters():
        total.update(name.encode() + param.detach().numpy().tobytes())
    return total.hexdigest()


def main():
    kind, out = sys.argv[1:]
    losses, weights = redundancy() if kind == "redundancy" else deepspeed_3(kind == "late")
    with open(f"{out}.{os.environ['RANK']}", "w", encoding="utf-8") as file:
        json.dump({"losses": losses, "weights": weights}, file)
    dist.barrier()
    dist.destroy_process_group()


main()
