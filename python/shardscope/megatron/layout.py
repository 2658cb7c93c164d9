"""Tables of Megatron-Core's DistributedDataParallel: modules, parameters, and which rank owns which elements.

| symbol of distributed.param_and_grad_buffer | what is read |
|---|---|
| _ParamAndGradBuffer: param_index_map, buckets, data_parallel_group | slices: those of DistributedOptimizer._build_gbuf_range_map, for all ranks |
| _ParamAndGradBucketGroup: buckets | parameters that are reduced and gathered together |

A recording has one table of modules and parameters for all ranks. Stages of a pipeline and ranks of expert parallelism
have different ones: nothing is recorded per parameter or module for these. Ranks of tensor parallelism have different
parts under the same names: which elements these are is not recorded.
"""
from shardscope import _records
from shardscope._session import NO_ID, session
from shardscope.megatron import buckets

DIFFERENT = "stages of a pipeline and ranks of expert parallelism have different modules; a recording has one table of them"
PARTS = "ranks of tensor parallelism have different parts of a tensor under its one name"
WHOLE = "without the distributed optimizer every rank has all of every parameter"


def size_of(group):
    """Size of a process group; some attributes of Megatron-Core are lists: then of the first."""
    group = group[0] if isinstance(group, list) else group
    return group.size() if group is not None else 1


def stages_of(ddp):
    return size_of(ddp.pp_group)


def alike_on_all_ranks(ddp):
    return stages_of(ddp) == 1 and size_of(ddp.ep_group) == 1


def describe(run, ddp):
    distributed = ddp.ddp_config.use_distributed_optimizer
    if not distributed:
        run.not_recorded(_records.bits("layout fetch_waits"), WHOLE)
    if not alike_on_all_ranks(ddp):
        session.add_module(ddp.module, NO_ID, "")
        run.not_recorded(_records.bits("modules layout collective_parts buckets flush_reasons"), DIFFERENT)
    else:
        add_params(run, ddp, distributed)
    for group in ddp.bucket_groups + ddp.expert_parallel_bucket_groups:
        buckets.describe(group)


def add_params(run, ddp, distributed):
    numbers = session.add_modules(ddp.module)
    known = size_of(ddp.tp_group) == 1
    if distributed and not known:
        run.not_recorded(_records.bits("layout"), PARTS)
    owned = slices_of(ddp) if distributed and known else {}
    for name, param in ddp.module.named_parameters():
        pieces = owned.get(id(param), ())
        number = session.add_param(param, name, param.shape, param.numel(), padding=sum(piece[-1] for piece in pieces),
                                   trained=param.requires_grad, dtype=param.dtype)
        for piece in pieces:
            run.add_slice(number, *piece)
    session.use_params(ddp.module, numbers)


def slices_of(ddp):
    """id(parameter) -> [(rank, offset in the parameter, offset in the rank's shards, elements, padding after it), ...].
    Each bucket is cut into as many equal parts as its group has ranks, regardless of the boundaries of parameters."""
    import torch.distributed as dist
    owned = {}
    for buffer in ddp.buffers + ddp.expert_parallel_buffers:
        ranks = dist.get_process_group_ranks(buffer.data_parallel_group)
        for bucket in buffer.buckets:
            part = bucket.grad_data.numel() // len(ranks)
            before = bucket.offset // len(ranks)  # of this rank's shards, in earlier buckets
            places = [buffer.param_index_map[param][:2] for param in bucket.params_list]
            ends = [first for first, _ in places[1:]] + [bucket.offset + bucket.grad_data.numel()]
            for param, (first, last), end in zip(bucket.params_list, places, ends):
                pieces = owned.setdefault(id(param), [])
                for index, rank in enumerate(ranks):
                    start = bucket.offset + index * part
                    begin, stop = max(first, start), min(end, start + part)
                    elems, padding = max(min(last, stop) - begin, 0), max(stop - max(last, begin), 0)
                    if elems or padding:
                        pieces.append((rank, min(begin, last) - first, before + begin - start, elems, padding))
    return owned
