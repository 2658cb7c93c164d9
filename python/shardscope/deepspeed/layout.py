"""Tables of a DeepSpeed engine: modules, parameters and which rank owns which elements. Arithmetic only."""
from shardscope import _records, param_groups, pipelining
from shardscope._session import NO_ID, session
from shardscope.deepspeed import zero3_params

PARTS = "ranks of tensor parallelism have different parts of a tensor under its one name"


def is_pipeline(engine):
    """Whether it is a PipelineEngine; it has its grid of ranks with its model."""
    return hasattr(getattr(engine.module, "_grid", None), "pipe_parallel_size")


def stages_of(engine):
    return engine.module._grid.pipe_parallel_size if is_pipeline(engine) else 1


def bytes_of(engine):
    """Bytes of an element of parameters, gradients and fp32 master weights; rank and world of the data group."""
    import torch
    import torch.distributed as dist
    types = {p.dtype for p in engine.module.parameters() if p.is_floating_point()}
    size = 2 if types & {torch.float16, torch.bfloat16} else 4
    masters, stored = (getattr(engine.optimizer, name, None) or [None] for name in
                       (("fp32_partitioned_groups_flat", "fp16_partitioned_groups_flat")
                        if int(engine.zero_optimization_stage()) == 3 else ("single_partition_of_fp32_groups", "")))
    master = 4 if size == 2 else 0
    if masters[0] is not None:  # stages 1 and 2 copy fp32 parameters too; stage 3 updates its shards in place
        master = 0 if masters[0] is stored[0] else masters[0].element_size()
    ranks = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else None
    return {"param_bytes": size, "grad_bytes": size, "master_bytes": master, "ranks": ranks}


def describe(run, engine, trained):
    stage = int(engine.zero_optimization_stage())
    if stages_of(engine) > 1:
        pipelining.describe_as_stage(run, engine.module)
        return
    cut = getattr(engine, "mp_world_size", 1) > 1  # by tensor parallelism
    if cut:
        run.not_recorded(_records.bits("layout"), PARTS)
    numbers = session.add_modules(engine.module)
    for name, param in engine.module.named_parameters():
        if stage == 3 and hasattr(param, "ds_id"):
            add_partitioned(run, name, param, trained and param.requires_grad, cut)
        else:
            session.add_param(param, name, param.shape, param.numel(), trained=trained and param.requires_grad,
                              dtype=param.dtype)
    session.use_params(engine.module, numbers)
    if stage in (1, 2) and not cut:
        add_flat_groups(run, engine.optimizer)
    if trained:
        param_groups.add(run, param_groups.of_deepspeed(engine.optimizer, stage))


def add_partitioned(run, name, param, trained, cut):
    """Stage 3: each parameter is cut into as many equal parts as its group has ranks, the last ones padded."""
    import torch.distributed as dist
    shard, elems = param.partition_numel(), param.ds_numel
    group = param.ds_process_group
    ranks = dist.get_process_group_ranks(group)
    number = session.add_param(param, name, param.ds_shape, elems, shard_elems=shard,
                               padding=shard * len(ranks) - elems, persistent=bool(param.ds_persist),
                               trained=trained, dtype=param.dtype)
    if not cut:
        session.add_equal_slices(number, ranks, shard, elems)


def add_late(engine):
    """Modules and parameters of stage 3 that were made after the engine's description. Those of a model without an engine
    are in no table until it has one."""
    zero3_params.Late.came = False
    model, added = engine.module, 0
    session.model_number, number_before = session.models[id(model)], session.model_number
    numbers = {}
    for path, module in model.named_modules():
        number = session.modules.get(id(module))
        if number is None:
            number = session.add_module(module, numbers.get(path.rpartition(".")[0], NO_ID), path)
        numbers[path] = number
    for name, param in model.named_parameters():
        if hasattr(param, "ds_id") and id(param) not in session.params:
            add_partitioned(session.run, name, param, False, getattr(engine, "mp_world_size", 1) > 1)
            session.use_param(numbers[name.rpartition(".")[0]], session.params[id(param)])
            added += 1
    session.model_number = number_before
    if added:
        session.models_described += 1  # what hooks remember of modules
        session.run.publish()
        zero3_params.after_description(engine)


def add_flat_groups(run, optimizer):
    """Stages 1 and 2: a group's parameters are concatenated and cut into one partition per rank of the group."""
    import torch.distributed as dist
    for index, group in enumerate(getattr(optimizer, "bit16_groups", [])):
        order = getattr(optimizer, "round_robin_bit16_groups", [group] * (index + 1))[index]
        process_group = optimizer.real_dp_process_group[index]
        ranks = dist.get_process_group_ranks(process_group)
        size = optimizer.bit16_groups_flat[index].numel() // len(ranks)
        offset = 0
        for param in order:
            number, elems = session.params.get(id(param)), param.numel()
            for part in range(offset // size, min((offset + elems - 1) // size + 1, len(ranks))):
                begin, end = max(offset, part * size), min(offset + elems, (part + 1) * size)
                if number is not None and end > begin:
                    run.add_slice(number, ranks[part], begin - offset, begin - part * size, end - begin, 0)
            offset += elems
