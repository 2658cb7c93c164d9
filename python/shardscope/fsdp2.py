"""PyTorch's FSDP2 (fully_shard): groups of parameters, their gathers, waits, prefetches and reductions.

G = _fsdp_param_group.FSDPParamGroup, S = _fsdp_state.FSDPState. All events are per group of parameters.

| symbol | event |
|---|---|
| S._lazy_init, after that of the root | the model: modules, parameters, slices; the run starts |
| S._root_pre_forward, after | micro-step begin with gates `step` and `micro_step`, phase forward |
| G.unshard, before | in flight, with its cause; the gather's parameters |
| G.wait_for_unshard | fetch_wait; on a GPU a stream waits, which is not recorded |
| G._to_unsharded, G._to_sharded, before | available, not available |
| G._to_sharded_post_forward, before | not available; its shard of a secondary copy stays (reshard_after_forward=N) |
| G.reshard, before | release_kept with reshard off |
| G.finalize_backward, after | not available: a gather that nothing has waited for is dropped |
| G._prefetch_unshard | cause prefetch |
| _fsdp_param_group.foreach_all_gather, until it issues the gather; foreach_all_gather_copy_out | copy-in; copy-out |
| G.pre_forward, post_forward, pre_backward, post_backward | spans of the group's module; its gates |
| _fsdp_param_group.foreach_reduce | bucket: the group's gradients; gate `bucket` |
| S._root_post_backward_final_callback, after | micro-step end |

Hooks that run for every group are C++: src/fsdp2_hooks.cpp.
"""
import math
import weakref

from shardscope import _core, _kinds as k, _say, _records, fsdp2_memory, fsdp2_offload, fsdp2_settings, param_groups, pipelining
from shardscope._hooks import Adapter
from shardscope._session import NO_ID, session

FSDP = "torch.distributed.fsdp._fully_shard."
buckets = _core.Buckets(session)
COPY_IN, ALL_REDUCE = k.EXTRA_1, k.EXTRA_2  # lanes
UNREDUCED = "gradients are kept unreduced in some micro-steps (set_requires_gradient_sync(False))"
PARTS = "ranks of tensor parallelism have different parts of a tensor under its one name"
SUBSET = "groups of parameters are sharded over different sets of ranks, so not every rank has a part of each"
MOST_NAMED = 8  # modules in a message
hooks = None  # hooks of groups, in C++; set when torch's module has been imported
unsharded = None  # torch's ShardedState.UNSHARDED, if groups have that state


def adapters():
    return [Adapter("FSDP2, groups", FSDP + "_fsdp_param_group", install_groups),
            Adapter("FSDP2, states", FSDP + "_fsdp_state", install_states)]


def install_states(table):
    table.wrap("FSDPState._lazy_init", "self", before=lambda self: self._is_root is None, after=lazily_made)
    table.wrap("FSDPState._root_pre_forward", "self module args kwargs",
               before=lambda self, *a: self._state_ctx.iter_forward_root is None, after=forward_begins)
    table.wrap("FSDPState._root_post_backward_final_callback", "self", after=backward_ended)


