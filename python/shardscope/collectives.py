"""Collectives of every process group, by torch's own hooks of process groups (PyTorch 2.15).

| symbol | event |
|---|---|
| distributed_c10d._new_process_group_helper, after | the group; its hooks are registered |
| ProcessGroup.register_pre_hook | operation, elements, bytes, type; issued |
| ProcessGroup.register_post_hook | its Work: its future gives the end |

A lane holds one collective at a time: what is issued while another runs begins when that has ended, as on a stream.
Where torch has no such hooks (2.13), collectives are not recorded, and it says so.
"""
import functools

from shardscope import _core, _kinds as k, _records, _say
from shardscope._hooks import Adapter
from shardscope._session import NO_ID, session

emit = _core.emit
HOOK_ID = 0x5A5C09E  # of ours, among those that others register
OPS = (("allgather", k.ALL_GATHER), ("all_gather", k.ALL_GATHER), ("reduce_scatter", k.REDUCE_SCATTER),
       ("allreduce", k.ALL_REDUCE), ("all_reduce", k.ALL_REDUCE), ("broadcast", k.BROADCAST), ("barrier", k.BARRIER),
       ("alltoall", k.ALL_TO_ALL), ("all_to_all", k.ALL_TO_ALL), ("reduce", k.OP_REDUCE), ("gather", k.OP_GATHER),
       ("scatter", k.OP_SCATTER), ("send", k.SEND), ("recv", k.RECEIVE))
# By the names that DeviceMesh and users give.
PURPOSES = (("replicate", k.GROUP_REPLICA), ("shard", k.GROUP_SHARD), ("tp", k.GROUP_TENSOR), ("pp", k.GROUP_PIPELINE),
            ("ep", k.GROUP_EXPERT), ("cp", k.GROUP_CONTEXT), ("dp", k.GROUP_DATA))
# Which tensors are whole: of a gather its output, of a reduction its input.
WHOLE_IS_OUTPUT = {k.ALL_GATHER}
BETWEEN_TWO = {k.SEND, k.RECEIVE}
FIRST_TRANSFER = 0x800000  # of the 24 bits that a group's numbers have

_groups = {}  # id(group) -> hooks, so that detach() can take them back


def adapters():
    return [Adapter("collectives", "torch.distributed.distributed_c10d", install)]


def install(table):
    from torch._C._distributed_c10d import ProcessGroup
    if not hasattr(ProcessGroup, "register_pre_hook"):
        session.at_description.append(lambda run: run.not_recorded(
            _records.bits("collectives collective_ends collective_parts groups"), "this PyTorch has no hooks of process groups"))
        return
    adapter = table.adapter

    def made(_, result, *args, **kwargs):
        if isinstance(result[0], ProcessGroup):
            Hooks(adapter, result[0])

    table.wrap("_new_process_group_helper", "group_size group_rank global_ranks_in_group", after=made)
    for group in list(getattr(table.module, "_world").pg_map):
        Hooks(adapter, group)


@functools.cache
def op_of(name):
    """Of torch's HookOpName; None: not a collective that has a number here."""
    return next((op for part, op in OPS if part in name.name.lower()), None)


@functools.cache
def dtype_code(dtype):
    return k.DTYPE_CODES.get(str(dtype), k.OTHER_TYPE)


def future_of(work):
    """Of a Work on host memory. That of a device's Work is done when the operation has been queued: no evidence."""
    try:
        return work.get_future()
    except (AttributeError, RuntimeError):
        return None


def capturing():
    import torch
    return torch.cuda.is_current_stream_capturing()


LANES = {lane: _core.CollectiveLane(lane) for lane in (k.GATHER, k.REDUCE, k.EXTRA_2)}


