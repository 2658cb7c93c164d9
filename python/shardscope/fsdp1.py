"""PyTorch's FSDP1 (FullyShardedDataParallel): steps, modules, flat parameters, their collectives and memory.

R = _runtime_utils, F = fully_sharded_data_parallel, which has its own references to two of R's functions. The unit is
the flat parameter of a wrapped module, whose name lists the parameters in it.

| symbol | event |
|---|---|
| F._root_pre_forward, after | the model (once); micro-step begin, phase forward |
| F.FullyShardedDataParallel.clip_grad_norm_, after | gradient norm |
| F._pre_forward, F._post_forward | module forward; its gates |
| R._pre_backward_hook, R._post_backward_hook | module backward; its gates |
| R._unshard, R._reshard | in flight and available, not available |
| R._prefetch_handle | cause prefetch |
| R._reduce_grad | bucket: the flat parameter's gradient; gate `bucket` |
| R._post_backward_final_callback, after | micro-step end |
"""
import weakref

from shardscope import _core, _kinds as k, _memory as m
from shardscope._hooks import Adapter
from shardscope._session import NO_ID, session

events = _core.events
FSDP = "torch.distributed.fsdp."
buckets = _core.Buckets(session)


class State:
    cause = k.FETCH
    entered = NO_ID
    gathers = {}  # id(handle) -> (its gather, the gather's cause) until it is resharded
    slots = {}  # id(handle) -> Slots of its gathered parameter


state = State()


def adapters():
    return [Adapter("FSDP1, forward", FSDP + "fully_sharded_data_parallel", install_forward),
            Adapter("FSDP1, parameters", FSDP + "_runtime_utils", install_runtime)]


def install_forward(table):
    table.wrap("_root_pre_forward", "state module args kwargs", after=forward_begins)
    table.wrap("_pre_forward", "state handle unshard_fn module args kwargs", before=module_entered, after=module_begins)
    table.wrap("FullyShardedDataParallel.clip_grad_norm_", "self max_norm", after=clipped)
    table.wrap("_post_forward", "state handle reshard_fn module input output", before=module_ends)


def install_runtime(table):
    table.wrap("_pre_backward_hook", "state module handle grad", before=backward_entered, after=backward_begins)
    table.wrap("_post_backward_hook", "state handle flat_param", before=backward_ends)
    table.wrap("_post_backward_final_callback", "state module", after=backward_ended)
    table.wrap("_unshard", "state handle unshard_stream pre_unshard_stream", before=unshard, after=unsharded)
    table.wrap("_reshard", "state handle free_unsharded_flat_param", before=reshard, after=resharded)
    table.wrap("_prefetch_handle", "state current_handle prefetch_mode", before=prefetch_begins, after=prefetch_ended)
    table.wrap("_reduce_grad", "state handle", before=reduce_begins, after=reduce_issued)


# ---- the model ------------------------------------------------------------------------------------------

def forward_begins(_, result, fsdp_state, module, args, kwargs):
    import torch
    if not getattr(fsdp_state, "_is_root", False):
        return
    if not session.watches(module):
        made(fsdp_state, module)
    if torch.is_grad_enabled():
        session.trains(module)
        if session.watches(module):
            session.begin_micro_step()


def made(fsdp_state, module):
    import torch
    import torch.distributed as dist
    handles = list(fsdp_state._all_handles)
    size = max((h.flat_param.dtype.itemsize for h in handles), default=4)
    held = weakref.ref(module)
    session.memory.watch(module, lambda: source_of(module, handles), fsdp_state.compute_device.type)
    session.describe(module, lambda run: held() and describe(run, held(), handles), trained=torch.is_grad_enabled(),
                     stage=3, kind="fsdp1", plain=True, framework=f"FSDP1 (PyTorch {torch.__version__})",
                     device=str(fsdp_state.compute_device), config=config_of(fsdp_state), ranks=(dist.get_rank(), dist.get_world_size()),
                     param_bytes=size, grad_bytes=size)