def install_groups(table):
    global hooks, unsharded
    import torch
    states, cls = table.owner("TrainingState"), table.owner("FSDPParamGroup")
    # Compared by identity if groups have the state; else their properties are called.
    kept = getattr(table.module, "ShardedState", None) if keeps_state(cls) else None
    unsharded = kept and kept.UNSHARDED
    hooks = h = _core.Fsdp2Hooks(session, buckets, states.FORWARD, states.PRE_BACKWARD, kept and kept.SHARDED,
                                 unsharded, kept and kept.SHARDED_POST_FORWARD, torch._C._current_graph_task_id,
                                 lambda: _say.info(UNREDUCED))
    group = "FSDPParamGroup."
    table.wrap(group + "unshard", "self async_op", before=h.unshard, after=h.unsharding)
    table.wrap(group + "wait_for_unshard", "self", before=h.wait_begins, after=h.wait_ended)
    table.wrap(group + "_to_unsharded", "self", before=h.available)
    table.wrap(group + "_to_sharded", "self", before=h.released, after=h.freed)
    table.wrap(group + "_to_sharded_post_forward", "self", before=h.released_in_part, after=h.freed)
    table.wrap(group + "reshard", "self", before=h.kept)
    table.wrap(group + "finalize_backward", "self", before=h.finalize_begins, after=h.finalized)
    table.wrap(group + "_prefetch_unshard", "target_fsdp_param_group pass_type", before=h.prefetch_begins,
               after=h.prefetch_ended)
    table.wrap(group + "pre_forward", "self module args kwargs", before=h.pre_forward, after=h.forward_span)
    table.wrap(group + "post_forward", "self module input output", before=h.post_forward, after=h.post_forward_gate)
    table.wrap(group + "pre_backward", "self default_prefetch", before=h.pre_backward, after=h.backward_span)
    table.wrap(group + "post_backward", "self", before=h.post_backward, after=h.post_backward_ended)
    table.wrap("foreach_all_gather", "fsdp_params group async_op", before=h.copy_in_begins, after=h.copy_in_ended)
    table.wrap("foreach_all_gather_copy_out", "all_gather_result fsdp_params group", before=h.copy_out_begins,
               after=h.copy_out_ended)
    table.wrap("foreach_reduce", "fsdp_params unsharded_grads reduce_scatter_group", before=h.reduce_begins,
               after=h.reduce_issued)


def keeps_state(cls):
    asked = [vars(cls).get(name) for name in ("is_sharded", "is_unsharded")]
    return all("_sharded_state" in getattr(getattr(getattr(each, "fget", None), "__code__", None), "co_names", ()) for each in asked)


# ---- the model ------------------------------------------------------------------------------------------

def lazily_made(first, result, fsdp_state):
    if first and fsdp_state._is_root:
        import torch
        import torch.distributed as dist
        model = fsdp_state._modules[0]
        groups = groups_of(fsdp_state)
        dtypes = {p.orig_dtype for g in groups for p in g.fsdp_params}
        size = max((d.itemsize for d in dtypes), default=4)
        fsdp2_offload.watch(FSDP, groups)
        held = weakref.ref(fsdp_state)  # a waiting description must keep no model alive
        session.memory.watch(model, lambda: fsdp2_memory.source_of(model, groups, hooks, unsharded),
                             groups[0].device.type if groups else "cpu")
        session.describe(model, lambda run: held() and describe(run, held()), trained=torch.is_grad_enabled(), stage=3,
                         then=lambda: held() and watch_modules(held()), kind="fsdp2", plain=True,
                         framework=f"FSDP2 (PyTorch {torch.__version__})", device=str(groups[0].device if groups else ""),
                         config=fsdp2_settings.config_of(fsdp_state, groups),
                         ranks=(dist.get_rank(), dist.get_world_size()), param_bytes=size, grad_bytes=size)


def watch_modules(fsdp_state):
    """Those inside the groups: of the groups' own modules the hooks here make the spans."""
    from shardscope import modules
    if pipelining.State.stages == 1 and hooks is not None:
        modules.watch(fsdp_state._modules[0], [group.modules[0] for group in groups_of(fsdp_state)], hooks)


def groups_of(fsdp_state):
    return [g for s in fsdp_state._state_ctx.all_states for g in fsdp2_settings.groups_at(s)]


def describe(run, fsdp_state):
    if pipelining.State.stages > 1:
        pipelining.describe_as_stage(run, fsdp_state._modules[0])
        return
    numbers = session.add_modules(fsdp_state._modules[0])
    say_explicit_prefetches(fsdp_state)
    why = no_layout(fsdp_state)
    if why:
        run.not_recorded(_records.bits("layout"), why)
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
            param_groups.shard_of(param, number)
            session.use_param(numbers[name.rpartition(".")[0]], number)
            for index, rank in ((index, rank) for replica in replicas for index, rank in enumerate(replica) if not why):
                run.add_slice(number, rank, *piece(param._orig_size, param.fsdp_placement.dim, index, len(ranks)))
        if hooks is not None:
            describe_group(group)


