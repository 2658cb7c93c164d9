"""DistributedDataParallel: the model, micro-steps and steps. Its buckets are in ddp_buckets.py.

| symbol of torch.nn.parallel.distributed.DistributedDataParallel | event |
|---|---|
| __init__, after | the model: modules, parameters; the run starts |
| forward, before | micro-step begin, phase forward |
"""
import weakref

from shardscope import _memory, ddp_buckets, pipelining
from shardscope._hooks import Adapter
from shardscope._session import session


def adapters():
    return [Adapter("DistributedDataParallel", "torch.nn.parallel.distributed", install), *ddp_buckets.adapters()]


def install(table):
    table.wrap("DistributedDataParallel.__init__", "self module", after=made)
    table.wrap("DistributedDataParallel.forward", "self", before=forward)


def made(_, result, ddp, *args, **kwargs):
    import torch
    import torch.distributed as dist
    model = ddp.module
    types = {p.dtype for p in model.parameters()}
    size = max((t.itemsize for t in types), default=4)
    held = weakref.ref(ddp)  # a waiting description must keep no model alive
    described = session.watches(model)
    session.memory.watch(model, lambda: _memory.plain_source(model, buckets_of(held)), ddp.device.type if ddp.device else "cpu")
    session.describe(model, lambda run: describe(run, model), stage=0, kind="ddp", plain=True, then=lambda: held() and watch(held()),
                     framework=f"DistributedDataParallel (PyTorch {torch.__version__})", device=str(ddp.device), config=config_of(ddp),
                     ranks=(dist.get_rank(), dist.get_world_size()), param_bytes=size, grad_bytes=size)
    if described:  # by another DistributedDataParallel, or as a model that is already recorded
        ddp_buckets.watch(ddp)


def config_of(ddp):
    """What the script gave DistributedDataParallel, to be compared and shown."""
    settings = {name: getattr(ddp, name, None) for name in
                ("find_unused_parameters", "gradient_as_bucket_view", "static_graph", "broadcast_buffers")}
    cap = getattr(ddp, "bucket_bytes_cap", None)
    if isinstance(cap, int):
        settings["bucket_cap_mb"] = round(cap / (1 << 20), 6)  # of decimals that were cut to bytes
    return {"DistributedDataParallel": {name: value for name, value in settings.items() if value is not None}}


def buckets_of(held):
    """Bytes by DDP's own figure; if gradients are views of the buckets they are counted with those."""
    def size():
        ddp = held()
        if ddp is None or ddp.gradient_as_bucket_view:
            return 0
        known = ddp._get_ddp_logging_data()
        sizes = known.get("rebuilt_bucket_sizes") or known.get("bucket_sizes") or ""
        return sum(int(each) for each in sizes.split(",") if each.strip())
    return size


def watch(ddp):
    if pipelining.State.stages > 1:
        return
    from shardscope import modules
    modules.watch(ddp.module)
    ddp_buckets.watch(ddp)


def describe(run, model):
    if pipelining.State.stages > 1:
        pipelining.describe_as_stage(run, model)
        return
    numbers = session.add_modules(model)
    for name, param in model.named_parameters():
        session.add_param(param, name, param.shape, param.numel(), trained=param.requires_grad, dtype=param.dtype)
    session.use_params(model, numbers)


def forward(ddp, *args, **kwargs):
    import torch
    if session.watches(ddp.module) and torch.is_grad_enabled() and ddp.training and pipelining.State.stages == 1:
        session.begin_micro_step()
