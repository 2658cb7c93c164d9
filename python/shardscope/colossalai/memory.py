"""Memory of a LowLevelZeroOptimizer.

| attribute | category |
|---|---|
| the model's parameters, padded: this rank's part, the rest | parameter shards, gathered |
| _master_param_groups_of_current_rank | master weights; host memory where cpu_offload is on |
| Parameter.grad | whole gradients |
| pg_to_grad_store: of stage 1 whole gradients, of stage 2 this rank's part, until zero_grad() | whole gradients, gradient shards |
| optim.state, by names | momentum, variance |
"""
import weakref

from shardscope import _memory as m


def source_of(model, optimizer):
    held, of = weakref.ref(optimizer), weakref.ref(model)

    def fixed(add, count):
        optimizer, model = held(), of()
        if optimizer is None or model is None:
            return
        for param, whole in optimizer._working_param_to_padded_working_param.items():
            m.part_of_whole(add, count, whole, optimizer.pid_to_bucket_store[id(param)].world_size)
        for param in model.parameters():
            add(m.PARAM_SHARD, param)
        for buffer in model.buffers():
            add(m.OTHER, buffer)
        for group in optimizer._master_param_groups_of_current_rank.values():
            for master in group:
                add(m.MASTER_WEIGHT, master, optimizer._cpu_offload)
        m.states_of(optimizer.optim, add, optimizer._cpu_offload)

    def reduced():
        stores = getattr(held(), "pg_to_grad_store", {}).values()
        return [part for store in stores for group in store._grads_of_params.values() for parts in group.values() for part in parts]

    category = m.GRAD_SHARD if optimizer._partition_grads else m.GRAD_FULL
    return m.Source(fixed, [m.gradient_slot(optimizer.param_to_pg, m.GRAD_FULL), m.Slot(category, None, reduced)])