def say_explicit_prefetches(fsdp_state):
    """At which modules the script names the groups to prefetch; at the others FSDP2 prefetches the next one of the backward."""
    paths = {id(module): path or "the root" for path, module in fsdp_state._modules[0].named_modules()}
    for name, attribute in (("forward", "_states_to_forward_prefetch"), ("backward", "_states_to_backward_prefetch")):
        at = [paths.get(id(state._modules[0]), "?") for state in fsdp_state._state_ctx.all_states if getattr(state, attribute, None)]
        if at:
            more = f" and {len(at) - MOST_NAMED} more" if len(at) > MOST_NAMED else ""
            _say.info(f"prefetches in the {name} are explicit (set_modules_to_{name}_prefetch) at {', '.join(at[:MOST_NAMED])}{more}"
                      + ("; those at other modules are FSDP2's own" if name == "backward" else ""))


def no_layout(fsdp_state):
    """Why it is not known which rank has which elements; none if it is. With tensor parallelism `_orig_size` is that of this
    rank's part."""
    import torch.distributed as dist
    groups = groups_of(fsdp_state)
    if any(param.is_dtensor for group in groups for param in group.fsdp_params):
        return PARTS
    world = set(range(dist.get_world_size()))
    if any(set(sum(replicas_of(group.mesh_info), [])) != world for group in groups):
        return SUBSET
    return None


def describe_group(group):
    """Data for the group's hooks: its module, its parameters, bytes of the gathered group, of this rank's shard, and of
    its shard of a secondary copy."""
    known = [p for p in group.fsdp_params if id(p) in session.params]
    numbers = [session.params[id(p)] for p in known]
    parts = _core.Parts([(number, session.param_elems[number]) for number in numbers])
    gathered = sum(session.param_elems[number] * (p.param_dtype or p.orig_dtype).itemsize for p, number in zip(known, numbers))
    shard = sum(p._sharded_param_data.numel() * (p.param_dtype or p.orig_dtype).itemsize for p in group.fsdp_params)
    partly = group.post_forward_mesh_info
    secondary = shard * group.mesh_info.shard_mesh_size // partly.shard_mesh_size if fsdp2_memory.keeps_secondary(group) else 0
    hooks.describe(group, session.modules.get(id(group.modules[0]), NO_ID), parts, gathered, shard, secondary, len(known),
                   session.name_id("copy-in"), session.name_id("copy-out"))


def replicas_of(mesh_info):
    """The sets of ranks that share one copy of the parameters: with HSDP there are several, and every shard exists once
    in each."""
    import torch.distributed as dist
    if not hasattr(mesh_info, "shard_process_group"):
        return [list(range(dist.get_world_size()))]
    if hasattr(mesh_info, "replicate_process_group") and mesh_info.mesh.ndim == 2:
        whole = mesh_info.mesh.mesh
        return (whole if mesh_info.shard_mesh_dim == 1 else whole.T).tolist()
    return [dist.get_process_group_ranks(mesh_info.shard_process_group)]


def piece(shape, dim, index, ranks):
    """torch.chunk along `dim`: equal numbers of rows, the last chunks short or empty. Returns (offset in the parameter,
    offset in the shard, elements, padding, elements of a block, stride of blocks); one block per index of the
    dimensions before `dim`; the last two are 0 for a single block."""
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
        if session.watches(fsdp_state._modules[0]) and (pipelining.State.stages == 1 or pipelining.begins_here()):
            session.begin_micro_step()
            if pipelining.State.stages == 1:
                from shardscope import modules
                modules.already_entered(fsdp_state._modules[0])


def backward_ended(_, result, fsdp_state):
    if session.started and session.plain and pipelining.State.stages == 1:
        session.end_micro_step()
