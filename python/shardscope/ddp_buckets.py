"""DistributedDataParallel's buckets: the parameters of the bucket that is being reduced.

DDP's reducer is C++. It all-reduces its buckets one after the other in the order of their table, each as one flat
tensor of all its gradients (Reducer::mark_bucket_ready); its other all-reduce, of the map of used parameters, is of
integers. After the first backward it makes a new table, in the order in which gradients became ready, at the next
forward; DDP's logging data has that table from the forward after. On a CPU the reducer itself is asked before; on a
device the buckets of that one micro-step are not known.

| symbol | event |
|---|---|
| torch.distributed._compute_bucket_assignment_by_size, within DDP's __init__ | the first table |
| DistributedDataParallel._pre_forward, after | the new table |
| ProcessGroup.register_pre_hook: the reducer's all-reduce | bucket with its gradients; gate `bucket` |
"""
import weakref

from shardscope import _core, _hooks, _kinds as k, collectives
from shardscope._hooks import Adapter
from shardscope._session import session

HOOK_ID = collectives.HOOK_ID - 1  # torch calls hooks by id: before the collective's hook
WHAT = "buckets flush_reasons collective_parts"
SEVERAL = "several models are trained by DistributedDataParallel: whose bucket an all-reduce is of is not known"
LATE = "DistributedDataParallel was made before attach() and says what is in its buckets only where it makes them anew"
HOOKED = "a communication hook reduces what DistributedDataParallel's buckets hold in its own way"
ALIKE = "a SyncBatchNorm's all-reduce in the backward has the size of a bucket: which of both one is, is not known"
SHORT = "a backward has not reduced every bucket of DistributedDataParallel's table in its order: which are reduced is not known"
OFF = "a hook of DistributedDataParallel's buckets is off: the warning says why"
SPARSE = "sparse gradients, or buckets that are left out on a rank, are not reduced bucket by bucket"
buckets = _core.Buckets(session)


# These all-reduce each bucket once, as a whole.
KNOWN_HOOKS = {f"torch.distributed.algorithms.ddp_comm_hooks.default_hooks.{name}_hook" for name in ("allreduce", "fp16_compress", "bf16_compress")}


class State:
    adapter = None
    models = weakref.WeakSet()  # every DistributedDataParallel of the run
    assigned = (), None  # (weak references of the parameters, table) of the latest DistributedDataParallel
    order = None  # Order of the recorded one
    group = None  # its process group, which has our hooks
    lacking = False  # a message says that buckets are not recorded
    reducing = False  # a bucket's collective is being issued


state = State()


class OfBuckets(Adapter):
    """Buckets have a separate switch: without them the rest of DistributedDataParallel is still recorded."""

    def turn_off(self, why):
        super().turn_off(why)
        lacks(OFF)


def adapters():
    return [OfBuckets("DistributedDataParallel's buckets", "torch.nn.parallel.distributed", install)]


def install(table):
    import torch.distributed as dist
    state.adapter = None
    if not hasattr(getattr(dist, "ProcessGroup", None), "register_pre_hook"):
        return  # for this PyTorch collective_calls.py reports what is not recorded
    state.adapter = table.adapter
    _hooks.at_turn_off(unwatch)
    table.wrap("dist._compute_bucket_assignment_by_size", "", after=assigned)
    table.wrap("DistributedDataParallel._pre_forward", "self",
               after=lambda token, result, ddp, *args, **kwargs: forward_begins(ddp))


def lacks(why):
    """Buckets are not recorded from now on."""
    state.order = None
    if session.started and state.models and not state.lacking:
        state.lacking = True
        session.not_recorded(WHAT, why)


def assigned(_, result, parameters, *args, **kwargs):
    # Parameters of the last modules come first in the backward.
    state.assigned = [weakref.ref(each) for each in parameters], list(reversed(result[0]))


class Order:
    """Buckets of a DistributedDataParallel in the order of their reductions, and the next one."""

    def __init__(self, ddp, of, first):
        """`of`, `first`: state.assigned of its __init__()."""
        parameters = parameters_of(ddp)
        # Not if it was made before attach().
        known = len(of) == len(parameters) and all(held() is param for held, param in zip(of, parameters))
        self.numbers = [session.params[id(param)] for param in parameters]
        self.first = self.made_of(first) if known else None
        self.ddp, self.rebuilt = weakref.ref(ddp), False
        self.table = None if ddp._has_rebuilt_buckets else self.first
        self.of_norms = norm_sizes(ddp)
        self.next = self.reductions = 0
        self.synchronized = False

    def begin(self, ddp):
        """Before a forward: checks whether the buckets of the last backward matched the table."""
        if self.table is not None and self.synchronized and self.reductions and self.next < len(self.table):
            return lacks(SHORT)
        if any(f"{hook.__module__}.{hook.__qualname__}" not in KNOWN_HOOKS for hook, _ in getattr(ddp, "_comm_hooks", ())):
            return lacks(HOOKED)
        self.next = self.reductions = 0
        self.synchronized = ddp.require_backward_grad_sync
        if ddp._has_rebuilt_buckets and not self.rebuilt:
            known = ddp._get_ddp_logging_data().get("rebuilt_per_bucket_param_indices", "")
            table = [[int(index) for index in bucket.split()] for bucket in known.split(",") if bucket.strip()]
            self.table = self.made_of(table or of_reducer(ddp))
            self.rebuilt = self.table is not None
            self.check()

    def check(self):
        if self.table is not None and not self.of_norms.isdisjoint(parts.elems for parts in self.table):
            lacks(ALIKE)

    def made_of(self, table):
        """[Parts] from buckets of indices; None: unknown."""
        if not table or sorted(index for bucket in table for index in bucket) != list(range(len(self.numbers))):
            return None
        return [_core.Parts([(self.numbers[index], session.param_elems[self.numbers[index]]) for index in bucket]) for bucket in table]


