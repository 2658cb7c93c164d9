"""Memory of DeepSpeed, by stage. Attributes missing in a version or a configuration count as empty.

| stage | attribute | category |
|---|---|---|
| 3 | Parameter.ds_tensor, fp16_partitioned_groups_flat | parameter shards |
| 3 | Parameter.data while it is gathered; what is in flight | gathered; gather buffer |
| 3 | fp32_partitioned_groups_flat, and its gradients | master weights, gradient shards |
| 3 | grad_partitions_flat_buffer; ipg_buckets | gradient shards; reduce bucket |
| 1, 2 | bit16_groups_flat: this rank's part, the rest | parameter shards, gathered |
| 1, 2 | single_partition_of_fp32_groups, and its gradients | master weights, gradient shards |
| 1, 2 | grads_in_partition, all_grad_tensors, averaged_gradients, accumulated_grads_in_cpu | gradient shards |
| 1, 2 | ipg_buckets | reduce bucket |
| 0 | fp32_groups_flat, bf16_groups_flat and the like | master weights, parameters, gradients |
| all | Parameter.grad | whole gradients |
| all | states of the optimizer by their names | momentum, variance |

Offloaded tensors count as host memory, also in runs on a CPU, where both are the same memory.
"""
import weakref

from shardscope import _memory as m
from shardscope._core import HeldTensors
from shardscope._memory import Slot
from shardscope._session import session
from shardscope.deepspeed import zero3_params

# Attributes of stage 0's optimizers: FP16_Optimizer, BF16_Optimizer and similar ones.
WHOLE = {"fp16_groups_flat": m.PARAM_SHARD, "bf16_groups_flat": m.PARAM_SHARD, "fp32_groups_flat": m.MASTER_WEIGHT,
         "fp32_groups_flat_partition": m.MASTER_WEIGHT, "fp32_groups": m.MASTER_WEIGHT}
WHOLE_GRADIENTS = {"fp32_groups_gradients_flat": m.GRAD_FULL, "fp32_groups_gradient_flat_partition": m.GRAD_SHARD}


of_buckets = {}  # id(optimizer of stages 1 and 2) -> Slots of its bucket buffers


# Of all engines of stage 3, counted by the hook of parameter statuses.
gathered = m.Slot.kept(m.PARAM_GATHERED, lambda: zero3_params.state.gathered_bytes)
coming = m.Slot.kept(m.GATHER_BUFFER, lambda: zero3_params.state.coming_bytes)


def source_of(engine):
    held = weakref.ref(engine)
    stage = int(engine.zero_optimization_stage())
    params = list(engine.module.parameters())
    trained = [p for p in params if p.requires_grad]
    slots = [m.gradient_slot(trained, m.GRAD_FULL)]
    optimizer = engine.optimizer
    offloaded = optimizer_is_offloaded(optimizer)
    references = [weakref.ref(p) for p in params]
    if stage == 3:
        zero3_params.state.report(session.memory.level(*gathered.key), session.memory.level(*coming.key))
        session.memory.at_failure.add(stop_reporting)
        slots += [gathered, coming]
        slots += [m.gradient_slot([flat for flat in getattr(optimizer, "fp32_partitioned_groups_flat", ())
                                   if hasattr(flat, "grad")], m.GRAD_SHARD, offloaded)]
    elif hasattr(optimizer, "single_partition_of_fp32_groups"):
        slots = held_slots(weakref.ref(optimizer), trained, offloaded)
        slots += [m.gradient_slot(getattr(optimizer, "single_partition_of_fp32_groups", ()), m.GRAD_SHARD, offloaded)]

    def fixed(add, count):
        engine = held()
        if engine is None:
            return
        optimizer = engine.optimizer
        if stage == 3:
            shards(add, references, optimizer, offloaded)
        elif hasattr(optimizer, "bit16_groups_flat"):
            flat_groups(add, count, optimizer, offloaded)
        else:
            whole_groups(add, references, optimizer)
        for buffer in engine.module.buffers():
            add(m.OTHER, buffer)
        inner = getattr(optimizer, "optimizer", optimizer)
        if hasattr(inner, "state"):
            m.states_of(inner, add, offloaded)

    return m.Source(fixed, slots)


def stop_reporting():
    zero3_params.state.report(None, None)


