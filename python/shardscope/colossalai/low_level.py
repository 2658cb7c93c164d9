"""Colossal-AI's LowLevelZeroOptimizer (ZeRO stages 1 and 2): what it trains, steps, buckets, gathers.

O = zero.low_level.low_level_optim.LowLevelZeroOptimizer

| symbol of colossalai | event |
|---|---|
| O.__init__, after | its parameters; the model is the first module whose forward has them all |
| torch.nn.modules.module.register_module_forward_pre_hook | the model (once); micro-step begin with gates `step` and `micro_step`, phase forward |
| O.backward, O.backward_by_grad | loss, phase backward; micro-step end |
| O._add_to_bucket | bucket_add |
| ...bookkeeping.bucket_store.BucketStore.build_grad_in_bucket, before | bucket_flush with its reason; gate `bucket` |
| ...BucketStore.reset, after | what was issued until here was the bucket's reduction |
| ...bookkeeping.tensor_bucket.TensorBucket.all_gather; low_level_optim.all_gather_into_flat_tensor_nd | the gather of updated parameters |
| O.step | gate `optimizer`, phase optimizer; norm, learning rate, loss scale, overflow, step end |
| amp.naive_amp.mixed_precision_mixin.fp16.FP16MixedPrecisionMixin.check_overflow | the loss scale, before it is changed; whether the step is skipped |

The loss scale is read from the scaler's tensor: FP16MixedPrecisionMixin.loss_scale would wait for the device.
"""
import weakref

from shardscope import _core, _hooks, _kinds as k, _say, param_groups
from shardscope._hooks import Adapter
from shardscope._session import session
from shardscope.colossalai import layout, memory

buckets = _core.Buckets(session)
ZERO = "colossalai.zero.low_level."


class State:
    waiting = []  # weak references to optimizers whose model has not run yet
    models = {}  # id(module) -> optimizer, weakly
    hook = None  # torch's global forward pre-hook
    reason = k.EPILOGUE  # reason of the current flush
    skipped, scale = False, None  # of this step; None: without loss scaling
    padded = {}  # id(a whole padded parameter) -> (its number, its elements)


state = State()


def adapters():
    return [Adapter("Colossal-AI's ZeRO", ZERO + "low_level_optim", install),
            Adapter("Colossal-AI's ZeRO, buckets", ZERO + "bookkeeping.bucket_store", install_buckets),
            Adapter("Colossal-AI's ZeRO, gathers", ZERO + "bookkeeping.tensor_bucket", install_gathers),
            Adapter("Colossal-AI, loss scale", "colossalai.amp.naive_amp.mixed_precision_mixin.fp16", install_scale)]


def install(table):
    cls = "LowLevelZeroOptimizer."
    adapter = table.adapter
    table.wrap(cls + "__init__", "self optimizer", before=groups_of, after=lambda groups, result, self, *args, **kwargs:
               made(adapter, groups, self))
    table.wrap(cls + "backward", "self loss", before=backward_begins, after=backward_ended)
    table.wrap(cls + "backward_by_grad", "self tensor grad", before=backward_by_grad_begins, after=backward_ended)
    table.wrap(cls + "_add_to_bucket", "self param group_id", before=gradient_comes, after=added)
    table.wrap(cls + "step", "self closure", before=step_begins, after=step_ended)
    table.wrap("all_gather_into_flat_tensor_nd", "output_tensor input_tensor", before=one_gather_begins, after=served)


def install_buckets(table):
    table.wrap("BucketStore.build_grad_in_bucket", "self", before=flush)
    table.wrap("BucketStore.reset", "self", after=served)


def install_gathers(table):
    table.wrap("TensorBucket.all_gather", "self group", before=gather_begins, after=served)


def install_scale(table):
    table.wrap("FP16MixedPrecisionMixin.check_overflow", "self", before=scale_is, after=skipped)


# ---- the model ------------------------------------------------------------------------------------------

def groups_of(self, optimizer, *args, **kwargs):
    """Called before shards replace the parameters in the groups."""
    return [(dict(group), list(group["params"])) for group in optimizer.param_groups]


def made(adapter, groups, optimizer):
    optimizer_of = weakref.ref(optimizer)
    state.waiting.append((optimizer_of, groups))
    if state.hook is None:
        import torch
        state.hook = torch.nn.modules.module.register_module_forward_pre_hook(guarded(adapter))
        _hooks.at_turn_off(forget)


def forget():
    if state.hook is not None:
        state.hook.remove()
    state.hook = None
    state.waiting, state.models, state.padded = [], {}, {}
    state.reason, state.skipped, state.scale = k.EPILOGUE, False, None


def guarded(adapter):
    import torch
    from shardscope import modules

    def entering(module, args):
        if not adapter.on or torch.compiler.is_compiling():
            return
        try:
            if state.waiting:
                look_for_models(module)
            if id(module) in state.models and torch.is_grad_enabled() and module.training and session.watches(module):
                session.begin_micro_step()
                modules.already_entered(module)  # its call may have begun before the micro-step
        except Exception as error:
            adapter.failed("register_module_forward_pre_hook", error)
    return entering


