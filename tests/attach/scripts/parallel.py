"""A training of two ranks that are no copies of one another: parallel.py KIND OUT.

KIND: `deepspeed`, two stages of DeepSpeed's PipelineModule; `torch`, two stages of torch.distributed.pipelining, each wrapped by
FSDP2; `tensor`, two ranks of tensor parallelism whose parts FSDP2 wraps. OUT.RANK gets losses and a digest of the rank's weights.
"""
import hashlib
import json
import os
import sys

import torch
import torch.distributed as dist
from torch import nn

WIDTH, MICRO, STEPS, BATCH = 16, 4, 3, 2


def blocks():
    torch.manual_seed(7)
    return [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()) for _ in range(4)]


def loss_of(output, target):
    return (output - target).square().mean()


def batch(step, count):
    generator = torch.Generator().manual_seed(step)
    return torch.randn(count, WIDTH, generator=generator), torch.randn(count, WIDTH, generator=generator)


def deepspeed_pipeline():
    import deepspeed
    from deepspeed.pipe import PipelineModule
    deepspeed.init_distributed("gloo")
    model = PipelineModule(blocks(), num_stages=2, loss_fn=loss_of, partition_method="uniform")
    config = {"train_micro_batch_size_per_gpu": BATCH, "gradient_accumulation_steps": MICRO, "zero_optimization": {"stage": 1},
              "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}}}
    engine, *_ = deepspeed.initialize(model=model, model_parameters=list(model.parameters()), config=config)
    losses = []
    for step in range(STEPS):
        micros = iter([batch(step * MICRO + micro, BATCH) for micro in range(MICRO)])
        losses.append(float(engine.train_batch(micros)).hex())
    engine.eval_batch(iter([batch(100 + micro, BATCH) for micro in range(MICRO)]))
    return losses, model


def torch_pipeline():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B
    mesh = init_device_mesh("cpu", (2, 1), mesh_dim_names=("pp", "dp"))
    rank = dist.get_rank()
    model = nn.Sequential(*blocks()[2 * rank:2 * rank + 2])
    for block in model:
        fully_shard(block, mesh=mesh["dp"])
    fully_shard(model, mesh=mesh["dp"])
    stage = PipelineStage(model, rank, 2, torch.device("cpu"), group=mesh["pp"].get_group())
    schedule = Schedule1F1B(stage, MICRO, loss_fn=loss_of)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for step in range(STEPS):
        x, y = batch(step, BATCH * MICRO)
        given = []
        if rank == 0:
            schedule.step(x)
        else:
            schedule.step(target=y, losses=given)
        optimizer.step()
        optimizer.zero_grad()
        losses.append([float(each).hex() for each in given])
    return losses, model


def tensor_parallel():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    mesh = init_device_mesh("cpu", (1, 2), mesh_dim_names=("dp", "tp"))
    first, second = blocks()[:2]
    model = nn.Sequential(first[0], nn.ReLU(), second[0])
    parallelize_module(model, mesh["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    fully_shard(model, mesh=mesh["dp"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for step in range(STEPS):
        x, y = batch(step, BATCH)
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item().hex())
    return losses, model


def digest(model):
    total = hashlib.sha256()
    for name, param in sorted(model.named_parameters()):
        param = param.detach()
        total.update(name.encode() + getattr(param, "_local_tensor", param).float().numpy().tobytes())
    return total.hexdigest()


def main():
    kind, out = sys.argv[1:]
    if kind != "deepspeed":
        dist.init_process_group("gloo")
    losses, model = {"deepspeed": deepspeed_pipeline, "torch": torch_pipeline, "tensor": tensor_parallel}[kind]()
    with open(f"{out}.{os.environ['RANK']}", "w", encoding="utf-8") as file:
        json.dump({"losses": losses, "weights": digest(model)}, file)
    dist.barrier()
    dist.destroy_process_group()


main()
