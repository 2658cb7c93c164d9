"""Megatron-Core: buckets of gradients, their reductions, and the gathers of updated parameters.

| symbol of distributed.param_and_grad_buffer._ParamAndGradBucketGroup | event |
|---|---|
| register_grad_ready | bucket_add, of the last micro-step's gradients |
| start_grad_sync, before | bucket_flush: all gradients are ready, or the end of the backward; gate `bucket` |
| start_grad_sync where it waits itself; finish_grad_sync | reduce_wait |
| start_param_sync | the gather: its collectives carry its parameters |
| start_param_sync where it waits itself; finish_param_sync | fetch_wait, of the module whose forward needs it |

The buckets of a group are reduced and gathered together: here they are one bucket. Parameters stay whole in memory.
"""
import weakref

from shardscope import _core, _hooks, _kinds as k
from shardscope._hooks import Adapter
from shardscope._session import NO_ID, session

events = _core.events
buckets = _core.Buckets(session)
groups = weakref.WeakKeyDictionary()  # _ParamAndGradBucketGroup -> Group


def adapters():
    return [Adapter("Megatron-Core, buckets", "megatron.core.distributed.param_and_grad_buffer", install)]


def install(table):
    _hooks.at_turn_off(forget)
    cls = "_ParamAndGradBucketGroup."
    table.wrap(cls + "register_grad_ready", "self param", before=gradient_comes, after=lambda *_, **__: buckets.came())
    table.wrap(cls + "start_grad_sync", "self force_all_reduce", before=reduction_begins, after=reduction_issued)
    table.wrap(cls + "finish_grad_sync", "self force_all_reduce", before=reductions.begins, after=reductions.ends)
    table.wrap(cls + "start_param_sync", "self force_sync", before=gather_begins, after=gather_issued)
    table.wrap(cls + "finish_param_sync", "self skip_next_bucket_dispatch", before=gathers.begins, after=gathers.ends)


class Wait:
    """The open span of a host wait; at most one at a time."""
    span = None

    def begin(self, began, ended, *fields):
        """`began` and `ended` emit it with these fields. On a GPU the host only queues; the wait is on a stream."""
        if session.on_device or self.span is not None:
            return
        self.span = ended, fields
        began(*fields)

    def end(self):
        if self.span is not None:
            ended, fields = self.span
            ended(*fields)
            self.span = None


class Finishing:
    """Hooks of the calls that wait for a group's operation. `handle`: the group's attribute that is set while an
    operation is in flight; `wait`(Group) begins the span; `ended`(Group) is called after its end."""

    def __init__(self, handle, wait, ended=lambda of: None):
        self.handle, self.wait, self.ended = handle, wait, ended
        self.of = None  # the Group being waited for

    def begins(self, group, *args, **kwargs):
        self.of = known(group)
        if self.of is not None and getattr(group, self.handle) is not None:
            self.wait(self.of)
        return self.of

    def issued(self, of):
        """An operation that is only issued within the call that waits for it."""
        if self.of is of:
            self.wait(of)

    def ends(self, of, result, *args, **kwargs):
        self.of = None
        if of is not None:
            wait.end()
            self.ended(of)


class Group:
    """One _ParamAndGradBucketGroup: its parameters, and the state of its hooks between calls."""

    def __init__(self, group):
        self.params = {id(p): (session.params[id(p)], p.numel())
                       for bucket in group.buckets for p in bucket.params_list if id(p) in session.params}
        self.parts = _core.Parts(list(self.params.values()))
        self.key = id(group)
        self.grad_bytes = sum(b.grad_data.numel() * b.grad_data.element_size() for b in group.buckets)
        self.param_bytes = sum(b.param_data.numel() * b.param_data.element_size() for b in group.buckets
                               if b.param_data is not None)
        self.come, self.filled = set(), 0  # gradients in the open bucket
        self.bucket = self.gather = NO_ID  # the latest ones

    def add(self, param):
        if param in self.come or param not in self.params:
            return
        number, elems = self.params[param]
        self.come.add(param)
        self.filled += elems
        buckets.add(self.key, number, elems, self.filled)

    def flush(self):
        reason = k.EPILOGUE if buckets.coming is None else k.GROUP_COMPLETE
        for param in self.params:  # parameters whose gradients were not registered
            self.add(param)
        self.bucket = buckets.flush(self.key, self.parts, self.filled, False, reason=reason)
        self.come, self.filled = set(), 0

    def await_reduction(self):
        wait.begin(events.reduce_wait_begin, events.reduce_wait_end, self.bucket, self.grad_bytes)

    def await_gather(self):
        from shardscope import modules
        wait.begin(events.fetch_wait_begin, events.fetch_wait_end, modules.entered(), self.gather, self.param_bytes)


wait = Wait()
reductions = Finishing("grad_reduce_handle", Group.await_reduction, lambda of: session.waited_for(k.REDUCE, of.bucket))
gathers = Finishing("param_gather_handle", Group.await_gather)


def forget():
    groups.clear()
    wait.span = reductions.of = gathers.of = None


def describe(group):
    groups[group] = Group(group)


def known(group):
    return groups.get(group) if session.started else None


# ---- gradients ------------------------------------------------------------------------------------------

def gradient_comes(group, param, *args, **kwargs):
    of = known(group)
    if of is not None and group.is_last_microbatch:
        buckets.comes(param)
        of.add(id(param))


def reduction_begins(group, *args, **kwargs):
    of = known(group)
    if of is None or group.is_first_batch and group.grad_reduce_handle is not None:
        return None  # in the second case the call does nothing
    if of.params:
        of.flush()
    if not group.ddp_config.overlap_grad_reduce:
        of.await_reduction()
    return of


def reduction_issued(of, result, group, *args, **kwargs):
    if of is None:
        return
    session.purpose_served()
    if not group.ddp_config.overlap_grad_reduce:
        wait.end()
    else:  # in the first step a reduction is only issued by the call that waits for it
        reductions.issued(of)


# ---- parameters -----------------------------------------------------------------------------------------

def gather_begins(group, force_sync=False):
    of = known(group)
    if of is None:
        return None
    if gathers.of is not None and gathers.of is not of:
        wait.end()  # the next group's gather, issued right after this one's wait
    if force_sync and group.param_gather_handle is not None:
        of.await_gather()  # for one that was issued before
        return of, True
    of.gather = session.gathers = session.gathers + 1
    session.purpose = (k.GATHER, of.gather, of.parts if of.params else ())
    waits = force_sync or not group.ddp_config.overlap_param_gather
    if waits:
        of.await_gather()
    return of, waits


def gather_issued(token, result, *args, **kwargs):
    if token is None:
        return
    of, waits = token
    session.purpose_served()
    if waits:
        wait.end()
    else:
        gathers.issued(of)
