"""DeepSpeed ZeRO stages 1 and 2: buckets of gradients, and the optimizer's groups.

| symbol of stage_1_and_2.DeepSpeedZeroOptimizer | event |
|---|---|
| reduce_independent_p_g_buckets_and_remove_grads, after | bucket_add |
| reduce_ipg_grads, before | bucket_flush with its reason; gate `bucket` |
| independent_gradient_partition_epilogue | flushes within it are the epilogue's; after the last, memory: all are reduced |
| reduce_gradients, before | memory: at stage 1, without overlap_comm, all gradients are whole |
| average_tensor, where there is no stream beside the computation | reduce_wait |
| _optimizer_step | optimizer_begin, optimizer_end |
"""
from shardscope import _core, _kinds as k, _memory
from shardscope._hooks import Adapter
from shardscope._session import session
from shardscope.deepspeed import memory

events = _core.events
buckets = _core.Buckets(session)


def adapters():
    return [Adapter("DeepSpeed stages 1 and 2", "deepspeed.runtime.zero.stage_1_and_2", install)]


def install(table):
    cls = "DeepSpeedZeroOptimizer."
    table.wrap(cls + "reduce_independent_p_g_buckets_and_remove_grads", "self param i", before=gradient_comes, after=added)
    table.wrap(cls + "reduce_ipg_grads", "self comm_dtype", before=flush, after=flushed)
    table.wrap(cls + "independent_gradient_partition_epilogue", "self", before=epilogue_begins, after=epilogue_ended,
               raised=lambda token: set_in_epilogue(False))
    table.wrap(cls + "reduce_gradients", "self pipeline_parallel", before=lambda *args, **kwargs: most_memory())
    table.wrap(cls + "average_tensor", "self tensor communication_data_type", before=wait_begins, after=wait_ended)
    table.wrap(cls + "_optimizer_step", "self group_no", before=group_begins, after=group_ended)


class State:
    in_epilogue = False


def set_in_epilogue(within):
    State.in_epilogue = within
    buckets.in_epilogue(within)


def epilogue_begins(optimizer):
    set_in_epilogue(True)


def epilogue_ended(_, result, optimizer):
    set_in_epilogue(False)
    memory.buckets_changed(optimizer)


def gradient_comes(optimizer, param, i):
    buckets.comes(param)


def added(_, result, optimizer, param, i):
    buckets.came()
    number = session.params.get(id(param))
    if number is not None and session.started:
        dtype = optimizer.get_param_comm_dtype(param)
        bucket = optimizer.ipg_buckets[dtype]
        if bucket.params and bucket.params[-1][2] == optimizer.get_param_id(param):
            buckets.add((id(optimizer), dtype), number, param.numel(), bucket.elements, buffer=getattr(bucket, "index", 0))


def flush(optimizer, comm_dtype=None):
    if not session.started:
        return
    memory.buckets_changed(optimizer)
    for dtype in [comm_dtype] if comm_dtype is not None else list(optimizer.ipg_buckets):
        bucket = optimizer.ipg_buckets[dtype]
        if bucket.params:
            groups = optimizer.bit16_groups
            parts = _core.Parts([(session.params[id(groups[i][index])], groups[i][index].numel())
                                 for i, index, _ in bucket.params if id(groups[i][index]) in session.params])
            if len(parts) == 0:  # of a stage of a pipeline: its parameters are in no table
                continue
            buckets.flush((id(optimizer), dtype), parts, bucket.elements,
                          dtype in optimizer.extra_large_param_to_reduce)


def flushed(_, result, optimizer, comm_dtype=None):
    session.purpose_served()
    if State.in_epilogue:
        most_memory()


def most_memory():
    """Samples within a phase: at its end gradients have been freed."""
    if session.in_micro_step:
        session.memory.sample(k.BACKWARD)


def wait_begins(optimizer, tensor, communication_data_type):
    """On a CPU the host reduces here and does nothing else. On a GPU it only queues; the wait is on a stream."""
    if session.started and optimizer.reduction_stream is None and session.purpose is not None:
        wait = session.purpose[1], tensor.numel() * tensor.element_size()
        events.reduce_wait_begin(*wait)
        return wait


def wait_ended(wait, result, *args, **kwargs):
    if wait is not None:
        events.reduce_wait_end(*wait)


def group_begins(optimizer, group_no):
    if session.in_step:
        session.memory.sample(_memory.SUB_GROUP)
        elems = optimizer.bit16_groups_flat[group_no].numel()
        events.optimizer_begin(k.COMPUTE, group_no, session.step, elems)
        return elems


def group_ended(elems, result, optimizer, group_no):
    if elems is not None:
        events.optimizer_end(k.COMPUTE, group_no, session.step, elems)
