"""Spans of modules for frameworks without hooks of their own: DistributedDataParallel, DeepSpeed 0, 1 and 2,
Megatron-Core, Colossal-AI; and of the modules inside FSDP2's groups.

| symbol | event |
|---|---|
| torch.nn.modules.module.register_module_forward_pre_hook, register_module_forward_hook | module forward, recomputed |
| Tensor.register_hook of a module's outputs | module backward begins |
| Tensor.register_hook of its inputs | module backward ends; if no input needs a gradient: when the next module begins |

Adds no node to the graph, as a module's own backward hooks would: hooks of tensors see a gradient and return nothing.

FSDP2's hooks emit the spans and gates of its groups' modules (fsdp2.py). torch calls the hooks of one tensor in the order in
which they were registered: where a group returns what a module in it returned, that module's backward would begin before its
group's, and where a module returns what a group returned, after it. So the order of spans is that of the calls: a module waits
until its group has begun, and a group's backward begins those around it first.
"""
import torch

from shardscope import _core, _hooks, _kinds as k
from shardscope._session import session

GATED, PLAIN, GROUP = range(3)  # a module with gates; one in a model of groups, which have the gates; that of a group
watched = {}  # id(module) -> one of these
_handles = []
_reported = None  # the module of already_entered(), until the next one is entered or it is left itself
_open = []  # calls of modules whose backward is open, the outermost first
_early = []  # calls whose backward has begun before that of their group
_calls_of_groups = {}  # number of a group's module -> its latest call
_group_hooks = None  # FSDP2's, in C++


_adapter = _hooks.Adapter("modules", "", None)  # turned off for good by the first hook that raises


def watch(model, groups=(), hooks=None):
    """Records all modules of this model; the first call registers torch's global hooks. `groups`: modules whose spans and
    gates FSDP2's `hooks` emit."""
    global _group_hooks
    if not _adapter.on:
        return
    watched.update((id(module), PLAIN if groups else GATED) for module in model.modules())
    watched.update((id(module), GROUP) for module in groups)
    if hooks is not None:
        _group_hooks, hooks.begin_backward = hooks, _group_begun
    if not _handles:
        registry = torch.nn.modules.module
        _handles.append(registry.register_module_forward_pre_hook(_guarded(_entering)))
        # Also for a forward that ends in an exception: checkpointing ends its recomputation early with one.
        _handles.append(registry.register_module_forward_hook(_guarded(_leaving), always_call=True))
        _hooks.at_turn_off(unwatch)


def entered():
    """The innermost module whose forward is open."""
    return _forward[-1].module if _forward else k.NO_ID


def already_entered(module):
    """Enters a module that is recorded from a hook before its own forward. torch may still call our hook for it, unless
    ours was called before that hook or is only registered now."""
    global _reported
    _guarded(_entering)(module, ())
    _reported = module


def unwatch():
    if _group_hooks is not None:
        _group_hooks.begin_backward = None
    for handle in _handles:
        handle.remove()
    for known in (_handles, watched, _open, _early, _calls_of_groups, _forward):
        known.clear()
    _forget_reported()


def _forget_reported():
    global _reported
    _reported = None


class Call:
    """A call of a module: the calls around it (`path`, the outermost first), its pass (`kind`), and `how` it is watched."""
    __slots__ = ("module", "kind", "how", "path")

    def __init__(self, module, kind, how, outer):
        self.module, self.kind, self.how = module, kind, how
        self.path = (*outer, self)


_forward = []  # calls whose forward is open


def _guarded(hook):
    """One of torch's global hooks, for recorded modules only. Ignores compiled code; the hook never raises."""
    def outer(module, args, result=None):
        if torch.compiler.is_compiling() or id(module) not in watched:
            return
        try:
            hook(module, args, result)
        except Exception as error:
            _fail(error)
    return outer


def _fail(error):
    _adapter.failed("a module's hook", error)
    unwatch()


