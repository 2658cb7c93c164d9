"""Memory of FSDP2: shards, gathered parameters, whole and sharded gradients, and buffers of collectives.

| of FSDPParamGroup | category |
|---|---|
| FSDPParam._sharded_param_data | parameter shards |
| FSDPParam.all_gather_outputs, while the group is unsharded | gathered |
| FSDPParam._sharded_post_forward_param_data (reshard_after_forward=N) | secondary shards |
| _all_gather_result.all_gather_output, comm_ctx.all_gather_state | gather buffer |
| FSDPParam._unsharded_param.grad | whole gradients |
| comm_ctx.reduce_scatter_states, _all_reduce_state | reduce bucket |
| FSDPParam.sharded_param.grad, _partial_reduce_output | gradient shards |
"""
import weakref

from shardscope import _memory as m
from shardscope._core import AttributeIs, HeldTensors, Slot
from shardscope._session import session


class Slots:
    """Slots of one group, and which of them change at its hooks."""

    def __init__(self, group, shared, unsharded, model):
        """`model`: an object, the same one for all groups of a model."""
        held, params = weakref.ref(group), list(group.fsdp_params)
        offloaded = any(getattr(p, "offload_to_cpu", False) for p in params)
        whole_now = lambda: getattr(held(), "is_unsharded", False)
        if unsharded is not None:
            whole_now = AttributeIs(group, "_sharded_state", unsharded)
        gathered = Slot(m.PARAM_GATHERED, whole_now, lambda: outputs_of(held()), hooked=True)
        gather_buffer = Slot(m.GATHER_BUFFER, None, HeldTensors([group], "_all_gather_result.all_gather_output"), hooked=True)
        whole = Slot(m.GRAD_FULL, True, HeldTensors(params, "_unsharded_param.grad"), hooked=True)
        shard = Slot(m.GRAD_SHARD, True, HeldTensors(params, "sharded_param.grad"), host=offloaded, alike=model)
        partly = Slot(m.GRAD_SHARD, None, HeldTensors([group], "_partial_reduce_output"), hooked=True)
        secondary = ()
        if keeps_secondary(group):
            secondary = (Slot(m.PARAM_SECONDARY, True, HeldTensors(params, "_sharded_post_forward_param_data"), hooked=True),)
        self.all = (gathered, gather_buffer, whole, shard, partly, *secondary)
        together = session.memory.slots_of
        self.issued = together((gather_buffer, shared.gather_buffer))
        self.available = together((gather_buffer, shared.gather_buffer, gathered, *secondary))
        self.released = together((gathered, *secondary))
        self.backward = together((whole,))
        self.reduced = together((whole, shard, partly, *shared.all))


def keeps_secondary(group):
    """Whether the group is resharded after the forward to fewer ranks than its shards are on."""
    return bool(getattr(group, "_use_post_forward_mesh", False))


def outputs_of(group):
    return [tensor for param in group.fsdp_params
            for tensor in (*param.all_gather_outputs, *getattr(param, "_unsharded_inner_tensors", ()))]


class Shared:
    """Slots of the context that groups share, which keeps tensors after their use."""

    def __init__(self, context):
        self.reduce_bucket = Slot(m.REDUCE_BUCKET, None, HeldTensors([context], "reduce_scatter_states.*.reduce_scatter_input"))
        self.gather_buffer = Slot(m.GATHER_BUFFER, None,
                                  HeldTensors([context], "all_gather_state.all_gather_result.all_gather_output"))
        self.all = (self.reduce_bucket, self.gather_buffer)


def source_of(model, groups, hooks, unsharded):
    """hooks: Fsdp2Hooks, which receive the memory slots that each of their calls changes; None if none are installed.
    `unsharded`: the value of a group's `_sharded_state` while it is unsharded; None if groups do not have that
    state."""
    shared = {id(group.comm_ctx): Shared(group.comm_ctx) for group in groups}
    of_model = object()
    slots = [Slots(group, shared[id(group.comm_ctx)], unsharded, of_model) for group in groups]
    for group, of in zip(groups, slots) if hooks is not None else ():
        hooks.memory(group, of.issued, of.available, of.released, of.backward, of.reduced)
    held, all_groups = weakref.ref(model), [weakref.ref(group) for group in groups]

    def fixed(add, count):
        of_groups = set()
        for group in filter(None, (each() for each in all_groups)):
            for param in group.fsdp_params:
                add(m.PARAM_SHARD, param._sharded_param_data, getattr(param, "offload_to_cpu", False))
                # The module's parameter is one of these; after resharding to fewer ranks the last, which has a slot.
                of_groups.update(id(getattr(param, name, None)) for name in
                                 ("sharded_param", "_unsharded_param", "_sharded_post_forward_param"))
        model = held()
        for param in model.parameters() if model is not None else ():
            if id(param) not in of_groups:
                add(m.PARAM_SHARD, param)
        for buffer in model.buffers() if model is not None else ():
            add(m.OTHER, buffer)

    def on_host():
        return {id(param.sharded_param) for group in filter(None, (each() for each in all_groups))
                for param in group.fsdp_params if getattr(param, "offload_to_cpu", False)}

    parts = [*slots, *shared.values()]
    return m.Source(fixed, [slot for part in parts for slot in part.all], on_host)
