"""Collectives of PyTorch versions without hooks of process groups (before 2.14), by wrapping its functions.

| symbol of distributed_c10d | event |
|---|---|
| the functions of FUNCTIONS | as the hooks of collectives.py: issued, begin, end |
| _CoalescingManager.append | the Work of the coalesced calls |

A synchronous call lasts from its begin to its return; on a GPU it returns when the operation has been queued.
Collectives issued in C++ are not seen here: DDP's reducer, functional collectives (DTensor), sends and receives.
"""
import enum
import sys

from shardscope import _records, _say
from shardscope._session import session

# Name of the operation, and the names of the call's parameters, its output and its input.
FUNCTIONS = {
    "all_gather_into_tensor": ("ALLGATHER", "output_tensor input_tensor group async_op", "output_tensor", "input_tensor"),
    "all_gather": ("ALLGATHER", "tensor_list tensor group async_op", "tensor_list", "tensor"),
    "reduce_scatter_tensor": ("REDUCE_SCATTER", "output input op group async_op", "output", "input"),
    "reduce_scatter": ("REDUCE_SCATTER", "output input_list op group async_op", "output", "input_list"),
    "all_reduce": ("ALLREDUCE", "tensor op group async_op", "tensor", "tensor"),
    "reduce": ("REDUCE", "tensor dst op group async_op", "tensor", "tensor"),
    "broadcast": ("BROADCAST", "tensor src group async_op", "tensor", "tensor"),
    "all_to_all_single": ("ALLTOALL", "output input output_split_sizes input_split_sizes group async_op", "output", "input"),
    "all_to_all": ("ALLTOALL", "output_tensor_list input_tensor_list group async_op", "output_tensor_list", "input_tensor_list"),
    "barrier": ("BARRIER", "group async_op", "", ""),
}
Name = enum.IntEnum("Name", sorted({operation for operation, *_ in FUNCTIONS.values()}))
LACKS = "this PyTorch has no hooks of process groups: of functional collectives and of sends there are no events"
OF_DDP = "this PyTorch has no hooks of process groups, and DistributedDataParallel issues its collectives in C++"

coalesced = {}  # id(group) -> calls that a _CoalescingManager issues together


class Call:
    """The arguments of a process group's hook; of a synchronous call also its Work."""
    __slots__ = ("name", "op_id", "input_tensors", "output_tensors", "async_op", "work", "returned", "error", "calls")
    issued = 0

    def __init__(self, name, inputs, outputs, calls):
        Call.issued += 1
        self.op_id, self.name, self.input_tensors, self.output_tensors = Call.issued, name, inputs, outputs
        self.async_op, self.work, self.returned, self.error, self.calls = True, self, False, None, calls

    def is_completed(self):
        return self.returned

    def exception(self):
        return self.error


def as_list(tensors):
    return [] if tensors is None else list(tensors) if isinstance(tensors, (list, tuple)) else [tensors]


def describe(run):
    _say.info(LACKS)
    if session.kind == "ddp":
        run.not_recorded(_records.bits("collectives collective_ends collective_parts buckets flush_reasons"), OF_DDP)


def install(table, calls_of):
    """`calls_of(group)`: its GroupCalls; None if the group is not recorded."""
    package = sys.modules.get("torch.distributed")  # has its own references to them, if it has been imported as a whole
    for name, (operation, parameters, output, given) in FUNCTIONS.items():
        if table.has(name):
            table.wrap(name, parameters, before=begins(table.module, Name[operation], parameters.split(), output, given, calls_of),
                       after=ended, raised=failed)
            if name in vars(package):
                table.replace(package, name, table.wraps[-1][-1])
    if table.has("_CoalescingManager"):
        table.wrap("_CoalescingManager.append", "self work", before=was_coalesced)


def begins(c10d, name, parameters, output, given, calls_of):
    places = {parameter: index for index, parameter in enumerate(parameters)}

    def begin(*args, **kwargs):
        if not (session.started or session.keeping):
            return None

        def argument(parameter):
            index = places.get(parameter, len(args))
            return args[index] if index < len(args) else kwargs.get(parameter)

        group = argument("group") or c10d._get_default_group()
        calls = calls_of(group)
        if calls is None:
            return None
        call = Call(name, as_list(argument(given)), as_list(argument(output)), calls)
        calls.before(call)
        call.input_tensors = call.output_tensors = None  # later reports must keep no tensor alive
        if group in getattr(c10d._world, "pg_coalesce_state", {}):
            coalesced.setdefault(id(group), []).append(call)
            return None
        for earlier in coalesced.pop(id(group), ()):  # their manager waited for them and kept no Work
            earlier.calls.after(earlier)
            ended(earlier, None)
        if not argument("async_op"):
            calls.synchronous = True
            calls.after(call)
        return call

    return begin


def ended(call, work, *_, **__):
    if call is None:
        return
    if work is not None:
        call.work = work
        call.calls.after(call)
    call.returned = True
    session.poll()
    call.work = None


def failed(call):
    if call is not None:
        call.error = True
        ended(call, None)


def was_coalesced(_manager, work):
    for calls in list(coalesced.values()):
        for call in calls:
            call.work = work
            call.calls.after(call)
            call.work = None
    coalesced.clear()
