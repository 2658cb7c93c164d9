"""DeepSpeed ZeRO stage 3: every parameter's status and waits, and the state that stage 3's other tables share.

| symbol of partition_parameters | event |
|---|---|
| torch.nn.Parameter.ds_status, assigned | every status change, with its cause |
| the handles' wait | fetch_wait, at the first wait of a gather |
| GatheredParameters.__enter__, __exit__ | cause context |
| Init._convert_to_deepspeed_param, after | a parameter made after the description of its model, which the next forward adds |
"""
from shardscope import _core, _kinds as k
from shardscope._hooks import Differs
from shardscope._session import session

HANDLES = ("AllGatherHandle", "AllGatherCoalescedHandle", "AllReduceCoalescedHandle")
OF_ONE_RANK = ("NoGatherHandle", "NoGatherCoalescedHandle")
RELEASED, PARTITIONED, INVALIDATED, IN_CONTEXT = k.RELEASE, k.PARTITION, k.INVALIDATION, k.CONTEXT


# State of the hooks between two calls of the coordinator: `module`, whose fetch or release is in progress; `entering`,
# whose pre-hook runs; `gather`, being issued; `cause_in` and `cause_out` of changes to in flight and not available.
state = _core.ParamStatuses()


def after_description(engine):
    """Initial status of parameters that are available (persistent ones, or all gathered before) or in flight."""
    for param in engine.module.parameters():
        if hasattr(param, "ds_status") and param.ds_status.name != "NOT_AVAILABLE":
            state.changed(param, param.ds_status)


def install_parameters(table):
    import torch
    status = table.owner("ZeroParamStatus")
    for name in ("Init", "GatheredParameters"):
        table.owner(name)
    for name in ("NOT_AVAILABLE", "INFLIGHT", "AVAILABLE"):
        if not hasattr(status, name):
            raise Differs(f"{table.module.__name__}.ZeroParamStatus.{name} is not there")
    if "ds_status" in vars(torch.nn.Parameter):
        raise Differs("torch.nn.Parameter.ds_status is used by another library")
    adapter = table.adapter
    state.follow(session, status.NOT_AVAILABLE, status.INFLIGHT, status.AVAILABLE, adapter.switch)
    table.replace(torch.nn.Parameter, "ds_status", _core.WatchedAttribute(
        "ds_status", state, lambda error: adapter.failed("Parameter.ds_status", error), adapter.switch))
    waits = _core.FetchWaits(session, state)
    for handle in (*HANDLES, *(name for name in OF_ONE_RANK if table.has(name))):
        table.wrap(f"{handle}.wait", "self", before=waits.begins, after=waits.ended)
    table.wrap("Init._convert_to_deepspeed_param", "self param", after=converted)
    table.wrap("GatheredParameters.__enter__", "self", before=lambda context: set_causes(IN_CONTEXT, IN_CONTEXT),
               after=lambda token, result, context: set_causes(*token))
    table.wrap("GatheredParameters.__exit__", "self", before=lambda context, *exc: set_causes(IN_CONTEXT, IN_CONTEXT),
               after=lambda token, result, context, *exc: set_causes(*token))


def converted(_, result, *args, **kwargs):
    Late.came = Late.came or session.started


class Late:
    came = False  # parameters that no table has may be in a recorded model



def set_causes(cause_in, cause_out):
    before = state.cause_in, state.cause_out
    state.cause_in, state.cause_out = cause_in, cause_out
    return before