def config_of(fsdp_state):
    """What the script gave the root's FullyShardedDataParallel, to be compared and shown."""
    settings = {name: getattr(fsdp_state, name, None) for name in
                ("sharding_strategy", "backward_prefetch", "forward_prefetch", "limit_all_gathers")}
    settings["use_orig_params"] = getattr(fsdp_state, "_use_orig_params", None)
    settings["cpu_offload"] = getattr(getattr(fsdp_state, "cpu_offload", None), "offload_params", None)
    for name in ("param_dtype", "reduce_dtype"):
        settings[name] = getattr(getattr(fsdp_state, "mixed_precision", None), name, None)
    return {"FullyShardedDataParallel": {name: value if isinstance(value, bool) else str(value).rpartition(".")[2]
                                         for name, value in settings.items() if value is not None}}


def describe(run, root, handles):
    import torch.distributed as dist
    numbers = session.add_modules(root)
    paths = {id(module): path for path, module in root.named_modules()}
    for handle in handles:
        flat, ranks = handle.flat_param, dist.get_process_group_ranks(handle.process_group)
        elems = flat._unpadded_unsharded_size.numel()
        shard = flat._sharded_size.numel() if handle.uses_sharded_strategy else elems
        path = paths.get(id(handle._fully_sharded_module), "")
        number = session.add_param(flat, f"{path}.flat".lstrip(".") + f" ({', '.join(flat._fqns)})", (elems,), elems,
                                   shard_elems=shard, padding=max(shard * len(ranks) - elems, 0),
                                   trained=flat.requires_grad, dtype=flat.dtype)
        session.use_param(numbers.get(path, 0), number)
        for index, rank in enumerate(ranks):
            begin = min(index * shard, elems) if handle.uses_sharded_strategy else 0
            end = min(begin + shard, elems)
            run.add_slice(number, rank, begin, 0, end - begin, shard - (end - begin))


def source_of(module, handles):
    held, flats = weakref.ref(module), [weakref.ref(h.flat_param) for h in handles]
    slots = []
    for handle in handles:
        slot = gathered_slot(weakref.ref(handle))
        state.slots[id(handle)] = session.memory.slots_of([slot])
        slots += [slot, *gradient_slots(weakref.ref(handle.flat_param)), saved_slot(weakref.ref(handle.flat_param))]

    def fixed(add, count):
        for flat in (each() for each in flats):
            add(m.PARAM_SHARD, getattr(flat, "_local_shard", None))
        root = held()
        for buffer in root.buffers() if root is not None else ():
            add(m.OTHER, buffer)
    return m.Source(fixed, slots)


def gathered_slot(handle):
    def tensors():
        flat = getattr(handle(), "flat_param", None)
        whole = [getattr(flat, name, None) for name in ("_full_param_padded", "_full_prec_full_param_padded")]
        return [each for each in whole if each is not None and each.untyped_storage().nbytes()]
    return m.Slot(m.PARAM_GATHERED, lambda: bool(tensors()), tensors)


def gradient_slots(flat):
    """`grad` holds a shard after a reduction, and the whole gradient without one (no_sync)."""
    def slot(category, is_whole):
        def gradient():
            param = flat()
            grad = None if param is None else param.grad
            return () if grad is None or (grad.numel() > param._sharded_size.numel()) != is_whole else (grad,)
        return m.Slot(category, None, gradient)
    return [slot(m.GRAD_SHARD, False), slot(m.GRAD_FULL, True)]


def saved_slot(flat):
    def saved():
        return getattr(flat(), "_saved_grad_shard", None)
    return m.Slot(m.GRAD_SHARD, lambda: saved() is not None, lambda: (saved(),))


def number_of(handle):
    return session.params.get(id(handle.flat_param)) if handle is not None else None


def module_of(handle):
    number = number_of(handle)
    return NO_ID if number is None else session.param_owner[number]


# ---- modules --------------------------------------------------------------------------------------------

def gate(kind, module):
    if module != NO_ID and session.in_micro_step:
        _core.gate(kind, module)


