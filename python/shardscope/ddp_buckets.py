"""DistributedDataParallel's buckets: which parameters are in the one that is reduced now.

DDP's reducer is C++. It all-reduces its buckets one after the other in the order of their table, each as one flat tensor of all
its gradients (Reducer::mark_bucket_ready); what else it all-reduces, which parameters were used on any rank, is of integers.
After the first backward it makes a new table, by the order in which gradients came, at the next forward; what is in that one is in
DDP's logging data from the forward after on. So of the buckets of one micro-step in a run nothing is known.

| symbol | event |
|---|---|
| torch.distributed._compute_bucket_assignment_by_size, within DDP's __init__ | the first table |
| DistributedDataParallel._pre_forward, after | DDP's own of the new one |
| ProcessGroup.register_pre_hook: the reducer's all-reduce | bucket: its gradients; gate `bucket` |
"""
import weakref

from shardscope import _core, _hooks, _kinds as k, collectives
from shardscope._session import session

HOOK_ID = collectives.HOOK_ID - 1  # torch calls hooks by their numbers: ahead of what records the collective
WHAT = "buckets flush_reasons collective_parts"
SEVERAL = "several models are trained by DistributedDataParallel: whose bucket an all-reduce is of is not known"
LATE = "DistributedDataParallel was made before attach() and says what is in its buckets only where it makes them anew"
SPARSE = "sparse gradients, or buckets that are left out on a rank, are not reduced bucket by bucket"
buckets = _core.Buckets(session)


class State:
    adapter = None
    assigned = (), None  # (parameters, table) of the DistributedDataParallel that has been made last
    order = None  # of the one that is watched
    reducing = False  # a collective of a bucket is being issued


state = State()


def install(table):
    """Of DistributedDataParallel's adapter."""
    state.adapter = table.adapter
    table.wrap("dist._compute_bucket_assignment_by_size", "", after=assigned)
    table.wrap("DistributedDataParallel._pre_forward", "self",
               after=lambda token, result, ddp, *args, **kwargs: forward_begins(ddp))


def assigned(_, result, parameters, *args, **kwargs):
    # Parameters of the last modules come first in the backward.
    state.assigned = list(parameters), list(reversed(result[0]))


class Order:
    """Buckets of a DistributedDataParallel in the order of their reductions, and which is the next."""

    def __init__(self, ddp):
        parameters, (of, first) = parameters_of(ddp), state.assigned
        # Not where it has been made before anything was attached.
        self.first = first if [id(param) for param in of] == [id(param) for param in parameters] else None
        self.numbers = [session.params[id(param)] for param in parameters]
        self.ddp, self.table, self.rebuilt, self.next = weakref.ref(ddp), None, False, 0

    def begin(self, ddp):
        self.next = 0
        if not ddp._has_rebuilt_buckets:
            self.rebuilt, self.table = False, self.made_of(self.first)
        elif not self.rebuilt:
            known = ddp._get_ddp_logging_data().get("rebuilt_per_bucket_param_indices", "")
            self.table = self.made_of([[int(index) for index in bucket.split()] for bucket in known.split(",") if bucket.strip()])
            self.rebuilt = self.table is not None

    def made_of(self, table):
        """[Parts] of buckets of indices; None: not known."""
        if not table or sorted(index for bucket in table for index in bucket) != list(range(len(self.numbers))):
            return None
        return [_core.Parts([(self.numbers[index], session.param_elems[self.numbers[index]]) for index in bucket]) for bucket in table]


def parameters_of(ddp):
    """As DDP numbers them."""
    named = ((f"{path}.{name}", param) for path, module in ddp.module.named_modules()
             for name, param in module.named_parameters(recurse=False))
    return list(dict.fromkeys(p for name, p in named if p.requires_grad and name not in ddp.parameters_to_ignore))


def watch(ddp):
    """Once its parameters are described."""
    group = ddp.process_group
    if not hasattr(group, "register_pre_hook"):
        return  # of such a PyTorch collective_calls.py says what is not recorded
    if state.order is not None and state.order.ddp() is not None:
        state.order = None
        return session.not_recorded(WHAT, SEVERAL)
    if getattr(ddp, "skip_all_reduce_unused_params", False) or any(getattr(each, "sparse", False) for each in ddp.module.modules()):
        return session.not_recorded(WHAT, SPARSE)
    state.order, state.assigned = Order(ddp), ((), None)
    if state.order.first is None and ddp.find_unused_parameters and not ddp._has_rebuilt_buckets:
        session.not_recorded(WHAT, LATE)
    group.register_pre_hook(HOOK_ID, guarded(reduction_begins))
    group.register_post_hook(HOOK_ID, guarded(reduction_issued))
    _hooks.at_turn_off(lambda: unwatch(group))


def unwatch(group):
    group.unregister_pre_hook(HOOK_ID)
    group.unregister_post_hook(HOOK_ID)
    state.order = None


def guarded(hook):
    def outer(call):
        if state.order is not None and state.adapter.on and session.started:
            try:
                hook(call)
            except Exception as error:
                state.order = None
                state.adapter.failed("a hook of DDP's buckets", error)
    return outer


def forward_begins(ddp):
    order = state.order
    if order is not None and order.ddp() is ddp and session.started:
        order.begin(ddp)


def reduction_begins(call):
    import torch
    order = state.order
    if order.table is None or order.next >= len(order.table) or not session.in_micro_step or \
            torch._C._current_graph_task_id() == -1 or collectives.op_of(call.name) != k.ALL_REDUCE:
        return
    parts = order.table[order.next]
    tensors = call.input_tensors
    if len(tensors) != 1 or tensors[0].dim() != 1 or tensors[0].numel() != parts.elems or not tensors[0].dtype.is_floating_point:
        return  # of something else, a SyncBatchNorm's
    order.next += 1
    parts.fill(buckets.of(HOOK_ID))
    buckets.flush(HOOK_ID, parts, parts.elems, False, reason=k.GROUP_COMPLETE)
    state.reducing = True


def reduction_issued(call):
    if state.reducing:
        state.reducing = False
        session.purpose_served()