def of_reducer(ddp):
    """Indices of the parameters by bucket, from the reducer itself, which has them one forward before the logging data.
    The call allocates tensors of the buckets' sizes, once: it is not made if these would be on a device."""
    parameters = {id(param): index for index, param in enumerate(parameters_of(ddp))}
    ask = getattr(ddp.reducer, "_get_zeros_like_grad_buckets", None)
    if ask is None or ddp.device_type != "cpu":
        return []
    return [[parameters[id(param)] for param in bucket.parameters()] for bucket in ask()]


def norm_sizes(ddp):
    """Sizes of the all-reduces of SyncBatchNorm in the backward: two sums for each feature."""
    import torch
    return {2 * each.num_features for each in ddp.module.modules() if isinstance(each, torch.nn.SyncBatchNorm)}


def parameters_of(ddp):
    """The parameters in DDP's numbering."""
    named = ((f"{path}.{name}", param) for path, module in ddp.module.named_modules()
             for name, param in module.named_parameters(recurse=False))
    return list(dict.fromkeys(p for name, p in named if p.requires_grad and name not in ddp.parameters_to_ignore))


def watch(ddp):
    """Call once its parameters are described. An error here only turns off the recording of buckets."""
    of, state.assigned = state.assigned, ((), None)
    if state.adapter is None:
        return
    for each in [each for each in state.models if each.module is ddp.module]:
        state.models.discard(each)  # the same model is wrapped again
    state.models.add(ddp)
    if not state.adapter.on:
        return lacks(OFF)
    try:
        watch_only(ddp, *of)
    except Exception as error:
        state.adapter.failed("DistributedDataParallel.__init__", error)


def watch_only(ddp, of, first):
    if state.lacking:
        return
    if len(state.models) > 1:
        return lacks(SEVERAL)
    if getattr(ddp, "skip_all_reduce_unused_params", False) or any(getattr(each, "sparse", False) for each in ddp.module.modules()):
        return lacks(SPARSE)
    state.order = Order(ddp, of, first)
    state.order.check()
    if state.order is None:
        return
    if state.order.first is None and ddp.find_unused_parameters and not ddp._has_rebuilt_buckets:
        return lacks(LATE)
    if state.group is not ddp.process_group:
        take_hooks_back()
        state.group = ddp.process_group
        state.group.register_pre_hook(HOOK_ID, guarded(reduction_begins))
        state.group.register_post_hook(HOOK_ID, guarded(reduction_issued))


def take_hooks_back():
    group, state.group = state.group, None
    if group is not None:
        group.unregister_pre_hook(HOOK_ID)
        group.unregister_post_hook(HOOK_ID)


def unwatch():
    state.order, state.assigned, state.lacking, state.reducing = None, ((), None), False, False
    state.models.clear()
    take_hooks_back()


def guarded(hook):
    def outer(call):
        if state.order is not None and state.adapter.on and session.started:
            try:
                hook(call)
            except Exception as error:
                state.adapter.failed("a hook of DDP's buckets", error)
    return outer


def forward_begins(ddp):
    order = state.order
    if order is not None and order.ddp() is ddp and session.started:
        order.begin(ddp)


def reduction_begins(call):
    import torch
    order = state.order
    if order.table is None or not order.synchronized or not session.in_micro_step or \
            torch._C._current_graph_task_id() == -1 or collectives.op_of(call.name) != k.ALL_REDUCE:
        return
    tensors = call.input_tensors
    if len(tensors) == 1 and tensors[0].numel() in order.of_norms:
        return
    order.reductions += 1
    if order.next >= len(order.table):
        return
    parts = order.table[order.next]
    if len(tensors) != 1 or tensors[0].dim() != 1 or tensors[0].numel() != parts.elems or not tensors[0].dtype.is_floating_point:
        return  # not gradients: the map of used parameters
    order.next += 1
    parts.fill(buckets.of(HOOK_ID))
    buckets.flush(HOOK_ID, parts, parts.elems, False, reason=k.GROUP_COMPLETE)
    state.reducing = True


def reduction_issued(call):
    if state.reducing:
        state.reducing = False
        session.purpose_served()