def look_for_models(module):
    """A module that has all parameters of an optimizer is its model. Outer modules run first, so the outermost such
    module is found."""
    held = {id(param) for param in module.parameters()}
    for each in list(state.waiting):
        optimizer, groups = each
        if optimizer() is None:
            state.waiting.remove(each)
        elif held.issuperset(id(param) for param in optimizer().param_to_pg):
            state.waiting.remove(each)
            state.models[id(module)] = optimizer
            weakref.finalize(module, state.models.pop, id(module), None).atexit = False
            describe(module, optimizer(), groups)


def give_up(optimizer):
    """The optimizer steps, so its parameters have been used, but no single module has them all: stops looking for it."""
    if any(held() is optimizer for held, _ in state.waiting):
        state.waiting = [each for each in state.waiting if each[0]() not in (None, optimizer)]
        _say.warning("Colossal-AI's ZeRO: no module that ran has all parameters of an optimizer; what it trains is not recorded")


def describe(module, optimizer, groups):
    import colossalai
    import torch
    import torch.distributed as dist
    first = next(iter(optimizer.param_to_pg))
    size, device = first.dtype.itemsize, first.device
    held, of = weakref.ref(optimizer), weakref.ref(module)
    session.memory.watch(module, lambda: memory.source_of(module, optimizer), device.type)

    def tables(run):
        if held() is not None and of() is not None:
            state.padded.update(layout.describe(run, of(), held()))
            param_groups.add(run, groups)

    session.describe(module, tables, then=lambda: of() is not None and watch(of()), stage=2 if optimizer._partition_grads else 1,
                     kind="colossalai", framework=f"Colossal-AI {colossalai.__version__}, PyTorch {torch.__version__}",
                     device=str(device), ranks=(dist.get_rank(), dist.get_world_size()), param_bytes=size, grad_bytes=size,
                     master_bytes=4 if size == 2 and optimizer._master_weights else 0)


def watch(module):
    from shardscope import modules
    modules.watch(module)


# ---- backward and step ----------------------------------------------------------------------------------

def backward_begins(optimizer, loss, *args, **kwargs):
    if session.started and session.in_micro_step:
        session.loss(loss)
        session.begin_backward()


def backward_by_grad_begins(optimizer, *args, **kwargs):
    if session.started:
        session.begin_backward()


def backward_ended(_, result, *args, **kwargs):
    if session.started:
        session.end_micro_step()


def step_begins(optimizer, closure=None):
    if state.waiting:
        give_up(optimizer)
    if session.started and session.in_step and optimizer.require_grad_sync:
        session.begin_optimizer()
        state.skipped, state.scale = False, None
        return True


def scale_is(mixin):
    """Colossal-AI replaces this tensor when the scale changes, so it keeps the scale of the current gradients."""
    state.scale = mixin.grad_scaler.scale


def skipped(_, result, mixin):
    state.skipped = bool(result)


def step_ended(begun, result, optimizer, closure=None):
    if not begun or not session.in_step:
        return
    if state.scale is not None:
        session.overflow(state.skipped)
        session.loss_scale(state.scale)
    if not state.skipped:
        if optimizer._current_grad_norm is not None:  # of scaled gradients
            session.grad_norm(optimizer._current_grad_norm, state.scale)
        session.learning_rate(optimizer.optim.param_groups[0].get("lr"))
    session.end_step(skipped=state.skipped)


# ---- buckets and gathers --------------------------------------------------------------------------------

def gradient_comes(optimizer, param, group_id):
    """If the gradient does not fit into the bucket, the bucket is reduced before the gradient is added."""
    buckets.comes(param)
    changed = group_id != optimizer.pid_to_bucket_store[id(param)].current_group_id
    state.reason = k.GROUP_CHANGED if changed else k.FULL


def added(_, result, optimizer, param, group_id):
    buckets.came()
    state.reason = k.EPILOGUE
    number = session.params.get(id(param))
    if number is not None and session.started:
        store = optimizer.pid_to_bucket_store[id(param)]
        buckets.add(id(store), number, param.numel(), store.num_elements_in_bucket())


def flush(store):
    if session.started:
        parts = known_parts(store._param_list)
        if len(parts):
            buckets.flush(id(store), parts, store.num_elements_in_bucket(), False, reason=state.reason)


def known_parts(params):
    numbers = ((session.params.get(id(param)), param.numel()) for param in params)
    return _core.Parts([(number, elems) for number, elems in numbers if number is not None])


def served(*_, **__):
    session.purpose_served()


def gather_begins(bucket, *args, **kwargs):
    if session.started:
        gather(known_parts(bucket._write_back_pairs.values()))


def one_gather_begins(output_tensor, *args, **kwargs):
    part = state.padded.get(id(output_tensor))
    if session.started and part is not None:
        gather(_core.Parts([part]))


def gather(parts):
    session.gathers += 1
    session.purpose = (k.GATHER, session.gathers, parts)
