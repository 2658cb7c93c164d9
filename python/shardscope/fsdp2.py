"""PyTorch's FSDP2 (fully_shard): groups of parameters, their gathers, waits, prefetches and reductions.

G = _fsdp_param_group.FSDPParamGroup, S = _fsdp_state.FSDPState. The unit of everything is the group.

| symbol | event |
|---|---|
| S._lazy_init, after that of the root | the model: modules, parameters, slices; the run starts |
| S._root_pre_forward, after | micro-step begin with gates `step` and `micro_step`, phase forward |
| G.unshard, before | in flight, with its cause; the gather's parameters |
| G.wait_for_unshard | fetch_wait; on a GPU a stream waits, which is not seen |
| G._to_unsharded, G._to_sharded, before | available, not available |
| G.reshard, before | release_kept with reshard off |
| G._prefetch_unshard | cause prefetch |
| _fsdp_param_group.foreach_all_gather, until it issues the gather; foreach_all_gather_copy_out | copy-in; copy-out |
| G.pre_forward, post_forward, pre_backward, post_backward | spans of the group's module; its gates |
| _fsdp_param_group.foreach_reduce | bucket: the group's gradients; gate `bucket` |
| S._root_post_backward_final_callback, after | micro-step end |
"""
import math
import weakref

from shardscope import _core, _kinds as k, _say, fsdp2_memory
from shardscope._hooks import Adapter
from shardscope._session import NO_ID, session

emit = _core.emit
FSDP = "torch.distributed.fsdp._fully_shard."
buckets = _core.Buckets(session)
COPY_IN, ALL_REDUCE = k.EXTRA_1, k.EXTRA_2  # lanes


class State:
    def __init__(self):
        self.cause = k.FETCH  # of gathers that are issued now
        self.entered = NO_ID  # module whose pre_forward or pre_backward runs: where prefetches are issued
        self.reducing = None  # group in post_backward
        self.gathering = self.waiting = UNKNOWN  # Group in unshard, in wait_for_unshard
        self.forward = self.pre_backward = None  # of torch's TrainingState
        self.gather_of = {}  # id(group) -> (its gather, the gather's cause) until it is resharded
        self.slots = {}  # id(group) -> what of its memory comes and goes
        self.groups = {}  # id(group) -> Group, as long as there is one


class Group:
    """What the hooks need of a described group: `module` it belongs to, its `parts`, their `bytes` once gathered, those of this
    rank's `shard`, `count` of parameters."""
    __slots__ = ("alive", "module", "parts", "bytes", "shard", "count")

    def __init__(self, group):
        self.alive = weakref.ref(group, lambda _, key=id(group): state.groups.pop(key, None))
        known = [p for p in group.fsdp_params if id(p) in session.params]
        numbers = [session.params[id(p)] for p in known]
        self.module = session.modules.get(id(group.modules[0]), NO_ID)
        self.parts = _core.Parts([(number, session.param_elems[number]) for number in numbers])
        self.bytes = sum(session.param_elems[number] * (p.param_dtype or p.orig_dtype).itemsize
                         for p, number in zip(known, numbers))
        self.shard = sum(p._sharded_param_data.numel() * (p.param_dtype or p.orig_dtype).itemsize for p in group.fsdp_params)
        self.count = len(known)


UNKNOWN = type("Unknown", (), {"module": NO_ID, "parts": (), "bytes": 0, "shard": 0, "count": 0})
state = State()


def known(group):
    """UNKNOWN where its model is not described."""
    return state.groups.get(id(group), UNKNOWN)


def adapters():
    return [Adapter("FSDP2, groups", FSDP + "_fsdp_param_group", install_groups),
            Adapter("FSDP2, states", FSDP + "_fsdp_state", install_states)]


def install_states(table):
    table.wrap("FSDPState._lazy_init", "self", before=lambda self: self._is_root is None, after=lazily_made)
    table.wrap("FSDPState._root_pre_forward", "self module args kwargs",
               before=lambda self, *a: self._state_ctx.iter_forward_root is None, after=forward_begins)
    table.wrap("FSDPState._root_post_backward_final_callback", "self", after=backward_ended)


