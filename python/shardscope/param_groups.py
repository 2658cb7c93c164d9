"""The optimizer's parameter groups for the run's tables: their settings at the start, and which parameters are in which."""
import weakref

from shardscope._session import session

_added = weakref.WeakSet()  # optimizers of PyTorch
_shards = []  # (FSDP2's parameter, weakly; its number): the optimizer holds its shard
_grouped = set()  # parameters that are in a group: of two optimizers the first one counts


def forget():
    _added.clear()
    _shards.clear()
    _grouped.clear()


def add(run, groups):
    """`groups`: [(settings, parameters), ...] in the optimizer's order. One group of everything needs no row."""
    if len(groups) < 2:
        return False
    for index, (settings, params) in enumerate(groups):
        beta1, beta2 = settings.get("betas") or (settings.get("momentum"), None)
        numbers = [number for number in numbers_of(params) if number not in _grouped]
        _grouped.update(numbers)
        run.add_param_group(name=str(settings.get("name") or f"group {index}"), lr=value(settings.get("lr")),
                            beta1=value(beta1), beta2=value(beta2), eps=value(settings.get("eps")),
                            weight_decay=value(settings.get("weight_decay")), params=numbers)
    return True


def shard_of(param, number):
    """One of FSDP2's, which is described by itself and not by the tensor that it makes of it."""
    _shards.append((weakref.ref(param), number))


def numbers_of(params):
    shards = {id(param().sharded_param): number for param, number in _shards if param() is not None}
    found = (session.params.get(id(param), shards.get(id(param))) for param in params)
    return [number for number in found if number is not None]


def value(setting):
    """0 for what an optimizer does not have."""
    return 0.0 if setting is None else float(setting)


def add_of(optimizer):
    """PyTorch's own, at its first step: its model is described by then."""
    if optimizer in _added:
        return
    _added.add(optimizer)
    groups = [(group, group["params"]) for group in optimizer.param_groups]
    if any(numbers_of(params) for _, params in groups) and add(session.run, groups):
        session.run.publish()


def of_deepspeed(optimizer, stage):
    """[(settings, the model's parameters)]. ZeRO puts flat fp32 parameters into the optimizer's groups in their place."""
    if stage == 3:
        return [(group, group["params"]) for group in getattr(optimizer, "trainable_param_groups", ())]
    inner = getattr(optimizer, "optimizer", optimizer)
    for name in ("bit16_groups", "fp16_groups", "bf16_groups"):
        if getattr(optimizer, name, None):
            return list(zip(inner.param_groups, getattr(optimizer, name)))
    return [(group, group["params"]) for group in getattr(inner, "param_groups", ())]
