"""torch.distributed.pipelining: micro-steps of a pipeline's stages, whose models FSDP2 or DistributedDataParallel wraps.

| symbol of torch.distributed.pipelining.stage._PipelineStageBase | event |
|---|---|
| __init__, after | whether there is a pipeline: its stages have different modules |
| forward_one_chunk, before | micro-step begin with gates `step` and `micro_step`, phase forward |
| backward_one_chunk | phase backward |

Schedules run forwards ahead of backwards: a micro-step lasts from one forward to the next and contains the backwards of
earlier ones. A recording has one table of modules and parameters for all ranks, and stages have different ones: nothing is
recorded per parameter or module.
"""
from shardscope import _hooks, _kinds as k, _records
from shardscope._hooks import Adapter
from shardscope._session import NO_ID, session

DIFFERENT = "stages of a pipeline have different modules; a recording has one table of them"
BY_MODULE = "modules param_status layout fetch_waits prefetches release_reasons collective_parts buckets flush_reasons"


class State:
    stages = 1  # of the pipeline
    in_chunk = False  # a stage's forward is running


def adapters():
    return [Adapter("torch.distributed.pipelining", "torch.distributed.pipelining.stage", install)]


def install(table):
    _hooks.at_turn_off(forget)
    stage = "_PipelineStageBase."
    table.wrap(stage + "__init__", "self submodule stage_index num_stages", after=made)
    table.wrap(stage + "forward_one_chunk", "self fwd_chunk_id args kwargs", before=forward_begins, after=forward_ended,
               raised=forward_ended)
    table.wrap(stage + "backward_one_chunk", "self bwd_chunk_id", before=backward_begins, after=backward_ended)


def forget():
    State.stages, State.in_chunk = 1, False


def made(_, result, stage, submodule, stage_index, num_stages, *args, **kwargs):
    State.stages = max(State.stages, num_stages)
    if State.stages > 1 and session.watches(model_of(stage)):  # wrapped, and so described, before it became a stage
        from shardscope import modules
        modules.unwatch()
        session.not_recorded(BY_MODULE, DIFFERENT)


def describe_as_stage(run, model):
    """The table of a model of which every rank has another stage."""
    session.add_module(model, NO_ID, "")
    run.not_recorded(_records.bits(BY_MODULE), DIFFERENT)


def forward_begins(stage, *args, **kwargs):
    import torch
    if not torch.is_grad_enabled():
        return
    State.in_chunk = True
    session.trains(model_of(stage))
    if session.started:
        session.begin_micro_step()


def begins_here():
    """Whether this forward of FSDP2 has started the run, and is a stage's: its micro-step has not begun then. Others infer
    shapes."""
    return State.in_chunk and not session.in_micro_step


def model_of(stage):
    """FSDP2 changes the class of the module itself; DistributedDataParallel's model is inside it."""
    return getattr(stage.submod, "module", stage.submod)


def forward_ended(*_, **__):
    State.in_chunk = False


def backward_begins(*args, **kwargs):
    if session.started and session.in_step:
        session.begin_phase(k.BACKWARD)
        return True


def backward_ended(begun, *args, **kwargs):
    if begun:
        session.end_phase()
