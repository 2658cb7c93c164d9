"""Two engines that are trained in turns, one frozen beside them: two_engines.py OUT STAGE"""
import hashlib
import json
import os
import sys

import deepspeed
import torch
from torch import nn


def engine(width, seed, stage, trained=True):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(8, width), nn.Tanh(), nn.Linear(width, 8))
    config = {"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": stage, "stage3_param_persistence_threshold": 0}}
    if trained:
        config["optimizer"] = {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}}
    return deepspeed.initialize(model=model, model_parameters=model.parameters() if trained else None, config=config)[0]


def main():
    deepspeed.init_distributed("gloo")
    rank, stage = int(os.environ["RANK"]), int(sys.argv[2])
    frozen = engine(4, 1, 3 if stage == 3 else 0, trained=False)  # made first, as TRL makes its reference
    frozen.eval()
    pair = [engine(16, 2, stage), engine(24, 3, stage)]
    losses = []
    for step in range(4):
        x = torch.randn(2, 8, generator=torch.Generator().manual_seed(10 * step + rank))
        trained = pair[step % 2]
        with torch.no_grad():
            wanted = frozen(x)
        loss = (trained(x) - wanted).square().mean()
        trained.backward(loss)
        trained.step()
        losses.append(loss.item().hex())
    total = hashlib.sha256()
    for each in pair:
        for param in each.module.parameters():
            total.update(getattr(param, "ds_tensor", param).detach().contiguous().view(torch.uint8).numpy().tobytes())
    with open(f"{sys.argv[1]}.{rank}", "w", encoding="utf-8") as file:
        json.dump({"losses": losses, "weights": total.hexdigest()}, file)


if __name__ == "__main__":
    main()
