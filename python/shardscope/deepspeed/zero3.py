"""DeepSpeed ZeRO stage 3: who holds which parameter when, why it was fetched, prefetched, kept or released.

C = partitioned_param_coordinator.PartitionedParameterCoordinator, O = stage3.DeepSpeedZeroOptimizer_Stage3

| symbol | what it tells |
|---|---|
| torch.nn.Parameter.ds_status, assigned | every change of status, with its cause |
| C.fetch_sub_module, before | gates `pre_forward`, `pre_backward`: nothing is issued yet |
| C._fetch_sub_module_impl, after | fetch_decision: what was prefetched and why no more |
| C.__all_gather_params_, before | the gather: its parameters, fetch or prefetch |
| the handles' wait | fetch_wait, of the first wait of a gather |
| C.release_sub_module, after | release_kept with its reason; gates `post_forward`, `post_backward` |
| C.release_and_reset_all | cause partition |
| C.reset_step, C._invalidate_trace | trace_mode, trace_invalidated |
| PartitionedParameterProfiler.stop_event | the eight fetch_counters |
| DeepSpeedZeRoOffload.{pre,post}_sub_module_{forward,backward}_function | spans of modules |
| O.__add_grad_to_ipg_bucket, O.__reduce_and_partition_ipg_grads | buckets; gate `bucket` |
| O._optimizer_step | optimizer_begin, optimizer_end |
"""
from shardscope import _core, _kinds as k
from shardscope._buckets import Buckets
from shardscope._hooks import Adapter, Differs
from shardscope._session import NO_ID, session

emit = _core.emit
C = "_PartitionedParameterCoordinator__"
O = "_DeepSpeedZeroOptimizer_Stage3__"
STATUS = {"NOT_AVAILABLE": k.NOT_AVAILABLE, "INFLIGHT": k.IN_FLIGHT, "AVAILABLE": k.AVAILABLE}
MODES = {"INVALID": 0, "RECORD": 1, "COMPLETE": 2}
COUNTERS = ("forward_fetch_submit", "forward_fetch_wait", "forward_prefetch_submit", "forward_all_gather",
            "backward_fetch_submit", "backward_fetch_wait", "backward_prefetch_submit", "backward_all_gather")
HANDLES = ("AllGatherHandle", "AllGatherCoalescedHandle", "AllReduceCoalescedHandle")
RELEASED, PARTITIONED, INVALIDATED, IN_CONTEXT = k.RELEASE, k.PARTITION, k.INVALIDATION, k.CONTEXT


class State:
    """What the hooks know of the coordinator between two calls."""

    def __init__(self):
        self.status = {}  # parameter's number -> status told last
        self.gather_of = {}  # parameter's number -> gather that brings it
        self.module = NO_ID  # whose fetch or release is going on
        self.own = frozenset()  # identities of its parameters
        self.cause_in = k.FETCH  # of what becomes in flight
        self.cause_out = RELEASED  # of what becomes not available
        self.gather = NO_ID
        self.prefetched = 0  # elements, of the fetch going on
        self.live_room = None  # elements that the live limit left when the prefetch began
        self.counters = dict.fromkeys(COUNTERS, (0, 0))


state = State()
buckets = Buckets()


def adapters():
    zero = "deepspeed.runtime.zero."
    return [Adapter("DeepSpeed stage 3, coordinator", zero + "partitioned_param_coordinator", install_coordinator),
            Adapter("DeepSpeed stage 3, parameters", zero + "partition_parameters", install_parameters),
            Adapter("DeepSpeed stage 3, modules", zero + "parameter_offload", install_modules),
            Adapter("DeepSpeed stage 3, counters", zero + "partitioned_param_profiler", install_counters),
            Adapter("DeepSpeed stage 3, optimizer", zero + "stage3", install_optimizer)]


def after_description(engine):
    """Parameters that are whole already (persistent ones, or all that were gathered before)."""
    for param in engine.module.parameters():
        if hasattr(param, "ds_status") and param.ds_status.name == "AVAILABLE":
            status_changed(param, param.ds_status)


# ---- parameters ---------------------------------------------------------------------------------------