def install_groups(table):
    state.__init__()
    states = table.owner("TrainingState")
    state.forward, state.pre_backward = states.FORWARD, states.PRE_BACKWARD
    group = "FSDPParamGroup."
    table.wrap(group + "unshard", "self async_op", before=unshard, after=unsharding)
    table.wrap(group + "wait_for_unshard", "self", before=wait_begins, after=wait_ended)
    table.wrap(group + "_to_unsharded", "self", before=available)
    table.wrap(group + "_to_sharded", "self", before=released, after=freed)
    table.wrap(group + "reshard", "self", before=kept)
    table.wrap(group + "_prefetch_unshard", "target_fsdp_param_group pass_type", before=prefetch_begins,
               after=prefetch_ended)
    table.wrap(group + "pre_forward", "self module args kwargs", before=pre_forward, after=forward_span)
    table.wrap(group + "post_forward", "self module input output", before=post_forward, after=post_forward_gate)
    table.wrap(group + "pre_backward", "self default_prefetch", before=pre_backward, after=backward_span)
    table.wrap(group + "post_backward", "self", before=post_backward, after=post_backward_ended)
    table.wrap("foreach_all_gather", "fsdp_params group async_op", before=copy_in_begins, after=copy_in_ended)
    table.wrap("foreach_all_gather_copy_out", "all_gather_result fsdp_params group", before=copy_out_begins,
               after=copy_out_ended)
    table.wrap("foreach_reduce", "fsdp_params unsharded_grads reduce_scatter_group", before=reduce_begins,
               after=reduce_issued)


# ---- the model ------------------------------------------------------------------------------------------

def lazily_made(first, result, fsdp_state):
    if first and fsdp_state._is_root:
        import torch
        import torch.distributed as dist
        model = fsdp_state._modules[0]
        groups = groups_of(fsdp_state)
        dtypes = {p.orig_dtype for g in groups for p in g.fsdp_params}
        size = max((d.itemsize for d in dtypes), default=4)
        held = weakref.ref(fsdp_state)  # a description that waits keeps no model alive
        session.memory.watch(model, lambda: fsdp2_memory.source_of(model, groups, state.slots),
                             groups[0].device.type if groups else "cpu")
        session.describe(model, lambda run: held() and describe(run, held()), trained=torch.is_grad_enabled(), stage=3,
                         kind="fsdp2", plain=True, framework=f"FSDP2 (PyTorch {torch.__version__})",
                         device=str(groups[0].device if groups else ""),
                         ranks=(dist.get_rank(), dist.get_world_size()), param_bytes=size, grad_bytes=size)


def groups_of(fsdp_state):
    """A state has a list of groups; in older PyTorch (2.11) one or none."""
    return [g for s in fsdp_state._state_ctx.all_states
            for g in getattr(s, "_fsdp_param_groups", None) or [getattr(s, "_fsdp_param_group", None)] if g is not None]


def describe(run, fsdp_state):
    numbers = session.add_modules(fsdp_state._modules[0])
    for lane, name in ((k.GATHER, "all-gather"), (k.REDUCE, "reduce-scatter"), (COPY_IN, "all-gather copy-in"),
                       (ALL_REDUCE, "all-reduce")):
        run.name_lane(lane, name)
    session.all_reduce_lane = ALL_REDUCE
    for group in groups_of(fsdp_state):
        replicas = replicas_of(group.mesh_info)
        ranks = replicas[0]
        for param in group.fsdp_params:
            name = param._param_fqn or param._module_info.param_name
            elems = param._orig_size.numel()
            shard = param.padded_sharded_param_size.numel()
            trained = param.sharded_param.requires_grad
            number = session.add_param(param, name, param._orig_size, elems, shard_elems=shard,
                                       padding=shard * len(ranks) - elems, trained=trained, dtype=param.orig_dtype)
            session.use_param(numbers[name.rpartition(".")[0]], number)
            for index, rank in ((index, rank) for replica in replicas for index, rank in enumerate(replica)):
                run.add_slice(number, rank, *piece(param._orig_size, param.fsdp_placement.dim, index, len(ranks)))
        state.groups[id(group)] = Group(group)