class Hooks:
    """Of one process group."""

    def __init__(self, adapter, group):
        self.adapter, self.size, self.group = adapter, group.size(), group
        self.open = {}  # op_id -> what is between pre and post hook: (lane, on the host, fields of the event)
        self.number = None  # in the run's table of groups; None: all ranks, or not described
        self.count = self.transfers = 0  # collectives of this group so far; sends and receives
        _groups[id(group)] = self
        if session.started:
            self.describe(session.run)
            session.run.publish()
        else:
            session.at_description.append(self.describe)
        group.register_pre_hook(HOOK_ID, self.before)
        group.register_post_hook(HOOK_ID, self.after)

    def describe(self, run):
        """Groups of some ranks: those of all ranks share one sequence and need no entry."""
        import torch.distributed as dist
        if not 1 < self.size < dist.get_world_size() or self.group not in dist.distributed_c10d._world.pg_map:
            return  # destroyed before there was a model
        name = getattr(self.group, "group_desc", "") or getattr(self.group, "group_name", "")
        words = name.lower().split("_")
        purpose = next((purpose for word, purpose in PURPOSES if word in words), k.GROUP_OTHER)
        self.number = run.add_group(name, purpose, dist.get_process_group_ranks(self.group))

    def key(self, op, dtype):
        """(sequence, code) of the next operation; instrumentation's shardscope_group_sequence and _code. Sends and receives
        are numbered apart: only two ranks take part, and the collectives after them keep one number on all ranks."""
        if op in BETWEEN_TWO:
            self.transfers += 1
            number = FIRST_TRANSFER | self.transfers - 1 & FIRST_TRANSFER - 1
        elif self.number is None:
            number = session.sequence
            session.sequence += 1
        else:
            number = self.count & 0xFFFFFF
            self.count += 1
        if self.number is None:
            return number, dtype | self.size << 16
        return (self.number + 1 & 0xFF) << 24 | number, dtype | k.SCOPE_GROUP << 8 | self.number << 16

    def before(self, call):
        if not self.adapter.on or not session.started or self.size < 2:
            return
        try:
            self.issued(call)
        except Exception as error:
            self.adapter.failed("register_pre_hook", error)

    def issued(self, call):
        op = op_of(call.name)
        if op is None:
            return
        if session.unfinished:
            session.poll()
        session.issued()
        tensors = call.output_tensors if op in WHOLE_IS_OUTPUT else call.input_tensors
        tensors = tensors or call.input_tensors
        elems = sum(t.numel() for t in tensors)
        size = tensors[0].element_size() if tensors else 0
        device = tensors[0].device.type if tensors else "cpu"
        if device == "cuda" and capturing():
            return
        dtype = dtype_code(tensors[0].dtype) if tensors else 0
        sequence, code = self.key(op, dtype)
        lane, owner, parts = session.purpose or (k.GATHER if op in (k.ALL_GATHER, k.BROADCAST) else k.REDUCE, NO_ID, ())
        if op == k.ALL_REDUCE and session.all_reduce_lane is not None:
            lane = session.all_reduce_lane
        # The parts go with the first collective of a gather or bucket; what follows for it names it too.
        if session.purpose is not None:
            session.purpose = (lane, owner, ())
        emit(k.COLLECTIVE_SUBMITTED, k.HOST, op, sequence, owner, len(parts) or 1, elems, elems * size)
        if parts:
            parts.in_collective(op, sequence, size)
        self.open[call.op_id] = LANES[lane], device == "cpu", (op, sequence, owner, code, elems, elems * size)

    def after(self, call):
        entry = self.open.pop(call.op_id, None)
        if entry is None or not self.adapter.on:
            return
        lane, on_host, (op, sequence, owner, code, *sizes) = entry
        try:
            future = future_of(call.work) if on_host else None
            ended = lane.issue(op, sequence, owner, code if future is not None else code | k.END_IS_BOUND, *sizes)
            if future is not None:
                # Runs in the thread that completes it; nothing is waited for.
                future.add_done_callback(ended)
            elif call.work is not None:
                _say.info(f"the end of {call.name.name} is when it is next seen to be complete: its Work has no future")
                # A call on host memory that is not asynchronous has returned by the time anything else is done.
                returned = on_host and not call.async_op
                session.unfinished.append((None if returned else call.work, ended))
        except Exception as error:
            self.adapter.failed("register_post_hook", error)
