"""DeepSpeed's coordinator: what is fetched, prefetched, kept and released at each module, and why.

C = partitioned_param_coordinator.PartitionedParameterCoordinator

| symbol | event |
|---|---|
| C.fetch_sub_module, before | gates `pre_forward`, `pre_backward`: nothing is issued yet |
| C._fetch_sub_module_impl, after | fetch_decision: what was prefetched and why no more |
| C.__all_gather_params_, before | the gather: its parameters, fetch or prefetch |
| C.release_sub_module, after | release_kept with its reason; gates `post_forward`, `post_backward` |
| C.release_and_reset_all | cause partition |
| C.reset_step, C._invalidate_trace | trace_mode, trace_invalidated |
"""
import operator
import weakref

from shardscope import _core, _kinds as k
from shardscope._session import NO_ID, session
from shardscope.deepspeed.zero3_params import INVALIDATED, PARTITIONED, set_causes, state

emit = _core.emit
C = "_PartitionedParameterCoordinator__"


def private(name):
    """get(coordinator) of one of its own attributes."""
    return operator.attrgetter(C + name)


step_id_of, available_of, bucket_of, queue_of, limit_of = map(private, (
    "step_id", "n_available_params", "prefetch_bucket_sz", "param_queue", "max_n_available_params"))
fetched_for, trace_mode_of, order_of = map(private, (
    "most_recent_step_id_param_fetched_for", "trace_mode", "submodule_order"))
params = {}  # id(module) -> Params
MODES = {"INVALID": 0, "RECORD": 1, "COMPLETE": 2}


def install_coordinator(table):
    params.clear()
    cls = "PartitionedParameterCoordinator."
    table.owner("iter_params")
    table.owner("z3_leaf_module")
    state.iter_params, state.is_leaf = table.module.iter_params, table.module.z3_leaf_module
    hooks = module_hooks()
    table.wrap(cls + "fetch_sub_module", "self current_submodule forward", before=hooks.fetch_gate)
    table.wrap(cls + "_fetch_sub_module_impl", "self current_submodule forward is_leaf", before=fetch_begins,
               after=fetch_ended)
    table.wrap(cls + C + "all_gather_params_", "self params forward", before=gather_begins, after=gather_issued)
    table.wrap(cls + "release_sub_module", "self submodule forward", before=hooks.release_begins,
               after=hooks.released)
    table.wrap(cls + "release_and_reset_all", "self module", before=lambda *a: set_causes(state.cause_in, PARTITIONED),
               after=lambda token, result, *a: set_causes(*token))
    table.wrap(cls + "reset_step", "self", after=step_reset)
    table.wrap(cls + "_invalidate_trace", "self", before=invalidated, after=lambda token, result, *a: set_causes(*token))


class Params:
    """Of one module, as DeepSpeed iterates over them, with their numbers."""
    __slots__ = ("module", "version", "all", "identities")

    def __init__(self, module, version):
        self.module = weakref.ref(module, lambda _, key=id(module): params.pop(key, None))
        self.version = version
        self.all = [(param, session.params.get(id(param))) for param in state.iter_params(module, recurse=state.is_leaf(module))]
        self.identities = frozenset(id(param) for param, _ in self.all)


def params_of(module):
    """Asked twice a module and pass: DeepSpeed's iteration is repeated only where it may give something else, as after
    external parameters have been registered during the first forward."""
    version = len(module._parameters), len(getattr(module, "_external_params", ())), len(session.names)
    known = params.get(id(module))
    if known is None or known.version != version:
        known = params[id(module)] = Params(module, version)
    return known


def module_hooks():
    """Gates, spans and releases of modules: their hooks, in C++."""
    import torch
    return _core.ModuleHooks(session, state, torch._C._current_graph_task_id, emit_kept)


def fetch_begins(coordinator, current_submodule, forward, is_leaf):
    state.module = session.modules.get(id(current_submodule), NO_ID)
    state.submodule = current_submodule
    state.prefetched, state.fetched = 0, NO_ID
    return step_id_of(coordinator)