def replicas_of(mesh_info):
    """Ranks that share one copy of the parameters, each such group: with HSDP there are several, and every rank's piece
    is held once in each."""
    import torch.distributed as dist
    if not hasattr(mesh_info, "shard_process_group"):
        return [list(range(dist.get_world_size()))]
    if hasattr(mesh_info, "replicate_process_group") and mesh_info.mesh.ndim == 2:
        whole = mesh_info.mesh.mesh
        return (whole if mesh_info.shard_mesh_dim == 1 else whole.T).tolist()
    return [dist.get_process_group_ranks(mesh_info.shard_process_group)]


def piece(shape, dim, index, ranks):
    """torch.chunk along `dim`: equal numbers of rows, the last ones short or empty. (offset in the parameter, offset in the
    shard, elements, padding, elements of a block, from one block to the next); a block for each index of the dimensions
    before `dim`, 0 and 0 where it is one."""
    rows = shape[dim] if len(shape) else 1
    outer, width = math.prod(shape[:dim]), math.prod(shape[dim + 1:])
    per_rank = -(-rows // ranks)
    begin, end = min(index * per_rank, rows), min((index + 1) * per_rank, rows)
    elems, padding = outer * (end - begin) * width, outer * (per_rank - (end - begin)) * width
    if outer == 1 or elems == 0:
        return begin * width, 0, elems, padding, 0, 0
    return begin * width, 0, elems, padding, (end - begin) * width, rows * width


def forward_begins(first, result, fsdp_state, *args, **kwargs):
    import torch
    if first and torch.is_grad_enabled():
        session.trains(fsdp_state._modules[0])
        if session.watches(fsdp_state._modules[0]):
            session.begin_micro_step()


def backward_ended(_, result, fsdp_state):
    if session.started and session.plain:
        session.end_micro_step()


# ---- gathers --------------------------------------------------------------------------------------------

def issues_gather(group):
    """What unshard() checks before it gathers."""
    return group._all_gather_result is None and not group.is_unsharded and \
        (group.unshard_in_backward or group._training_state is not state.pre_backward)


def unshard(group, async_op=False):
    if not session.started or not issues_gather(group):
        return
    of = known(group)
    if not of.parts:
        return
    state.gathering = of
    gather = session.gathers = session.gathers + 1
    state.gather_of[id(group)] = gather, state.cause
    session.available = of.parts.status(k.GATHER, k.IN_FLIGHT, state.cause, of.module, gather, session.available, 1)
    if state.cause == k.PREFETCH:
        emit(k.PREFETCH_ISSUED, k.HOST, 0, gather, state.entered, len(of.parts), of.parts.elems, 0)
    session.purpose = (k.GATHER, gather, of.parts)
    return True


def unsharding(gathers, result, group, async_op=False):
    if gathers:
        session.purpose_served()
        memory_changed(group, "issued")


def copy_in_begins(fsdp_params, group, *args, **kwargs):
    """Until the gather itself is issued (collectives.py)."""
    if session.started and session.purpose is not None and session.purpose[0] == k.GATHER:
        span = COPY_IN, 0, session.name_id("copy-in"), session.purpose[1], NO_ID, state.gathering.shard, 0
        emit(k.SPAN_BEGIN, *span)
        session.until_issued = span


def copy_in_ended(_, result, *args, **kwargs):
    session.issued()


def copy_out_begins(all_gather_result, fsdp_params, group, *args, **kwargs):
    of = state.waiting
    if session.started and of.parts:
        span = k.COMPUTE, 0, session.name_id("copy-out"), of.parts.first, NO_ID, of.bytes, 0
        emit(k.SPAN_BEGIN, *span)
        return span


def copy_out_ended(span, result, *args, **kwargs):
    if span is not None:
        emit(k.SPAN_END, *span)


def prefetch_begins(target_fsdp_param_group, pass_type):
    before, state.cause = state.cause, k.PREFETCH
    return before


def prefetch_ended(before, result, *args, **kwargs):
    state.cause = before


def wait_begins(group):
    of = state.waiting = known(group)
    if not session.started or not group._all_gather_result or id(group) not in state.gather_of:
        return None
    wait = of.module, state.gather_of[id(group)][0], of.bytes
    if session.on_device:
        return wait
    emit(k.FETCH_WAIT_BEGIN, k.COMPUTE, 0, wait[0], wait[1], NO_ID, wait[2], 0)
    return wait


def wait_ended(wait, result, group):
    if wait:
        if not session.on_device:
            emit(k.FETCH_WAIT_END, k.COMPUTE, 0, wait[0], wait[1], NO_ID, wait[2], 0)
        memory_changed(group, "available")


def memory_changed(group, at):
    """`at`: which of Slots' hooks."""
    slots = state.slots.get(id(group))
    if slots is not None:
        session.memory.changed(getattr(slots, at))


def available(group):
    if session.started and not group.is_unsharded:
        gather, cause = state.gather_of.get(id(group), (NO_ID, k.FETCH))
        of = known(group)
        if of.parts:
            of.parts.status(k.COMPUTE, k.AVAILABLE, cause, of.module, gather, session.available, 0)


def released(group):
    if session.started and not group.is_sharded and id(group) in state.gather_of:
        gather, of = state.gather_of.pop(id(group))[0], known(group)
        session.available = of.parts.status(k.COMPUTE, k.NOT_AVAILABLE, k.RELEASE, of.module, gather, session.available, -1)


def freed(_, result, group):
    memory_changed(group, "released")


def kept(group):
    """A group that its user (the root: FSDP2 itself) keeps gathered from its forward to its backward."""
    if session.started and group._training_state is state.forward and not group._reshard_after_forward:
        of = known(group)
        if of.parts:
            of.parts.kept(k.KEEP_RESHARD_OFF, of.module)


# ---- modules and gradients ------------------------------------------------------------------------------

def gate(kind, group):
    number = known(group).module
    if number != NO_ID and session.in_micro_step:
        _core.gate(kind, number)


def pre_forward(group, *args, **kwargs):
    state.entered = known(group).module
    gate(k.GATE_PRE_FORWARD, group)


def forward_span(_, result, group, *args, **kwargs):
    if session.started and known(group).module != NO_ID:
        session.begin_span(session.forward_pass(), known(group).module)


def post_forward(group, *args, **kwargs):
    session.end_span(known(group).module)


def post_forward_gate(_, result, group, *args, **kwargs):
    gate(k.GATE_POST_FORWARD, group)


def pre_backward(group, *args, **kwargs):
    """Its hook runs once for each output; the first does the work."""
    if group._training_state is state.pre_backward:
        return False
    state.entered = known(group).module
    gate(k.GATE_PRE_BACKWARD, group)
    return True


def backward_span(first, result, group, *args, **kwargs):
    if first and session.started and known(group).module != NO_ID:
        session.begin_span(k.PASS_BACKWARD, known(group).module)


def post_backward(group, *args, **kwargs):
    session.end_span(known(group).module)
    memory_changed(group, "backward")
    before, state.reducing = state.reducing, group
    if not group.reduce_grads:
        _say.info("gradients are kept unreduced in some micro-steps (set_requires_gradient_sync(False))")
    return before


def post_backward_ended(before, result, group, *args, **kwargs):
    state.reducing = before
    memory_changed(group, "reduced")
    gate(k.GATE_POST_BACKWARD, group)


def reduce_begins(fsdp_params, unsharded_grads, *args, **kwargs):
    if not session.started or state.reducing is None:
        return
    of, key = known(state.reducing), id(state.reducing)
    parts = of.parts
    if of.count != len(fsdp_params) or state.reducing.fsdp_params != fsdp_params:  # some have no gradient, or in another order
        parts = _core.Parts([(session.params[id(p)], session.param_elems[session.params[id(p)]]) for p in fsdp_params
                             if id(p) in session.params])
    parts.fill(buckets.of(key))
    # The group is complete with its backward: there is no bucket size that it could reach.
    buckets.flush(key, parts, parts.elems, False, reason=k.GROUP_COMPLETE)


def reduce_issued(_, result, *args, **kwargs):
    session.purpose_served()
