"""DeepSpeed's offloading: gradients to host memory, parameters back, and transfers to and from NVMe.

| symbol | event |
|---|---|
| stage_1_and_2.DeepSpeedZeroOptimizer.async_inplace_copy_grad_to_fp32_buffer_from_gpu, async_accumulate_grad_in_cpu_via_gpu | a gradient to the host |
| its _optimizer_step, after, until _release_preflattened_grad_buffers or the next group | a partition to the device |
| stage3.DeepSpeedZeroOptimizer_Stage3._offload_grad_partition_at_boundary | a gradient to the host |
| its _reassign_or_swap_out_partitioned_parameters | a sub-group to the device |
| AsyncPartitionedParameterSwapper.swap_in, until synchronize_reads; swap_out_and_release | NVMe read; write |
| PartitionedOptimizerSwapper, PipelinedOptimizerSwapper: swap_in_optimizer_state, swap_out_optimizer_state | NVMe read; write |

A span is the time of the call. On a GPU copies continue after it; their end is not recorded.
"""
from shardscope import _core, _kinds as k
from shardscope._hooks import Adapter
from shardscope._session import NO_ID, session

events = _core.events
TO_DEVICE, TO_HOST, READ, WRITE = range(4)


def adapters():
    swap = "deepspeed.runtime.swap_tensor."
    return [Adapter("DeepSpeed stages 1 and 2, offloading", "deepspeed.runtime.zero.stage_1_and_2", install_stage_12),
            Adapter("DeepSpeed stage 3, offloading", "deepspeed.runtime.zero.stage3", install_stage_3),
            Adapter("DeepSpeed, parameters on NVMe", swap + "partitioned_param_swapper", install_params),
            Adapter("DeepSpeed, optimizer states on NVMe", swap + "partitioned_optimizer_swapper",
                    lambda table: install_states(table, "PartitionedOptimizerSwapper", "async_parameter", "async_swap")),
            Adapter("DeepSpeed, optimizer states on NVMe, pipelined", swap + "pipelined_optimizer_swapper",
                    lambda table: install_states(table, "PipelinedOptimizerSwapper", "async_parameter", "async_swap"))]


def begin(kind, param=NO_ID, sub_group=NO_ID, size=0):
    span = k.NVME if kind in (READ, WRITE) else k.COPY, kind, param, sub_group, 0, size, 0
    events.transfer_begin(*span)
    return span


def ended(span, *_, **__):
    if span is not None:
        events.transfer_end(*span)


class Back:
    span = None  # of a partition being copied to the device

    @staticmethod
    def arrived(*_, **__):
        span, Back.span = Back.span, None
        ended(span)


# ---- stages 1 and 2 -------------------------------------------------------------------------------------

def install_stage_12(table):
    cls = "DeepSpeedZeroOptimizer."
    for name in ("async_inplace_copy_grad_to_fp32_buffer_from_gpu", "async_accumulate_grad_in_cpu_via_gpu"):
        table.wrap(cls + name, "self param", before=gradient_leaves, after=ended)
    table.wrap(cls + "_optimizer_step", "self group_no", before=Back.arrived, after=partition_leaves)
    table.wrap(cls + "reset_cpu_buffers", "self", before=Back.arrived)
    if table.has(cls + "_release_preflattened_grad_buffers"):
        table.wrap(cls + "_release_preflattened_grad_buffers", "self", before=Back.arrived)


def gradient_leaves(optimizer, param):
    number = session.params.get(id(param))
    if number is None or not session.started:
        return None
    elems = optimizer.grad_position[optimizer.get_param_id(param)][3]
    return begin(TO_HOST, number, size=elems * param.element_size())


def partition_leaves(_, result, optimizer, group_no):
    if session.in_step and optimizer.cpu_offload:
        buffer = optimizer.param_buffer_of_bit16_for_cpu_offload_groups[group_no]
        Back.span = begin(TO_DEVICE, sub_group=group_no, size=buffer.numel() * buffer.element_size())


# ---- stage 3 --------------------------------------------------------------------------------------------

def install_stage_3(table):
    cls = "DeepSpeedZeroOptimizer_Stage3."
    if table.has(cls + "_offload_grad_partition_at_boundary"):
        table.wrap(cls + "_offload_grad_partition_at_boundary", "self param grad_buffer", before=shard_leaves, after=ended)
    table.wrap(cls + "_reassign_or_swap_out_partitioned_parameters", "self sub_group_id", before=sub_group_leaves, after=ended)


def shard_leaves(optimizer, param, grad_buffer, *args, **kwargs):
    number = session.params.get(id(param))
    if number is not None and session.started:
        return begin(TO_HOST, number, size=grad_buffer.numel() * grad_buffer.element_size())


def sub_group_leaves(optimizer, sub_group_id):
    flat = optimizer.fp16_partitioned_groups_flat[sub_group_id]
    if session.in_step and optimizer.offload_optimizer and flat is not None:
        return begin(TO_DEVICE, sub_group=sub_group_id, size=flat.numel() * flat.element_size())


# ---- NVMe -----------------------------------------------------------------------------------------------

class Reading:
    span = None


def install_params(table):
    cls = "AsyncPartitionedParameterSwapper."
    table.wrap(cls + "swap_in", "self params async_op", before=read_begins)
    table.wrap(cls + "synchronize_reads", "self", after=read_ended)
    table.wrap(cls + "swap_out_and_release", "self params async_op", before=write_begins, after=ended)


def shards_of(params):
    """(number of the first parameter, bytes of all their shards)."""
    numbers = [session.params[id(p)] for p in params if id(p) in session.params]
    return (numbers[0] if numbers else NO_ID), sum(p.partition_numel() * p.element_size() for p in params)


def read_begins(swapper, params, *args, **kwargs):
    if session.started and params and Reading.span is None:
        number, size = shards_of(params)
        Reading.span = begin(READ, number, size=size)


def read_ended(_, result, swapper):
    span, Reading.span = Reading.span, None
    ended(span)


def write_begins(swapper, params, *args, **kwargs):
    if session.started and params:
        number, size = shards_of(params)
        return begin(WRITE, number, size=size)


def install_states(table, cls, async_in, async_out):
    table.wrap(f"{cls}.swap_in_optimizer_state", f"self parameter {async_in}", before=states_begin(READ), after=ended)
    table.wrap(f"{cls}.swap_out_optimizer_state", f"self parameter {async_out}", before=states_begin(WRITE), after=ended)


def states_begin(kind):
    def begins(swapper, parameter, *args, **kwargs):
        info = swapper.swap_params_info.get(swapper.parameter_id(parameter))
        if session.in_step and info is not None:
            tensors = info.num_tensors()
            if kind == WRITE and not info.has_state_tensors:  # the first update made the states; they are written too
                tensors += sum(getattr(state, "numel", int)() == info.numel()
                               for state in swapper.optimizer.state.get(parameter, {}).values())
            return begin(kind, size=tensors * info.numel() * info.dtype().itemsize)
    return begins
