"""DeepSpeed ZeRO stage 3: buckets of gradients, and the optimizer's sub-groups.

O = stage3.DeepSpeedZeroOptimizer_Stage3

| symbol | event |
|---|---|
| O.reduce_independent_p_g_buckets_and_remove_grads | the parameter whose gradient is ready |
| O.__add_grad_to_ipg_bucket, O.__reduce_and_partition_ipg_grads | buckets; gate `bucket` |
| O.independent_gradient_partition_epilogue | flushes within it are the epilogue's |
| O._optimizer_step | optimizer_begin, optimizer_end |
"""
from shardscope import _core, _kinds as k, _memory
from shardscope._session import session

events = _core.events
O = "_DeepSpeedZeroOptimizer_Stage3__"
buckets = _core.Buckets(session)


def install_optimizer(table):
    cls = "DeepSpeedZeroOptimizer_Stage3."
    gradients = _core.GradientHooks(session, buckets)
    table.wrap(cls + "reduce_independent_p_g_buckets_and_remove_grads", "self param", before=gradients.comes,
               after=gradients.came)
    table.wrap(cls + O + "add_grad_to_ipg_bucket", "self param", after=gradients.added)
    table.wrap(cls + O + "reduce_and_partition_ipg_grads", "self communication_data_type", before=gradients.flush,
               after=gradients.flushed)
    table.wrap(cls + "independent_gradient_partition_epilogue", "self", before=lambda self: buckets.in_epilogue(True),
               after=lambda token, result, self: buckets.in_epilogue(False))
    table.wrap(cls + "_optimizer_step", "self sub_group_id", before=sub_group_begins, after=sub_group_ended)


def sub_group_begins(optimizer, sub_group_id):
    elems = optimizer.fp16_partitioned_groups_flat_numel[sub_group_id]
    if session.in_step:
        session.memory.sample(_memory.SUB_GROUP)
        events.optimizer_begin(k.COMPUTE, sub_group_id, session.step, elems)
        return elems


def sub_group_ended(elems, result, optimizer, sub_group_id):
    if elems is not None:
        events.optimizer_end(k.COMPUTE, sub_group_id, session.step, elems)
