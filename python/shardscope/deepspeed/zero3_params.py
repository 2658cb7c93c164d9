"""DeepSpeed ZeRO stage 3: every parameter's status, its waits, and what the other tables of stage 3 know of both.

| symbol of partition_parameters | event |
|---|---|
| torch.nn.Parameter.ds_status, assigned | every change of status, with its cause |
| the handles' wait | fetch_wait, of the first wait of a gather |
| GatheredParameters.__enter__, __exit__ | cause context |
"""
from shardscope import _core, _kinds as k
from shardscope._hooks import Differs
from shardscope._session import NO_ID, session
from shardscope.deepspeed import memory

emit = _core.emit
STATUS = {"NOT_AVAILABLE": k.NOT_AVAILABLE, "INFLIGHT": k.IN_FLIGHT, "AVAILABLE": k.AVAILABLE}
HANDLES = ("AllGatherHandle", "AllGatherCoalescedHandle", "AllReduceCoalescedHandle")
RELEASED, PARTITIONED, INVALIDATED, IN_CONTEXT = k.RELEASE, k.PARTITION, k.INVALIDATION, k.CONTEXT


class State:
    """What the hooks know of the coordinator between two calls."""

    def __init__(self):
        self.status = {}  # parameter's number -> status recorded last
        self.gather_of = {}  # parameter's number -> gather that brings it
        self.module = NO_ID  # whose fetch or release is going on
        self.own = frozenset()  # identities of its parameters
        self.cause_in = k.FETCH  # of what becomes in flight
        self.cause_out = RELEASED  # of what becomes not available
        self.gather = NO_ID
        self.prefetched = 0  # elements, of the fetch going on
        self.live_room = None  # elements that the live limit left when the prefetch began
        self.entering = NO_ID  # module whose pre-hook runs
        self.fetched = NO_ID  # gather of the fetch going on


state = State()


def after_description(engine):
    """Parameters that are whole already (persistent ones, or all that were gathered before)."""
    for param in engine.module.parameters():
        if hasattr(param, "ds_status") and param.ds_status.name == "AVAILABLE":
            status_changed(param, param.ds_status)


def install_parameters(table):
    import torch
    for name in ("ZeroParamStatus", "Init", "GatheredParameters"):
        table.owner(name)
    if "ds_status" in vars(torch.nn.Parameter):
        raise Differs("torch.nn.Parameter.ds_status is used by another library")
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
    size = elems * param.element_size()
    if status == k.IN_FLIGHT:
        memory.in_flight(size)
    elif status == k.AVAILABLE:
        memory.available(number, param, size if before == k.IN_FLIGHT else 0)
    elif before == k.AVAILABLE:
        memory.released(number)
    else:
        memory.in_flight(-size)
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
    wait = state.module, state.gather_of.get(number, NO_ID), sum(p.ds_numel * p.element_size() for p in params)
    emit(k.FETCH_WAIT_BEGIN, k.COMPUTE, 0, wait[0], wait[1], NO_ID, wait[2], 0)
    return wait


def wait_ended(wait, result, handle, *args, **kwargs):
    if wait is not None:
        emit(k.FETCH_WAIT_END, k.COMPUTE, 0, wait[0], wait[1], NO_ID, wait[2], 0)
