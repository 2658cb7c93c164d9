"""DistributedDataParallel: the model, micro-steps and steps. Its buckets are made and reduced in C++: their collectives
are recorded (collectives.py), which parameters are in them is not.

| symbol of torch.nn.parallel.distributed.DistributedDataParallel | event |
|---|---|
| __init__, after | the model: modules, parameters; the run starts |
| forward, before | micro-step begin, phase forward |
"""
from shardscope import _kinds as k
from shardscope._hooks import Adapter
from shardscope._session import session


def adapters():
    return [Adapter("DistributedDataParallel", "torch.nn.parallel.distributed", install)]


def install(table):
    table.wrap("DistributedDataParallel.__init__", "self module", after=made)
    table.wrap("DistributedDataParallel.forward", "self", before=forward)


def made(_, result, ddp, *args, **kwargs):
    import torch
    import torch.distributed as dist
    model = ddp.module
    types = {p.dtype for p in model.parameters()}
    size = max((t.itemsize for t in types), default=4)
    session.describe(model, lambda run: describe(run, model), stage=0, kind="ddp", plain=True,
                     framework=f"DistributedDataParallel (PyTorch {torch.__version__})", device=str(ddp.device),
                     ranks=(dist.get_rank(), dist.get_world_size()), param_bytes=size, grad_bytes=size)


def describe(run, model):
    numbers = session.add_modules(model)
    for name, param in model.named_parameters():
        session.add_param(param, name, param.shape, param.numel(), trained=param.requires_grad, dtype=param.dtype)
    for path, module in model.named_modules():
        for param in module.parameters(recurse=False):
            session.use_param(numbers[path], session.params[id(param)])


def forward(ddp, *args, **kwargs):
    import torch
    if session.watches(ddp.module) and torch.is_grad_enabled() and ddp.training:
        session.begin_micro_step()
