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
    """Of one group, by what changes together."""

    def __init__(self, group):
        held = weakref.ref(group)

        def of(read):
            """read(group), as long as there is one."""
            def reading():
                group = held()
                return read(group) if group is not None else None
            return reading

        self.gathered = Slot(m.PARAM_GATHERED, of(lambda g: g.is_unsharded), of(outputs_of))
        self.gather_buffer = Slot(m.GATHER_BUFFER, of(lambda g: g._all_gather_result is not None),
                                  of(lambda g: (g._all_gather_result.all_gather_output,)), varies=True)
        self.whole = Slot(m.GRAD_FULL, of(lambda g: any(has_gradient(p) for p in g.fsdp_params)),
                          of(lambda g: [p._unsharded_param.grad for p in g.fsdp_params if has_gradient(p)]), varies=True)
        offloaded = any(getattr(p, "offload_to_cpu", False) for p in group.fsdp_params)
        self.shards = Slot(m.GRAD_SHARD, of(lambda g: any(p.sharded_param.grad is not None for p in g.fsdp_params)),
                           of(lambda g: [p.sharded_param.grad for p in g.fsdp_params if p.sharded_param.grad is not None]),
                           host=offloaded)
        self.partial = Slot(m.GRAD_SHARD, of(lambda g: getattr(g, "_partial_reduce_output", None) is not None),
                            of(lambda g: (g._partial_reduce_output,)))
        self.all = (self.gathered, self.gather_buffer, self.whole, self.shards, self.partial)


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
            return [] if result is None else [result.all_gather_output]

        self.reduce_bucket = Slot(m.REDUCE_BUCKET, lambda: bool(inputs()), inputs, varies=True)
        self.gather_buffer = Slot(m.GATHER_BUFFER, lambda: bool(gathered()), gathered, varies=True)
        self.all = (self.reduce_bucket, self.gather_buffer)


def source_of(model, groups, slots, shared):
    """slots: id(group) -> Slots and shared: id(context) -> Shared are filled here."""
    contexts = {id(group.comm_ctx): group.comm_ctx for group in groups}
    slots.update((id(group), Slots(group)) for group in groups)
    shared.update((key, Shared(context)) for key, context in contexts.items())
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

    parts = [slots[id(group)] for group in groups] + [shared[key] for key in contexts]
    return m.Source(fixed, [slot for part in parts for slot in part.all])
