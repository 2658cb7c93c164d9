"""Finds the parameter that caused an overflow in DeepSpeed's stages 1 to 3.

| symbol of DeepSpeedZeroOptimizer and DeepSpeedZeroOptimizer_Stage3 | event |
|---|---|
| check_overflow, after, if it found one | gradient_not_finite |

DeepSpeed's own check has finished by then, and the gradients still exist. Only in runs on a CPU: on a GPU each check
would make the host wait, and for gradients offloaded to the host the first one would not be known. The parameter with
the highest number is reported: backward computes its gradient first.
"""
from shardscope._hooks import Adapter
from shardscope._session import session


def adapters():
    return [adapter("stages 1 and 2", "stage_1_and_2", "DeepSpeedZeroOptimizer", of_stages_1_and_2),
            adapter("stage 3", "stage3", "DeepSpeedZeroOptimizer_Stage3", of_stage_3)]


def adapter(stages, module, cls, gradients):
    """`gradients`(optimizer) yields (parameter, its part of this rank's partition without padding)."""
    return Adapter(f"DeepSpeed's overflow check in {stages}", f"deepspeed.runtime.zero.{module}", lambda table: table.wrap(
        f"{cls}.check_overflow", "self partition_gradients",
        after=lambda token, result, optimizer, *args, **kwargs: checked(optimizer, gradients)))


def checked(optimizer, gradients):
    if not session.in_step or session.on_device or not getattr(optimizer, "overflow", False):
        return
    found = not_finite(gradients(optimizer))
    if found:
        last = max(found)
        session.gradient_not_finite(last, *found[last], len(found) - 1)


def not_finite(gradients):
    """{number of the parameter: [infinite elements, NaN elements]}, if it has any and its gradient is in host memory."""
    found = {}
    for param, gradient in gradients:
        number = session.params.get(id(param))
        if number is None or gradient.device.type != "cpu":
            continue
        infinite, nan = int(gradient.isinf().sum()), int(gradient.isnan().sum())
        if infinite or nan:
            counts = found.setdefault(number, [0, 0])
            counts[0] += infinite
            counts[1] += nan
    return found


def of_stages_1_and_2(optimizer):
    import torch.distributed as dist
    for group, params in enumerate(optimizer.params_in_partition):
        rank = dist.get_rank(group=optimizer.real_dp_process_group[group])
        places = optimizer.grad_partition_insertion_offset[group][rank]
        begins = optimizer.grad_start_offset[group][rank]
        at = {places[optimizer.get_param_id(param)]: param for param in params}
        if optimizer.cpu_offload:
            flat = optimizer.single_partition_of_fp32_groups[group].grad
            for place, param in at.items() if flat is not None else ():
                elems = min(param.numel() - begins[optimizer.get_param_id(param)], flat.numel() - place)
                yield param, flat.narrow(0, place, elems)
            continue
        place = 0  # padding has tensors of its own, at offsets where no parameter begins
        for gradient in optimizer.averaged_gradients.get(group) or ():
            if place in at:
                yield at[place], gradient
            place += gradient.numel()


def of_stage_3(optimizer):
    import torch.distributed as dist
    for group, params in enumerate(optimizer.fp16_groups):
        flat = optimizer.fp32_partitioned_groups_flat[group].grad if optimizer.offload_optimizer else None
        gradients = optimizer.averaged_gradients.get(group)
        for index, param in enumerate(params):
            shard = param.partition_numel()
            elems = min(shard, param.ds_numel - shard * dist.get_rank(group=param.ds_process_group))
            if elems <= 0 or not param.requires_grad:
                continue
            if flat is not None:
                yield param, flat.narrow(0, optimizer.grad_position[optimizer.get_param_id(param)][1], elems)
            elif gradients is not None:
                yield param, gradients[index].view(-1).narrow(0, 0, elems)