def install_parameters(table):
    import torch
    for name in ("ZeroParamStatus", "Init", "GatheredParameters"):
        table.owner(name)
    if "ds_status" in vars(torch.nn.Parameter):
        raise Differs("torch.nn.Parameter.ds_status is taken by somebody else")
    adapter = table.adapter

    def assigned(param, status):
        if adapter.on:
            try:
                status_changed(param, status)
            except Exception as error:
                adapter.failed("Parameter.ds_status", error)

    table.replace(torch.nn.Parameter, "ds_status", _core.WatchedAttribute("ds_status", assigned))
    for handle in HANDLES:
        table.wrap(f"{handle}.wait", "self", before=wait_begins, after=wait_ended)
    table.wrap("GatheredParameters.__enter__", "self", before=lambda context: set_causes(IN_CONTEXT, IN_CONTEXT),
               after=lambda token, result, context: set_causes(*token))
    table.wrap("GatheredParameters.__exit__", "self", before=lambda context, *exc: set_causes(IN_CONTEXT, IN_CONTEXT),
               after=lambda token, result, context, *exc: set_causes(*token))


def set_causes(cause_in, cause_out):
    before = state.cause_in, state.cause_out
    state.cause_in, state.cause_out = cause_in, cause_out
    return before


def status_changed(param, value):
    number = session.params.get(id(param))
    if number is None or not session.started:
        return
    status = STATUS[value.name]
    before = state.status.get(number, k.NOT_AVAILABLE)
    if status == before:
        return
    state.status[number] = status
    elems = session.param_elems[number]
    cause = state.cause_out
    if status != k.NOT_AVAILABLE:
        cause = k.PERSISTENT if param.ds_persist and state.gather == NO_ID and before == 0 else state.cause_in
    if before == k.NOT_AVAILABLE:
        session.available += elems
    elif status == k.NOT_AVAILABLE:
        session.available -= elems
    gather = state.gather_of.get(number, NO_ID)
    if status == k.NOT_AVAILABLE:
        state.gather_of.pop(number, None)
    emit(k.PARAM_STATUS, k.GATHER if status == k.IN_FLIGHT else k.COMPUTE, status | cause << 4, number, state.module,
         gather, elems, session.available)


def wait_begins(handle, *args, **kwargs):
    """(module, gather, bytes) of a wait that has something to wait for."""
    if getattr(handle, "complete", False) or not session.started:
        return None
    params = getattr(handle, "params", None) or [handle._AllGatherHandle__param]
    number = session.params.get(id(params[0]))
    if number is None or params[0].ds_status.name != "INFLIGHT":
        return None
    told = state.module, state.gather_of.get(number, NO_ID), sum(p.ds_numel * p.element_size() for p in params)
    emit(k.FETCH_WAIT_BEGIN, k.COMPUTE, 0, told[0], told[1], NO_ID, told[2], 0)
    return told


def wait_ended(told, result, handle, *args, **kwargs):
    if told is not None:
        emit(k.FETCH_WAIT_END, k.COMPUTE, 0, told[0], told[1], NO_ID, told[2], 0)


# ---- the coordinator ----------------------------------------------------------------------------------

def install_coordinator(table):
    cls = "PartitionedParameterCoordinator."
    table.owner("iter_params")
    table.owner("z3_leaf_module")
    state.iter_params, state.is_leaf = table.module.iter_params, table.module.z3_leaf_module
    table.wrap(cls + "fetch_sub_module", "self current_submodule forward", before=fetch_gate)
    table.wrap(cls + "_fetch_sub_module_impl", "self current_submodule forward is_leaf", before=fetch_begins,
               after=fetch_ended)
    table.wrap(cls + C + "all_gather_params_", "self params forward", before=gather_begins, after=gather_issued)
    table.wrap(cls + "release_sub_module", "self submodule forward", before=release_begins, after=released)
    table.wrap(cls + "release_and_reset_all", "self module", before=lambda *a: set_causes(state.cause_in, PARTITIONED),
               after=lambda token, result, *a: set_causes(*token))
    table.wrap(cls + "reset_step", "self", after=step_reset)
    table.wrap(cls + "_invalidate_trace", "self", before=invalidated, after=lambda token, result, *a: set_causes(*token))


def get(coordinator, name):
    return getattr(coordinator, C + name)


def params_of(module):
    return list(state.iter_params(module, recurse=state.is_leaf(module)))


def fetch_gate(coordinator, current_submodule, forward):
    number = session.modules.get(id(current_submodule))
    if number is not None and session.in_micro_step:
        _core.gate(k.GATE_PRE_FORWARD if forward else k.GATE_PRE_BACKWARD, number)


def fetch_begins(coordinator, current_submodule, forward, is_leaf):
    state.module = session.modules.get(id(current_submodule), NO_ID)
    state.own = frozenset(map(id, params_of(current_submodule)))
    state.prefetched, state.live_room, state.fetched = 0, None, NO_ID
    return get(coordinator, "step_id")


