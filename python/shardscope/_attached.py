"""Models that exist when attach() is called: described as by their adapter when they are made."""
import sys

from shardscope import _say

KNOWN = "a DeepSpeedEngine, a DistributedDataParallel, the root of fully_shard or a FullyShardedDataParallel"


def is_a(thing, module, name):
    """isinstance() without importing the class: if its module is not imported, nothing is an instance."""
    cls = getattr(sys.modules.get(module), name, None)
    return cls is not None and isinstance(thing, cls)


def kind_of(of):
    """Framework of a model: "deepspeed", "ddp", "fsdp2" or "fsdp1". Raises TypeError for anything else."""
    if is_a(of, "deepspeed.runtime.engine", "DeepSpeedEngine"):
        return "deepspeed"
    if is_a(of, "torch.nn.parallel.distributed", "DistributedDataParallel"):
        return "ddp"
    if is_a(of, "torch.distributed.fsdp", "FSDPModule"):
        return "fsdp2"
    if is_a(of, "torch.distributed.fsdp", "FullyShardedDataParallel"):
        return "fsdp1"
    what = type(of).__name__
    if isinstance(of, str):
        what += " (a collector's is `endpoint=`)"
    elif is_a(of, "torch.nn", "Module"):
        what += ", which none of them has wrapped"
    raise TypeError(f"shardscope: {what}: not {KNOWN}. Where the model is made after attach(), attach() without it watches all")


def model_of(of):
    """The module that is recorded as the model."""
    return of.module if kind_of(of) in ("deepspeed", "ddp") else of


def check(of):
    """Raises if attach() cannot record `of`; called before anything is changed."""
    kind = kind_of(of)
    if kind == "fsdp2" and of._get_fsdp_state()._is_root is False or kind == "fsdp1" and of._is_root is False:
        raise ValueError(f"shardscope: {type(of).__name__} is a part of a model: attach its root, to which fully_shard or "
                         "FullyShardedDataParallel was applied last")


def describe(of):
    """Call after arm(). Parts that do not exist yet (groups of fully_shard) are described with the first forward."""
    from shardscope._session import session
    kind = kind_of(of)
    if session.watches(model_of(of)):
        return
    try:
        if kind == "deepspeed":
            from shardscope.deepspeed import engine
            engine.described(None, None, of)
        elif kind == "ddp":
            from shardscope import ddp
            ddp.made(None, None, of)
        elif kind == "fsdp2" and of._get_fsdp_state()._is_root:
            from shardscope import fsdp2
            fsdp2.lazily_made(True, None, of._get_fsdp_state())
    except Exception as error:  # an error in our code: the training continues
        _say.warning(f"attach: {type(error).__name__}: {error}; {type(of).__name__} is not recorded")
