"""DeepSpeed stage 0: gradients, whole on every rank, reduced in buckets after the last micro-step's backward.

| symbol of runtime.engine.DeepSpeedEngine | event |
|---|---|
| allreduce_no_retain | the gradients that are reduced, and how many elements fill a bucket |
| allreduce_and_copy, before | bucket with its gradients; gate `bucket`; bucket_flush: full, or the last one, at the boundary |

Gradients that an optimizer stores in its own tensors (BF16_Optimizer) cannot be attributed to parameters.
"""
from shardscope import _core, _hooks, _kinds as k
from shardscope._hooks import Adapter
from shardscope._session import session
from shardscope.deepspeed import layout

WHAT = "buckets flush_reasons collective_parts"
FLAT = "this optimizer has gradients reduced that are not its parameters' own: which bucket has which is not known"
buckets = _core.Buckets(session)


class State:
    numbers, limit = {}, 0  # address of a gradient -> its parameter; elements that fill a bucket
    flat = False  # gradients without parameters: reported once


def start_anew():
    State.numbers, State.flat = {}, False


def adapters():
    _hooks.at_turn_off(start_anew)
    return [Adapter("DeepSpeed stage 0", "deepspeed.runtime.engine", install)]


def install(table):
    cls = "DeepSpeedEngine."
    table.wrap(cls + "allreduce_no_retain", "self bucket dp_group numel_per_bucket", before=begins, after=forget, raised=forget)
    table.wrap(cls + "allreduce_and_copy", "self small_bucket dp_group", before=reduces, after=reduced)


def begins(engine, bucket, dp_group, numel_per_bucket=500_000_000, *args, **kwargs):
    if not session.watches(engine.module) or layout.stages_of(engine) > 1:
        return
    named = ((param, session.params.get(id(param))) for param in engine.module.parameters())
    State.limit = numel_per_bucket
    State.numbers = {} if State.flat else {
        param.grad.data_ptr(): number for param, number in named
        if number is not None and param.grad is not None and not param.grad.is_sparse}  # sparse ones are reduced as they are


def forget(*_, **__):
    State.numbers = {}


def reduces(engine, small_bucket, *args, **kwargs):
    if not State.numbers:
        return
    numbers = [State.numbers.get(gradient.data_ptr()) for gradient in small_bucket]
    if None in numbers:
        forget()
        State.flat = True
        session.not_recorded(WHAT, FLAT)
        return
    parts = _core.Parts([(number, session.param_elems[number]) for number in numbers])
    full = parts.elems > State.limit
    parts.fill(buckets.of(id(engine)))
    buckets.flush(id(engine), parts, parts.elems, False, reason=k.FULL if full else k.BOUNDARY)


def reduced(_, result, engine, *args, **kwargs):
    if State.numbers:
        session.purpose_served()