def fetch_ended(step_id, result, coordinator, *args, **kwargs):
    available = get(coordinator, "n_available_params")
    if state.module != NO_ID and session.started:
        emit(k.FETCH_DECISION, k.HOST, why_no_more(coordinator, available), state.module, state.fetched, step_id,
             state.prefetched, available)
    state.module, state.own = NO_ID, frozenset()


def why_no_more(coordinator, available):
    """The coordinator's reason not to prefetch (more), from the state that its loop left behind."""
    bucket = get(coordinator, "prefetch_bucket_sz")
    if bucket == 0:
        return k.STOP_DISABLED
    if not coordinator.is_complete_trace():
        return k.STOP_NO_TRACE
    queue = get(coordinator, "param_queue")
    if not queue:
        return k.STOP_END_OF_TRACE
    head = queue[0].param
    if getattr(head, "nvme_swapper", None) is not None and head.ds_tensor.final_location is not None \
            and getattr(head.ds_tensor.status, "name", "") == "NOT_AVAILABLE":
        return k.STOP_OFFLOADED
    # What was available when the prefetch loop began: without what it then gathered itself.
    room = get(coordinator, "max_n_available_params") - (available - state.prefetched)
    return k.STOP_LIVE_LIMIT if room < bucket else k.STOP_BUCKET_FULL


def gather_begins(coordinator, params, forward, quantize=False):
    missing = [p for p in params if p.ds_status.name == "NOT_AVAILABLE"]
    before = state.cause_in, state.gather
    if not missing or not session.started:
        return before
    gather = session.gathers = session.gathers + 1
    prefetch = not state.own.issuperset(map(id, missing))
    parts = [(session.params[id(p)], p.ds_numel) for p in missing if id(p) in session.params]
    for number, _ in parts:
        state.gather_of[number] = gather
    state.cause_in, state.gather = (k.PREFETCH if prefetch else k.FETCH), gather
    if prefetch:
        elems = sum(elems for _, elems in parts)
        state.prefetched += elems
        emit(k.PREFETCH_ISSUED, k.HOST, 0, gather, state.module, len(parts), elems, 0)
    else:
        state.fetched = gather
    session.purpose = (k.GATHER, gather, parts)
    return before


def gather_issued(before, result, *args, **kwargs):
    session.purpose_served()
    state.cause_in, state.gather = before


def release_begins(coordinator, submodule, forward=False):
    state.module = session.modules.get(id(submodule), NO_ID)


def released(_, result, coordinator, submodule, forward=False):
    module, state.module = state.module, NO_ID
    if module == NO_ID or not session.started:
        return
    if _core.enabled(k.PARAMS):
        tell_kept(coordinator, submodule, module)
    if session.in_micro_step:
        _core.gate(k.GATE_POST_FORWARD if forward else k.GATE_POST_BACKWARD, module)


def tell_kept(coordinator, submodule, module):
    """Why parameters of the module stay, in the order of the coordinator's own checks. It has answered
    __params_to_release for this module and step already: asking again reads its cache."""
    released_ids = None
    for param in params_of(submodule):
        number = session.params.get(id(param))
        if number is None:
            continue
        status = param.ds_status.name
        if status == "NOT_AVAILABLE" and state.status.get(number, 0) == k.NOT_AVAILABLE:
            continue
        step_id = get(coordinator, "step_id")
        complete = coordinator.is_complete_trace()
        if complete and released_ids is None:
            released_ids = get(coordinator, "params_to_release")(submodule, step_id)
        if param.is_external_param:
            reason = k.KEEP_EXTERNAL
        elif param.ds_active_sub_modules:
            reason = k.KEEP_IN_USE
        elif status != "AVAILABLE":
            reason = k.KEEP_NOT_AVAILABLE
        elif param.ds_persist:
            reason = k.KEEP_PERSISTENT
        elif complete and get(coordinator, "most_recent_step_id_param_fetched_for")[param] > step_id:
            reason = k.KEEP_ALREADY_FETCHED
        else:
            reason = k.KEEP_REUSED_SOON
        emit(k.RELEASE_KEPT, k.HOST, reason, module, number, NO_ID, session.param_elems[number], 0)


def step_reset(_, result, coordinator):
    if session.started:
        emit(k.TRACE_MODE, k.HOST, MODES[get(coordinator, "trace_mode").name], session.micro_step, session.step, NO_ID, 0, 0)