def fetch_ended(step_id, result, coordinator, *args, **kwargs):
    available = available_of(coordinator)
    if state.module != NO_ID and session.started:
        emit(k.FETCH_DECISION, k.HOST, why_no_more(coordinator, available), state.module, state.fetched, step_id,
             state.prefetched, available)
    state.module, state.submodule = NO_ID, None


def why_no_more(coordinator, available):
    """The coordinator's reason not to prefetch (more), from the state that its loop left behind."""
    bucket = bucket_of(coordinator)
    if bucket == 0:
        return k.STOP_DISABLED
    if not coordinator.is_complete_trace():
        return k.STOP_NO_TRACE
    queue = queue_of(coordinator)
    if not queue:
        return k.STOP_END_OF_TRACE
    head = queue[0].param
    if getattr(head, "nvme_swapper", None) is not None and head.ds_tensor.final_location is not None \
            and getattr(head.ds_tensor.status, "name", "") == "NOT_AVAILABLE":
        return k.STOP_OFFLOADED
    # What was available when the prefetch loop began: without what it then gathered itself.
    room = limit_of(coordinator) - (available - state.prefetched)
    return k.STOP_LIVE_LIMIT if room < bucket else k.STOP_BUCKET_FULL


def gather_begins(coordinator, params, forward, quantize=False):
    missing = [p for p in params if p.ds_status.name == "NOT_AVAILABLE"]
    before = state.cause_in, state.gather
    if not missing or not session.started:
        return before
    gather = session.gathers = session.gathers + 1
    prefetch = state.submodule is None or not params_of(state.submodule).identities.issuperset(map(id, missing))
    numbers = [(session.params[id(p)], p.ds_numel) for p in missing if id(p) in session.params]
    for number, _ in numbers:
        state.gathered_by(number, gather)
    parts = _core.Parts(numbers)
    state.cause_in, state.gather = (k.PREFETCH if prefetch else k.FETCH), gather
    if prefetch:
        state.prefetched += parts.elems
        emit(k.PREFETCH_ISSUED, k.HOST, 0, gather, state.module, len(parts), parts.elems, 0)
    else:
        state.fetched = gather
    session.purpose = (k.GATHER, gather, parts)
    return before


def gather_issued(before, result, *args, **kwargs):
    session.purpose_served()
    state.cause_in, state.gather = before


def emit_kept(coordinator, submodule, module):
    """Why parameters of the module stay, in the order of the coordinator's own checks."""
    of_module = params_of(submodule).all
    complete = of_module and coordinator.is_complete_trace()
    for param, number in of_module:
        if number is None or state.status_of(number) == k.NOT_AVAILABLE and param.ds_status.name == "NOT_AVAILABLE":
            continue
        status = param.ds_status.name
        if param.is_external_param:
            reason = k.KEEP_EXTERNAL
        elif param.ds_active_sub_modules:
            reason = k.KEEP_IN_USE
        elif status != "AVAILABLE":
            reason = k.KEEP_NOT_AVAILABLE
        elif param.ds_persist:
            reason = k.KEEP_PERSISTENT
        elif complete and fetched_for(coordinator)[param] > step_id_of(coordinator):
            reason = k.KEEP_ALREADY_FETCHED
        else:
            reason = k.KEEP_REUSED_SOON
        emit(k.RELEASE_KEPT, k.HOST, reason, module, number, NO_ID, session.param_elems[number], 0)


def step_reset(_, result, coordinator):
    if session.started:
        emit(k.TRACE_MODE, k.HOST, MODES[trace_mode_of(coordinator).name], session.micro_step, session.step, NO_ID, 0, 0)


def invalidated(coordinator):
    order, step_id = order_of(coordinator), step_id_of(coordinator)
    expected = session.modules.get(id(order[step_id]), NO_ID) if step_id < len(order) else NO_ID
    if session.started:
        emit(k.TRACE_INVALIDATED, k.HOST, 0 if step_id < len(order) else 1, expected, state.entering, step_id, len(order), 0)
    return set_causes(state.cause_in, INVALIDATED)
