"""Spans of modules for frameworks without hooks of their own: DistributedDataParallel, DeepSpeed 0, 1 and 2,
Megatron-Core, Colossal-AI; and of the modules inside FSDP2's groups.

| symbol | event |
|---|---|
| torch.nn.modules.module.register_module_forward_pre_hook, register_module_forward_hook | module forward, recomputed |
| Tensor.register_hook of a module's outputs | module backward begins |
| Tensor.register_hook of its inputs | module backward ends; if no input needs a gradient: when the next module begins |

Adds no node to the graph, as a module's own backward hooks would: hooks of tensors see a gradient and return nothing.

FSDP2's hooks emit the spans and gates of its groups' modules (fsdp2.py). src/module_backward.h has the order of backwards.

The hooks are C++: src/module_calls.cpp, src/module_backward.cpp. torch's own are functions in Python, which dynamo can trace.
"""
import collections

import torch
from torch.compiler import is_compiling

from shardscope import _core, _hooks
from shardscope._session import session

GATED, PLAIN, GROUP = _core.Watched.GATED, _core.Watched.PLAIN, _core.Watched.GROUP
# Names in Tensor.register_hook where it puts a hook into a table that _register_hook_dict() has given to the tensor's node.
REGISTERS = {"has_torch_function_unary", "handle_torch_function", "Tensor", "register_hook", "requires_grad", "RuntimeError", "grad_fn",
             "_backward_hooks", "OrderedDict", "_register_hook_dict", "torch.utils.hooks", "RemovableHandle", "id"}
_handles = []
_group_hooks = None  # FSDP2's, in C++


_adapter = _hooks.Adapter("modules", "", None)  # turned off for good by the first hook that raises


def watch(model, groups=(), hooks=None):
    """Records all modules of this model; the first call registers torch's global hooks. `groups`: modules whose spans and
    gates FSDP2's `hooks` emit."""
    global _group_hooks
    if not _adapter.on:
        return
    for module in model.modules():
        calls.watch(module, PLAIN if groups else GATED)
    for module in groups:
        calls.watch(module, GROUP)
    if hooks is not None:
        _group_hooks, hooks.begin_backward = hooks, calls.group_begun
    if not _handles:
        registry = torch.nn.modules.module
        _handles.append(registry.register_module_forward_pre_hook(_entering))
        # Also for a forward that ends in an exception: checkpointing ends its recomputation early with one.
        _handles.append(registry.register_module_forward_hook(_leaving, always_call=True))
        _hooks.at_turn_off(unwatch)


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
    for handle in _handles:
        handle.remove()
    _handles.clear()
    calls.forget()


def _entering(module, args):
    if not is_compiling():
        calls.entering(module, args)


def _leaving(module, args, result):
    if not is_compiling():
        calls.leaving(module, result)


def _failed(error):
    _adapter.failed("a module", error)  # of its call or of its tensors
    unwatch()


def _table_of_hooks():
    """Makes the table of a tensor's hooks; None if this torch keeps them in another way."""
    names = set(getattr(getattr(torch.Tensor.register_hook, "__code__", None), "co_names", ()))
    return collections.OrderedDict if names == REGISTERS else None


calls = _core.ModuleCalls(session, torch.Tensor, _table_of_hooks(), torch._C._current_graph_task_id, _failed)