def optimizer_is_offloaded(optimizer):
    return bool(getattr(optimizer, "cpu_offload", False) or getattr(optimizer, "offload_optimizer", False))


def buffers_of(optimizer):
    """Buffers of the gradient buckets: one, or a list of one or two."""
    for bucket in getattr(optimizer, "ipg_buckets", {}).values():
        buffer = getattr(bucket, "buffer", None)
        if isinstance(buffer, list):
            yield from buffer
        elif buffer is not None:
            yield buffer


def shards(add, references, optimizer, offloaded):
    host = bool(getattr(optimizer, "offload_param", False))
    for flat in getattr(optimizer, "fp16_partitioned_groups_flat", ()):
        add(m.PARAM_SHARD, flat, host)
    for param in (reference() for reference in references):
        shard = getattr(param, "ds_tensor", None)
        if shard is not None:
            add(m.PARAM_SHARD, shard, host)
            add(m.PARAM_SECONDARY, getattr(param, "ds_secondary_tensor", None))
        else:
            add(m.PARAM_SHARD, param)
    for buffer in getattr(optimizer, "param_groups_fp16_flat_cpu_memory", ()):
        add(m.PARAM_SHARD, buffer, True)
    for flat in getattr(optimizer, "fp32_partitioned_groups_flat", ()):
        add(m.MASTER_WEIGHT, flat, offloaded)
    add(m.GRAD_SHARD, getattr(optimizer, "grad_partitions_flat_buffer", None), offloaded)
    for buffer in buffers_of(optimizer):
        add(m.REDUCE_BUCKET, buffer)


def flat_groups(add, count, optimizer, offloaded):
    for index, flat in enumerate(getattr(optimizer, "bit16_groups_flat", ())):
        m.part_of_whole(add, count, flat, max(len(optimizer.parallel_partitioned_bit16_groups[index]), 1))
    for flat in getattr(optimizer, "single_partition_of_fp32_groups", ()):
        add(m.MASTER_WEIGHT, flat, offloaded)
    for buffer in getattr(optimizer, "param_buffer_of_bit16_for_cpu_offload_groups", ()):
        add(m.SWAP_BUFFER, buffer, True)
    add(m.SWAP_BUFFER, getattr(optimizer, "temp_grad_buffer_for_cpu_offload", None), True)
    add(m.SWAP_BUFFER, getattr(optimizer, "temp_grad_buffer_for_gpu_offload", None))


def held_slots(reference, params, offloaded):
    """Slots of stages 1 and 2: gradients kept from the backward to the step, bucket buffers, and whole gradients. The
    Parameter.grad of a reduced gradient is in `grads_in_partition`, or in a bucket buffer if another rank owns it.
    These come first, because a full sample counts each storage where it finds it first."""
    def partitioned():
        optimizer = reference()
        groups = [group for name in ("averaged_gradients", "all_grad_tensors")
                  for group in list((getattr(optimizer, name, None) or {}).values())]
        tensors = [tensor for group in groups if group is not None for tensor in group if tensor is not None]
        whole = getattr(optimizer, "grads_in_partition", None)
        return tensors if whole is None else [whole, *tensors]

    def kept():
        return list((getattr(reference(), "accumulated_grads_in_cpu", None) or {}).values())

    def buckets():
        return list(buffers_of(reference()))

    grads = HeldTensors(params, "grad")

    def which():
        pattern = grads.pattern(False)
        return None if pattern is None else (pattern, getattr(reference(), "grads_in_partition", None) is not None)

    filled = Slot(m.REDUCE_BUCKET, None, buckets)
    of_buckets[id(reference())] = session.memory.slots_of([filled])
    return [Slot(m.GRAD_SHARD, None, partitioned), Slot(m.GRAD_SHARD, None, kept, host=offloaded), filled,
            Slot(m.GRAD_FULL, which, grads)]


def buckets_changed(optimizer):
    slots = of_buckets.get(id(optimizer))
    if slots is not None:
        slots.changed()


def whole_groups(add, references, optimizer):
    for names in (WHOLE, WHOLE_GRADIENTS):
        for name, category in names.items():
            for each in flattened(getattr(optimizer, name, ())):
                add(category, each)
    for reference in references:
        add(m.PARAM_SHARD, reference())


def flattened(value):
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from flattened(each)
    elif hasattr(value, "untyped_storage"):
        yield value
