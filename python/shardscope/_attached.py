"""Models that are there when attach() is called: each is described as its adapter does where it is made."""
import sys

from shardscope import _say

KNOWN = "a DeepSpeedEngine, a DistributedDataParallel, the root of fully_shard or a FullyShardedDataParallel"


def is_a(thing, module, name):
    """Of a class that is not imported for the question: nothing is one of it then."""
    cls = getattr(sys.modules.get(module), name, None)
    return cls is not None and isinstance(thing, cls)


def kind_of(of):
    """Raises TypeError for what is not trained by one of the frameworks."""
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
    """What a run has as the model."""
    return of.module if kind_of(of) in ("deepspeed", "ddp") else of


def check(of):
    """Ahead of anything that is changed: whether attach() can do it."""
    kind = kind_of(of)
    if kind == "fsdp2" and of._get_fsdp_state()._is_root is False or kind == "fsdp1" and of._is_root is False:
        raise ValueError(f"shardscope: {type(of).__name__} is a part of a model: attach its root, to which fully_shard or "
                         "FullyShardedDataParallel was applied last")


def describe(of):
    """After arm(). What is not there yet (the groups of fully_shard, until the first forward) is described when it is made."""
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
    except Exception as error:  # of our own making: the training goes on
        _say.warning(f"attach: {type(error).__name__}: {error}; {type(of).__name__} is not recorded")
