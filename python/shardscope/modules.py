"""Spans of modules for frameworks without hooks of their own: DistributedDataParallel, DeepSpeed 0, 1 and 2,
Megatron-Core, Colossal-AI; and of the modules inside FSDP2's groups.

| symbol | event |
|---|---|
| torch.nn.Module._call_impl (1) | module forward, recomputed |
| Tensor.register_hook of a module's outputs | module backward begins |
| Tensor.register_hook of its inputs | module backward ends; if no input needs a gradient: when the next module begins |

(1) Until the outermost forward has returned once, and where dynamo traces:
torch.nn.modules.module.register_module_forward_pre_hook and register_module_forward_hook.

With a global hook torch calls every module in a longer way, 2 us more with the caches full and several times that in
training; around _call_impl nothing in Python runs. Dynamo must find torch's own function there, and hooks that it can
trace: from the first trace on they are torch's (compiled.py).

Adds no node to the graph, as a module's own backward hooks would: hooks of tensors see a gradient and return nothing. A
tensor has one hook, which begins and ends all backwards that do so at it.

FSDP2's hooks emit the spans and gates of its groups' modules (fsdp2.py). src/module_backward.h has the order of
backwards.

The hooks are C++: src/module_calls.cpp, src/module_backward.cpp. torch's own are functions in Python, which dynamo can
trace.
"""
import collections
import sys

import torch
from torch.compiler import is_compiling

from shardscope import _core, _hooks
from shardscope._session import NO_ID, session
from shardscope._switched import Switched
from shardscope.compiled import Traced

GATED, PLAIN, GROUP = _core.Watched.GATED, _core.Watched.PLAIN, _core.Watched.GROUP
# Names in Tensor.register_hook where it puts a hook into a table that _register_hook_dict() has given to the tensor's
# node.
REGISTERS = {"has_torch_function_unary", "handle_torch_function", "Tensor", "register_hook", "requires_grad",
             "RuntimeError", "grad_fn", "_backward_hooks", "OrderedDict", "_register_hook_dict", "torch.utils.hooks",
             "RemovableHandle", "id"}
# Modules and the name under which they keep what Module._call_impl was when they were imported.
KEEPS = (("torch._dynamo.utils", "torch._dynamo.variables.nn_module"), "unpatched_nn_module_call_impl")
_handles = []  # of torch's global hooks
_late = []  # those that the next call of a module removes
_group_hooks = None  # FSDP2's, in C++


_adapter = _hooks.Adapter("modules", "", None)  # turned off for good by the first hook that raises


class Wrapped:
    now = None  # the wrapper of Module._call_impl, while it is in place, be it within another one
    toggle = None  # of the last wrapper
    differs = False  # it has other parameters than expected


class Toggle(Switched):
    """Switch of one wrapper: another tool may keep it in its own after a detach."""

    def __init__(self):
        super().__init__()
        self.on = True

    def failed(self, symbol, error):
        _failed(error)


def watch(model, groups=(), hooks=None):
    """Records all modules of this model; the first call registers torch's global hooks. `groups`: modules whose spans
    and gates FSDP2's `hooks` emit."""
    global _group_hooks
    if not _adapter.on:
        return
    for module in model.modules():
        calls.watch(module, PLAIN if groups else GATED)
    for module in groups:
        calls.watch(module, GROUP)
    if hooks is not None:
        _group_hooks, hooks.begin_backward = hooks, calls.group_begun
    if not _handles and Wrapped.now is None:
        register_hooks()
        _hooks.at_turn_off(unwatch)


def register_hooks():
    registry = torch.nn.modules.module
    _handles.append(registry.register_module_forward_pre_hook(_entering))
    # Also for a forward that ends in an exception: checkpointing ends its recomputation early with one.
    _handles.append(registry.register_module_forward_hook(_leaving, always_call=True))


def remove_hooks(handles=_handles):
    for handle in handles:
        handle.remove()
    handles.clear()


def raising():
    """Whether torch may be calling hooks because a forward raised: it then iterates over the table of them."""
    return sys.exc_info()[1] is not None


def wrap_calls():
    """Instead of torch's global hooks, between two forwards: a wrapper does not see the end of a call that had begun.
    Not while torch iterates over the hooks of a forward that raised."""
    try:
        toggle = Toggle()
        table = _hooks.Table(toggle, torch.nn.modules.module)
        table.wrap("Module._call_impl", "self", before=calls.call_begins, after=calls.call_ended, raised=call_raised)
        _, name, wrapper = table.wraps[0]
        if Wrapped.toggle is not None:
            Wrapped.toggle.on = False
        Wrapped.toggle, Wrapped.now, calls.wrapped = toggle, wrapper, True
        setattr(torch.nn.Module, name, wrapper)  # unwrap() puts the original back
        remove_hooks()
    except _hooks.Differs:
        Wrapped.differs = True
    except Exception as error:  # an error in our code
        _failed(error)


def call_raised(module):
    if module is not None:
        calls.leaving(module, None)


def by_torch_s_hooks():
    """Puts torch's own function back, before dynamo traces."""
    if unwrap():
        register_hooks()


def unwrap():
    """False if the wrapper is not in place. It ends the calls that it has begun, and begins no more, also where another
    tool's wrapper around it keeps it."""
    wrapper, Wrapped.now, calls.wrapped = Wrapped.now, None, False
    if wrapper is None:
        return False
    modules, name = KEEPS
    if vars(torch.nn.Module).get("_call_impl") is wrapper:
        torch.nn.Module._call_impl = wrapper.__wrapped__
    for module in filter(None, map(sys.modules.get, modules)):
        if vars(module).get(name) is wrapper:
            setattr(module, name, wrapper.__wrapped__)
    return True


def entered():
    """Number of the innermost module whose forward is open, or NO_ID."""
    return calls.entered


def already_entered(module):
    """Enters a module that is recorded from a hook before its own forward. torch may still call our hook for it, unless
    ours was called before that hook or is only registered now."""
    if not is_compiling():
        calls.already_entered(module)


def unwatch():
    if _group_hooks is not None:
        _group_hooks.begin_backward = None
    remove_hooks()
    unwrap()
    if Wrapped.toggle is not None:
        Wrapped.toggle.on = False
    calls.forget()


def _entering(module, args):
    if not is_compiling():
        calls.entering(module, args)
        if _late:
            remove_hooks(_late)


def _leaving(module, args, result):
    if not is_compiling():
        calls.leaving(module, result)
        if _handles and not (Traced.any or Wrapped.differs) and calls.entered == NO_ID and not raising():
            wrap_calls()


def _failed(error):
    _adapter.failed("a module", error)  # of its call or of its tensors
    if raising():
        _late.extend(_handles)
        _handles.clear()
    unwatch()


def _table_of_hooks():
    """Makes the table of a tensor's hooks; None if this torch keeps them in another way."""
    names = set(getattr(getattr(torch.Tensor.register_hook, "__code__", None), "co_names", ()))
    return collections.OrderedDict if names == REGISTERS else None


calls = _core.ModuleCalls(session, torch.Tensor, _table_of_hooks(), torch._C._current_graph_task_id, _failed)
