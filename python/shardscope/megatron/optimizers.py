"""Megatron-Core's optimizers: steps, gradient norm, loss scale, skipped steps, parameter groups.

| symbol of optimizer.optimizer | event |
|---|---|
| MegatronOptimizer.__init__, after | parameter groups; the holder of master weights and states |
| ChainedOptimizer.step, MixedPrecisionOptimizer.step, FP32Optimizer.step, before | gate `optimizer`, phase optimizer |
| the same, after | norm, learning rate, loss scale, overflow, step end |
| MixedPrecisionOptimizer.step_with_ready_grads, FP32Optimizer.step_with_ready_grads | optimizer_begin, optimizer_end, for each optimizer in a chain |
"""
import weakref

from shardscope import _core, _hooks, _kinds as k, _memory, param_groups
from shardscope._hooks import Adapter
from shardscope._session import NO_ID, session
from shardscope.megatron import memory

events = _core.events
numbers = weakref.WeakKeyDictionary()  # optimizer -> its index among those of this process


def adapters():
    return [Adapter("Megatron-Core, optimizers", "megatron.core.optimizer.optimizer", install)]


def install(table):
    _hooks.at_turn_off(forget)
    table.wrap("MegatronOptimizer.__init__", "self optimizer config", after=made)
    for cls in ("ChainedOptimizer", "MixedPrecisionOptimizer", "FP32Optimizer"):
        table.wrap(f"{cls}.step", "self", before=step_begins, after=step_ended)
    for cls in ("MixedPrecisionOptimizer", "FP32Optimizer"):
        table.wrap(f"{cls}.step_with_ready_grads", "self", before=update_begins, after=update_ended)


def forget():
    numbers.clear()
    memory.optimizers.clear()


def made(_, result, optimizer, inner, *args, **kwargs):
    """Called before the distributed optimizer replaces the parameters in the groups by shards."""
    numbers[optimizer] = len(numbers)
    memory.optimizers.append(weakref.ref(optimizer))
    if session.started and inner is not None:
        groups = [(described(group), group["params"]) for group in inner.param_groups]
        if any(param_groups.numbers_of(params) for _, params in groups) and param_groups.add(session.run, groups):
            session.run.publish()


def described(group):
    """Includes the weight decay, which Megatron-Core's scheduler multiplies into the group only later."""
    return {**group, "weight_decay": (group.get("weight_decay") or 0.0) * group.get("wd_mult", 1.0)}


def parts_of(optimizer):
    return getattr(optimizer, "chained_optimizers", [optimizer])


def scale_of(optimizer):
    """(loss scale, further overflows before it is lowered) of this step's gradients; None: no loss scaling."""
    for part in parts_of(optimizer):
        scaler = getattr(part, "grad_scaler", None)
        if scaler is not None:
            return scaler.scale, max(getattr(scaler, "_hysteresis_tracker", NO_ID), 0)
    return None


def step_begins(optimizer):
    if session.started and session.in_step:
        session.begin_optimizer()
        return True, scale_of(optimizer)


def step_ended(token, result, optimizer):
    if token is None or not session.in_step:
        return
    succeeded, norm, _ = result
    if token[1] is not None:
        session.overflow(not succeeded)
        session.loss_scale(*token[1])
    if succeeded and norm is not None:
        session.grad_norm(norm)
    rates = [group.get("lr") for part in parts_of(optimizer) for group in part.param_groups]
    session.learning_rate(rates[0] if rates else None)
    session.end_step(skipped=not succeeded)


def update_begins(optimizer):
    if session.started and session.in_step and not optimizer.is_stub_optimizer:
        session.memory.sample(_memory.SUB_GROUP)
        update = numbers.get(optimizer, 0), session.step, sum(p.numel() for p in optimizer.get_parameters())
        events.optimizer_begin(k.COMPUTE, *update)
        return update


def update_ended(update, result, optimizer):
    if update is not None:
        events.optimizer_end(k.COMPUTE, *update)
