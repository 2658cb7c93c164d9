"""A training of two ranks that do not do the same: differs.py ddp|zero2 skips|within|between OUT

skips: rank 1 does not call `extras.1`, a module without parameters, so no collective differs. within, between: rank 0 alone evaluates,
after the backward of each step or after the step. Writes OUT.RANK as train.py does. Not of FSDP2, whose gates are at modules that
gather, nor of DeepSpeed 3, which compares its ranks' modules and ends a run in which they differ.
"""
import json
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from train import digest  # noqa: E402

FRAMEWORK, MODE, OUT = sys.argv[1:4]
WIDTH, BLOCKS, STEPS, ODD = 16, 3, 60, 1


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(BLOCKS))
        self.extras = nn.ModuleList(nn.Tanh() for _ in range(BLOCKS))

    def forward(self, x, skip):
        for index, (block, extra) in enumerate(zip(self.blocks, self.extras)):
            x = block(x)
            if not (skip and index == 1):
                x = extra(x)
        return x.square().mean()


def engine_of(model):
    """(what is called, backward, update)."""
    if FRAMEWORK == "ddp":
        dist.init_process_group("gloo")
        run = nn.parallel.DistributedDataParallel(model)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        return run, lambda loss: loss.backward(), lambda: (optimizer.step(), optimizer.zero_grad())
    import deepspeed
    deepspeed.init_distributed("gloo")
    run, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config={
        "train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": int(FRAMEWORK[-1])},
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}}})
    return run, run.backward, run.step


def evaluated(model):
    model.eval()
    with torch.no_grad():
        loss = model(torch.ones(1, WIDTH), False).item().hex()
    model.train()
    return loss


def main():
    torch.set_num_threads(1)
    torch.manual_seed(7)
    rank, model, losses = int(os.environ["RANK"]), Net(), []
    run, backward, update = engine_of(model)
    for step in range(STEPS):
        time.sleep(0.05)
        generator = torch.Generator().manual_seed(1000 * step + rank)
        loss = run(torch.randn(2, WIDTH, generator=generator), MODE == "skips" and rank == ODD)
        backward(loss)
        losses.append(loss.item().hex())
        if MODE == "within" and rank == 0:
            losses.append(evaluated(model))
        update()
        if MODE == "between" and rank == 0:
            losses.append(evaluated(model))
    weights = digest(model.named_parameters())
    with open(f"{OUT}.{rank}", "w", encoding="utf-8") as file:
        json.dump({"losses": losses, "weights": weights}, file)
    dist.barrier()
    dist.destroy_process_group()


main()