def invalidated(coordinator):
    order, step_id = get(coordinator, "submodule_order"), get(coordinator, "step_id")
    expected = session.modules.get(id(order[step_id]), NO_ID) if step_id < len(order) else NO_ID
    if session.started:
        emit(k.TRACE_INVALIDATED, k.HOST, 0 if step_id < len(order) else 1, expected, state.entering, step_id, len(order), 0)
    return set_causes(state.cause_in, INVALIDATED)


# ---- modules, counters --------------------------------------------------------------------------------

state.entering = NO_ID
state.fetched = NO_ID


def install_modules(table):
    cls = "DeepSpeedZeRoOffload."
    table.wrap(cls + "pre_sub_module_forward_function", "self sub_module", before=entering, after=forward_begins)
    table.wrap(cls + "post_sub_module_forward_function", "self sub_module", before=span_ends)
    table.wrap(cls + "pre_sub_module_backward_function", "self sub_module", before=entering, after=backward_begins)
    table.wrap(cls + "post_sub_module_backward_function", "self sub_module", before=span_ends)


def entering(offload, sub_module):
    state.entering = session.modules.get(id(sub_module), NO_ID)


def forward_begins(_, result, offload, sub_module):
    number = session.modules.get(id(sub_module))
    if number is not None and session.started:
        session.begin_span(session.forward_pass(), number)


def backward_begins(_, result, offload, sub_module):
    number = session.modules.get(id(sub_module))
    if number is not None and session.started:
        session.begin_span(k.PASS_BACKWARD, number)


def span_ends(offload, sub_module):
    number = session.modules.get(id(sub_module))
    if number is not None and session.started:
        session.end_span(number)


def install_counters(table):
    table.wrap("PartitionedParameterProfiler.stop_event", "self name num_elem", after=counted)


def counted(_, result, profiler, name, num_elem):
    key = name.lower()
    if key in state.counters:
        count, elems = state.counters[key]
        state.counters[key] = count + 1, elems + num_elem


def tell_counters():
    """At the end of a backward: what its micro-step fetched."""
    for code, name in enumerate(COUNTERS):
        count, elems = state.counters[name]
        if count:
            emit(k.FETCH_COUNTER, k.HOST, code, session.micro_step, session.step, count, elems, 0)
            state.counters[name] = (0, 0)


# ---- gradients and the optimizer ----------------------------------------------------------------------

def install_optimizer(table):
    cls = "DeepSpeedZeroOptimizer_Stage3."
    table.wrap(cls + "reduce_independent_p_g_buckets_and_remove_grads", "self param", before=gradient_comes,
               after=lambda *a: buckets.no_trigger())
    table.wrap(cls + O + "add_grad_to_ipg_bucket", "self param", after=added)
    table.wrap(cls + O + "reduce_and_partition_ipg_grads", "self communication_data_type", before=flush, after=flushed)
    table.wrap(cls + "independent_gradient_partition_epilogue", "self", before=lambda self: buckets.in_epilogue(True),
               after=lambda token, result, self: buckets.in_epilogue(False))
    table.wrap(cls + "_optimizer_step", "self sub_group_id", before=sub_group_begins, after=sub_group_ended)


def gradient_comes(optimizer, param):
    buckets.trigger = session.params.get(id(param), NO_ID)


def added(_, result, optimizer, param):
    number = session.params.get(id(param))
    if number is not None and session.started:
        dtype = optimizer.get_param_comm_dtype(param)
        buckets.add(dtype, number, param.ds_numel, optimizer.ipg_buckets[dtype].elements)


def flush(optimizer, communication_data_type):
    bucket = optimizer.ipg_buckets[communication_data_type]
    if bucket.params and session.started:
        parts = [(session.params[id(p)], p.ds_numel) for p in bucket.params if id(p) in session.params]
        too_large = bucket.elements > optimizer.reduce_bucket_size
        buckets.flush(communication_data_type, parts, bucket.elements, too_large)


def flushed(_, result, optimizer, communication_data_type):
    session.purpose_served()


def sub_group_begins(optimizer, sub_group_id):
    elems = optimizer.fp16_partitioned_groups_flat_numel[sub_group_id]
    if session.in_step:
        emit(k.OPTIMIZER_BEGIN, k.COMPUTE, 0, sub_group_id, session.step, NO_ID, elems, 0)
        return elems


def sub_group_ended(elems, result, optimizer, sub_group_id):
    if elems is not None:
        emit(k.OPTIMIZER_END, k.COMPUTE, 0, sub_group_id, session.step, NO_ID, elems, 0)
