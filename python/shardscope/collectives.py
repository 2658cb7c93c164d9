"""Collectives of every process group, recorded with torch's hooks of process groups (PyTorch 2.14 and later).

| symbol | event |
|---|---|
| distributed_c10d._new_process_group_helper, after | the group; its hooks are registered |
| ProcessGroup.register_pre_hook | operation, elements, bytes, type; issued |
| ProcessGroup.register_post_hook | its Work: its future gives the end |

Collectives from before the run starts, such as the broadcasts with which a model is made, are kept for it (Session.keep).

A lane holds one collective at a time: one that is issued while another runs begins when that has ended, as on a stream.
If torch has no such hooks, its functions are wrapped (collective_calls.py).
"""
from shardscope import _core, _kinds as k, _say, collective_calls
from shardscope._hooks import Adapter
from shardscope._session import session

HOOK_ID = 0x5A5C09E  # of our hooks, distinct from others
MOST_GROUPS = 254  # groups with a number; further ones are numbered as groups without a description
OPS = (("allgather", k.ALL_GATHER), ("all_gather", k.ALL_GATHER), ("reduce_scatter", k.REDUCE_SCATTER),
       ("allreduce", k.ALL_REDUCE), ("all_reduce", k.ALL_REDUCE), ("broadcast", k.BROADCAST), ("barrier", k.BARRIER),
       ("alltoall", k.ALL_TO_ALL), ("all_to_all", k.ALL_TO_ALL), ("reduce", k.OP_REDUCE), ("gather", k.OP_GATHER),
       ("scatter", k.OP_SCATTER), ("send", k.SEND), ("recv", k.RECEIVE))
# Words in names given by DeviceMesh and users; the first two also combined with others (dp_shard, dp_shard_cp).
SHARDING = (("replicate", k.GROUP_REPLICA), ("shard", k.GROUP_SHARD))
SHORT = {"tp": k.GROUP_TENSOR, "pp": k.GROUP_PIPELINE, "ep": k.GROUP_EXPERT, "cp": k.GROUP_CONTEXT, "dp": k.GROUP_DATA}
# And in names given by Megatron-Core, followed by PARALLEL.
PARALLEL = {"tensor": k.GROUP_TENSOR, "pipeline": k.GROUP_PIPELINE, "context": k.GROUP_CONTEXT, "expert": k.GROUP_EXPERT,
            "data": k.GROUP_DATA}

_groups = {}  # id(group) -> its Hooks


def adapters():
    return [Adapter("collectives", "torch.distributed.distributed_c10d", install)]


def install(table):
    from torch._C._distributed_c10d import ProcessGroup
    adapter, hooked = table.adapter, hasattr(ProcessGroup, "register_pre_hook")
    lanes = {lane: _core.CollectiveLane(lane) for lane in (k.GATHER, k.REDUCE, k.EXTRA_2)}
    session.at_finish += [lane.close for lane in lanes.values()]

    def made(_, result, *args, **kwargs):
        if isinstance(result[0], ProcessGroup):
            Hooks(adapter, result[0], ranks_of(*args, **kwargs), hooked, lanes)

    table.wrap("_new_process_group_helper", "group_size group_rank global_ranks_in_group", after=made)
    if not hooked:
        collective_calls.install(table, lambda group: _groups[id(group)].calls if id(group) in _groups else None)
        session.at_description.append(collective_calls.describe)
    for group in list(getattr(table.module, "_world").pg_map):
        Hooks(adapter, group, torch_ranks_of(group), hooked, lanes)


def ranks_of(group_size, group_rank, global_ranks_in_group, *_, **__):
    """Of a group that torch does not list yet; none: all."""
    return list(global_ranks_in_group)


def torch_ranks_of(group):
    import torch.distributed as dist
    return dist.get_process_group_ranks(group)


def op_of(name):
    """Number of torch's HookOpName; None: not a collective that has one."""
    return next((op for part, op in OPS if part in name.name.lower()), None)


def purpose_of(words):
    """Purpose of a group, by the words of its name. A name with two kinds of parallelism (EXPERT_DATA_PARALLEL_GROUP,
    dp_cp) has neither purpose alone."""
    sharding = next((purpose for word, purpose in SHARDING if word in words), None)
    if sharding is not None:
        return sharding
    named = [PARALLEL[word] for word in words if word in PARALLEL] if "parallel" in words else []
    named = named or [SHORT[word] for word in words if word in SHORT]
    return named[0] if len(named) == 1 else k.GROUP_OTHER


def dtype_code(dtype):
    return k.DTYPE_CODES.get(str(dtype), k.OTHER_TYPE)


def capturing():
    import torch
    return torch.cuda.is_current_stream_capturing()


def no_future(name):
    _say.info(f"the end of {name.name} is when it is next seen to be complete: its Work has no future")


class Hooks:
    """Hooks of one process group."""

    def __init__(self, adapter, group, ranks, hooked, lanes):
        self.size, self.ranks = group.size(), ranks
        self.group = group  # kept: freed after Python has ended, a group with hooks of Python would crash the process
        self.name = getattr(group, "group_desc", "") or getattr(group, "group_name", "")
        self.calls = _core.GroupCalls(session, adapter, self.size, lanes, op_of, dtype_code, capturing,
                                      no_future if hooked else lambda name: None)
        _groups[id(group)] = self
        if self.of_some_ranks():  # groups of all ranks share one sequence and need no entry
            if session.groups < MOST_GROUPS:
                self.calls.number = session.groups
                session.groups += 1
            else:
                self.calls.apart = True
            if session.started and self.calls.number is not None:
                self.describe(session.run)
                session.run.publish()
            elif self.calls.number is not None:
                session.at_description.append(self.describe)
        if self.size > 1:
            session.keep()
        if not hooked:
            return
        group.register_pre_hook(HOOK_ID, self.calls.before)
        group.register_post_hook(HOOK_ID, self.calls.after)

    def of_some_ranks(self):
        import torch.distributed as dist
        return bool(self.ranks) and 1 < self.size < dist.get_world_size()

    def describe(self, run):
        run.add_group(self.name, purpose_of(self.name.lower().split("_")), self.ranks)
