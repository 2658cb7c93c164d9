"""DeepSpeed 3 whose hooks are taken away and made anew before every step but the first, as TRL does around a generation:
hooks_again.py OUT"""
import hashlib
import json
import os
import sys

import deepspeed
import torch
from torch import nn
from trl.models.utils import add_hooks, remove_hooks


def main():
    deepspeed.init_distributed("gloo")
    rank = int(os.environ["RANK"])
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 8))
    config = {"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0},
              "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}}}
    engine = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)[0]
    losses = []
    for step in range(4):
        if step > 0:
            remove_hooks(engine)
            add_hooks(engine)
        x = torch.randn(2, 8, generator=torch.Generator().manual_seed(10 * step + rank))
        loss = engine(x).square().mean()
        engine.backward(loss)
        engine.step()
        losses.append(loss.item().hex())
    total = hashlib.sha256()
    for param in model.parameters():
        total.update(param.ds_tensor.detach().contiguous().view(torch.uint8).numpy().tobytes())
    with open(f"{sys.argv[1]}.{rank}", "w", encoding="utf-8") as file:
        json.dump({"losses": losses, "weights": total.hexdigest()}, file)


if __name__ == "__main__":
    main()
