"""The optimizer's parameter groups in the run's tables: their initial settings, and their parameters."""
import weakref

from shardscope._session import session

_added = weakref.WeakSet()  # optimizers of PyTorch
_shards = []  # (weak reference to FSDP2's parameter, its number): the optimizer holds its shard
_grouped = set()  # parameters that are in a group: with two optimizers the first one counts


def forget():
    _added.clear()
    _shards.clear()
    _grouped.clear()


def add(run, groups):
    """`groups`: [(settings, parameters), ...] in the optimizer's order. A single group of everything is not added."""
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
    """Registers a parameter of FSDP2, whose number belongs to the FSDPParam and not to the shard in the optimizer."""
    _shards.append((weakref.ref(param), number))


def numbers_of(params):
    shards = {id(param().sharded_param): number for param, number in _shards if param() is not None}
    found = (session.params.get(id(param), shards.get(id(param))) for param in params)
    return [number for number in found if number is not None]


def value(setting):
    """The setting as a number; 0 if the optimizer does not have it."""
    return 0.0 if setting is None else float(setting)


def add_of(optimizer):
    """Adds the groups of a PyTorch optimizer at its first step: its model is described by then."""
    if optimizer in _added:
        return
    _added.add(optimizer)
    groups = [(group, group["params"]) for group in optimizer.param_groups]
    if any(numbers_of(params) for _, params in groups) and add(session.run, groups):
        session.run.publish()


def of_deepspeed(optimizer, stage):
    """[(settings, the model's parameters)]. ZeRO replaces them in the optimizer's groups by flat fp32 parameters."""
    if stage == 3:
        return [(group, group["params"]) for group in getattr(optimizer, "trainable_param_groups", ())]
    inner = getattr(optimizer, "optimizer", optimizer)
    for name in ("bit16_groups", "fp16_groups", "bf16_groups"):
        if getattr(optimizer, name, None):
            return list(zip(inner.param_groups, getattr(optimizer, name)))
    return [(group, group["params"]) for group in getattr(inner, "param_groups", ())]
