"""Memory of Megatron-Core. Attributes missing in a configuration count as empty.

| object | attribute | category |
|---|---|---|
| _ParamAndGradBuffer | param_data: this rank's part, the rest | parameter shards, gathered |
| | grad_data | whole gradients |
| DistributedOptimizer | shard_fp32_from_float16_groups | master weights |
| Float16OptimizerWithFloat16Params | fp32_from_float16_groups | master weights |
| both | gradients of these, unless they are views of grad_data | gradient shards |
| all | states of the inner optimizer by their names | momentum, variance |
| Parameter | grad, until it is in grad_data | whole gradients |
| Parameter | itself, if no buffer holds it | parameter shards |
"""
import weakref

from shardscope import _memory as m

MASTERS = ("shard_fp32_from_float16_groups", "fp32_from_float16_groups")
optimizers, models = [], []  # weak references, in order of creation


def masters_of(optimizer):
    for name in MASTERS:
        for group in getattr(optimizer, name, ()):
            yield from (param for param in group if param is not None)


def all_optimizers():
    return [optimizer for optimizer in (held() for held in optimizers) if optimizer is not None]


def buffers_of(ddp):
    return [] if ddp is None else ddp.buffers + ddp.expert_parallel_buffers


def gradients_of_masters():
    """Gradients that are copies; views are in a buffer's storage."""
    whole = {buffer.grad_data.untyped_storage().data_ptr() for held in models for buffer in buffers_of(held())}
    return [grad for optimizer in all_optimizers() for grad in (param.grad for param in masters_of(optimizer))
            if grad is not None and grad.untyped_storage().data_ptr() not in whole]


of_masters = m.Slot(m.GRAD_SHARD, None, gradients_of_masters)  # of all models


def source_of(ddp):
    held = weakref.ref(ddp)
    models.append(held)

    def fixed(add, count):
        ddp = held()
        if ddp is None:
            return
        for buffer in buffers_of(ddp):
            if buffer.param_data is not None:
                m.part_of_whole(add, count, buffer.param_data, buffer.data_parallel_world_size)
            add(m.GRAD_FULL, buffer.grad_data)
        for param in ddp.module.parameters():
            add(m.PARAM_SHARD, param)
        for buffer in ddp.module.buffers():
            add(m.OTHER, buffer)
        for optimizer in all_optimizers():
            for param in masters_of(optimizer):
                add(m.MASTER_WEIGHT, param)
            if getattr(optimizer.optimizer, "state", None):
                m.states_of(optimizer.optimizer, add)

    return m.Source(fixed, [m.gradient_slot([p for p in ddp.module.parameters() if p.requires_grad], m.GRAD_FULL), of_masters])
