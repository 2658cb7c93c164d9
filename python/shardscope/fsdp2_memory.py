"""What FSDP2 holds: shards, gathered parameters, gradients whole and sharded, and the buffers of its collectives.

| of FSDPParamGroup | category |
|---|---|
| FSDPParam._sharded_param_data | parameter shards |
| FSDPParam.all_gather_outputs, while the group is unsharded | gathered |
| _all_gather_result.all_gather_output, comm_ctx.all_gather_state | gather buffer |
| FSDPParam._unsharded_param.grad | whole gradients |
| comm_ctx.reduce_scatter_states, _all_reduce_state | reduce bucket |
| FSDPParam.sharded_param.grad, _partial_reduce_output | gradient shards |
"""
import weakref

from shardscope import _memory as m
from shardscope._memory import Slot


class Slots:
    """Of one group, and which of them change at its hooks."""

    def __init__(self, group, shared):
        held = weakref.ref(group)

        def gradients():
            group = held()
            return [] if group is None else [p._unsharded_param.grad for p in group.fsdp_params if has_gradient(p)]

        def shards():
            group = held()
            return [] if group is None else [p.sharded_param.grad for p in group.fsdp_params if p.sharded_param.grad is not None]

        def buffer():
            result = getattr(held(), "_all_gather_result", None)
            return () if result is None else (result.all_gather_output,)

        def partial():
            output = getattr(held(), "_partial_reduce_output", None)
            return () if output is None else (output,)

        # Asked at every hook of a group: which parameters have a gradient, without a call for each.
        def whole_present():
            return tuple([(of := getattr(p, "_unsharded_param", None)) is not None and of.grad is not None
                          for p in getattr(held(), "fsdp_params", ())])

        def shard_present():
            return tuple([p.sharded_param.grad is not None for p in getattr(held(), "fsdp_params", ())])

        offloaded = any(getattr(p, "offload_to_cpu", False) for p in group.fsdp_params)
        gathered = Slot(m.PARAM_GATHERED, lambda: getattr(held(), "is_unsharded", False), lambda: outputs_of(held()), hooked=True)
        gather_buffer = Slot(m.GATHER_BUFFER, None, buffer, hooked=True)
        whole = Slot(m.GRAD_FULL, whole_present, gradients, hooked=True)
        shard = Slot(m.GRAD_SHARD, shard_present, shards, host=offloaded)
        partly = Slot(m.GRAD_SHARD, None, partial, hooked=True)
        self.all = (gathered, gather_buffer, whole, shard, partly)
        self.issued = (gather_buffer, shared.gather_buffer)
        self.available = (gather_buffer, shared.gather_buffer, gathered)
        self.released = (gathered,)
        self.backward = (whole, *shared.all)
        self.reduced = (whole, shard, partly, *shared.all)


def outputs_of(group):
    return [tensor for param in group.fsdp_params
            for tensor in (*param.all_gather_outputs, *getattr(param, "_unsharded_inner_tensors", ()))]


def has_gradient(param):
    whole = getattr(param, "_unsharded_param", None)
    return whole is not None and whole.grad is not None


class Shared:
    """Of the context that groups share, and which holds tensors on after their use."""

    def __init__(self, context):
        held = weakref.ref(context)  # it has references to groups, and those to the model

        def inputs():
            return [state.reduce_scatter_input for state in getattr(held(), "reduce_scatter_states", ())]

        def gathered():
            result = getattr(getattr(held(), "all_gather_state", None), "all_gather_result", None)
            return () if result is None else (result.all_gather_output,)

        self.reduce_bucket, self.gather_buffer = Slot(m.REDUCE_BUCKET, None, inputs), Slot(m.GATHER_BUFFER, None, gathered)
        self.all = (self.reduce_bucket, self.gather_buffer)


def source_of(model, groups, slots):
    """slots: id(group) -> Slots, filled here."""
    shared = {id(group.comm_ctx): Shared(group.comm_ctx) for group in groups}
    slots.update((id(group), Slots(group, shared[id(group.comm_ctx)])) for group in groups)
    held, all_groups = weakref.ref(model), [weakref.ref(group) for group in groups]

    def fixed(add, count):
        of_groups = set()
        for group in filter(None, (each() for each in all_groups)):
            for param in group.fsdp_params:
                add(m.PARAM_SHARD, param._sharded_param_data, getattr(param, "offload_to_cpu", False))
                of_groups.update((id(param.sharded_param), id(getattr(param, "_unsharded_param", None))))
        model = held()
        for param in model.parameters() if model is not None else ():
            if id(param) not in of_groups:
                add(m.PARAM_SHARD, param)
        for buffer in model.buffers() if model is not None else ():
            add(m.OTHER, buffer)

    parts = [*(slots[id(group)] for group in groups), *shared.values()]
    return m.Source(fixed, [slot for part in parts for slot in part.all])