def _entering(module, args, _):
    again = module is _reported
    _forget_reported()
    if again:
        return
    number = session.modules.get(id(module))
    if number is None or not session.in_micro_step or not _core.enabled(k.MODULES):
        return
    kind, how = session.forward_pass(), watched[id(module)]
    if kind == k.PASS_FORWARD:
        if how == GATED:
            _core.gate(k.GATE_PRE_FORWARD, number)
        if len(session.spans) == 0:
            _forward.clear()  # left over after an exception
            _early.clear()
    around = _forward or (_open if kind == k.PASS_RECOMPUTE else ())
    call = Call(number, kind, how, around[-1].path if around else ())
    _forward.append(call)
    if how == GROUP:
        if kind == k.PASS_RECOMPUTE:  # FSDP2's hooks leave before ours see it
            session.begin_span(kind, number)
        return
    for tensor in tensors_of(args):
        if tensor.requires_grad and not tensor.is_leaf:
            tensor.register_hook(lambda _: _ended(call))
    session.begin_span(kind, number)


def _leaving(module, _, result):
    _forget_reported()
    number = session.modules.get(id(module))
    if not _forward or number != _forward[-1].module:
        return
    call = _forward.pop()
    if call.how == GROUP:
        if call.kind == k.PASS_RECOMPUTE:
            session.end_span(number)
        else:
            _calls_of_groups[number] = call
        return
    session.end_span(number)
    for tensor in tensors_of(result):
        if tensor.requires_grad and tensor.grad_fn is not None:
            tensor.register_hook(lambda _: _begun(call))
    if call.how == GATED and call.kind == k.PASS_FORWARD and session.in_micro_step:
        _core.gate(k.GATE_POST_FORWARD, number)


def tensors_of(value):
    """Tensors in a module's arguments or results, also in a tuple, a list or a dict."""
    if isinstance(value, torch.Tensor):
        yield value
        return
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (tuple, list)):
        return
    for each in value:
        if isinstance(each, torch.Tensor):
            yield each
        elif isinstance(each, (tuple, list)):
            yield from (inner for inner in each if isinstance(inner, torch.Tensor))


def _begun(call):
    """The first gradient of a module's outputs is ready: the modules around it have begun, others have ended."""
    try:
        _begin(call)
    except Exception as error:
        _fail(error)


def _begin(call):
    if session.phase != k.BACKWARD:
        _open.clear()
        return
    if not session.spans.any(k.PASS_BACKWARD):
        _open.clear()
    if call in _open:
        return
    same = 0
    while same < min(len(_open), len(call.path)) and _open[same] is call.path[same]:
        same += 1
    _close(same)
    for outer in call.path[same:]:
        if outer.how != GROUP or not session.spans.holds(k.PASS_BACKWARD, outer.module):
            if outer.how == GROUP and call.how != GROUP:
                _early.append(call)
                return
            if outer.how == GATED:
                _core.gate(k.GATE_PRE_BACKWARD, outer.module)
            session.begin_span(k.PASS_BACKWARD, outer.module)
        _open.append(outer)


def _group_begun(number):
    """FSDP2's hook before the backward of a group has run."""
    try:
        call, early = _calls_of_groups.get(number), _early[:]
        _early.clear()
        if call is not None:
            _begin(call)
        if not session.spans.holds(k.PASS_BACKWARD, number):
            session.begin_span(k.PASS_BACKWARD, number)
        for each in early:
            _begin(each)
    except Exception as error:
        _fail(error)


def _ended(call):
    try:
        if call in _open and session.phase == k.BACKWARD:
            _close(_open.index(call))
    except Exception as error:
        _fail(error)


def _close(count):
    """Closes all but the outermost `count`. FSDP2's hooks end the spans of groups."""
    while len(_open) > count:
        call = _open.pop()
        if call.how != GROUP:
            session.end_span(call.module)