def module_entered(fsdp_state, handle, *args, **kwargs):
    state.entered = module_of(handle)
    gate(k.GATE_PRE_FORWARD, state.entered)


def module_begins(_, result, fsdp_state, handle, *args, **kwargs):
    if session.in_micro_step and module_of(handle) != NO_ID:
        session.begin_span(session.forward_pass(), module_of(handle))


def module_ends(fsdp_state, handle, *args, **kwargs):
    session.end_span(module_of(handle))
    gate(k.GATE_POST_FORWARD, module_of(handle))


def backward_entered(fsdp_state, module, handle, grad, *unused):
    if handle is None or getattr(handle, "_ran_pre_backward_hook", False) or not session.started:
        return False
    session.begin_backward()
    state.entered = module_of(handle)
    gate(k.GATE_PRE_BACKWARD, state.entered)
    return True


def backward_begins(first, result, fsdp_state, module, handle, grad, *unused):
    if first and module_of(handle) != NO_ID:
        session.begin_span(k.PASS_BACKWARD, module_of(handle))


def backward_ends(fsdp_state, handle, flat_param, *unused):
    session.end_span(module_of(handle))
    gate(k.GATE_POST_BACKWARD, module_of(handle))


def backward_ended(_, result, *args, **kwargs):
    if session.started and session.plain:
        session.end_micro_step()


def clipped(_, norm, *args, **kwargs):
    if session.plain and session.started:
        session.end_micro_step()
        session.grad_norm(norm)


# ---- parameters and gradients ---------------------------------------------------------------------------

def unshard(fsdp_state, handle, *args, **kwargs):
    number = number_of(handle)
    if number is None or not session.started or not handle.uses_sharded_strategy or id(handle) in state.gathers:
        return None
    gather = session.gathers = session.gathers + 1
    state.gathers[id(handle)] = gather, state.cause
    elems, module = session.param_elems[number], module_of(handle)
    session.available += elems
    events.param_status(k.GATHER, k.IN_FLIGHT, state.cause, number, module, gather, elems, session.available)
    if state.cause == k.PREFETCH:
        events.prefetch_issued(gather, state.entered, 1, elems)
    session.purpose = (k.GATHER, gather, _core.Parts([(number, elems)]))
    return number, module, gather, elems, state.cause


def unsharded(issued, result, fsdp_state, handle, *args, **kwargs):
    if issued is None:
        return
    session.purpose_served()
    number, module, gather, elems, cause = issued
    events.param_status(k.COMPUTE, k.AVAILABLE, cause, number, module, gather, elems, session.available)
    memory_changed(handle)


def memory_changed(handle):
    slots = state.slots.get(id(handle))
    if slots is not None:
        slots.changed()


def reshard(fsdp_state, handle, free_unsharded_flat_param):
    number = number_of(handle)
    if number is None or not session.started or not handle.uses_sharded_strategy:
        return
    elems, module = session.param_elems[number], module_of(handle)
    if not free_unsharded_flat_param:
        if session.phase == k.FORWARD:
            events.release_kept(k.KEEP_RESHARD_OFF, module, number, elems)
        return
    gather = state.gathers.pop(id(handle), None)
    if gather is not None:
        session.available -= elems
        events.param_status(k.COMPUTE, k.NOT_AVAILABLE, k.RELEASE, number, module, gather[0], elems, session.available)


def resharded(_, result, fsdp_state, handle, *args, **kwargs):
    memory_changed(handle)


def prefetch_begins(*args, **kwargs):
    before, state.cause = state.cause, k.PREFETCH
    return before


def prefetch_ended(before, result, *args, **kwargs):
    state.cause = before


def reduce_begins(fsdp_state, handle):
    number = number_of(handle)
    if number is not None and session.started:
        elems = session.param_elems[number]
        buckets.add(id(handle), number, elems, elems)
        buckets.flush(id(handle), _core.Parts([(number, elems)]), elems, False, reason=k.GROUP_COMPLETE)


def reduce_issued(_, result, *args, **kwargs):
    session.purpose_served()
