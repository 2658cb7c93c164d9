"""DeepCompile of stage 3: parameters, as the operators in its compiled graphs gather and release them.

| symbol | event |
|---|---|
| torch.ops.dc.allgather_param(a, graph_id, id), before | in flight, fetched |
| torch.ops.dc.prefetch_params_fused(graph_id, params, ids), before | in flight, prefetched |
| torch.ops.dc.wait_allgather(a, graph_id, id), after | available |
| torch.ops.dc.release_param(a, graph_id, id, n_users), after that of the last user | not available |
| set_persistent(ds_id) of DeepCompile's extension, after | available, persistent: never released |

`id` is a parameter's ds_id. Compiled graphs call an operator's object in Python, whose `_op` is wrapped: a callback for all
operators (at::addGlobalCallback) would cost 0.2 us for each of the process. DeepCompile calls NCCL itself: no hook of torch
sees its collectives.
"""
import weakref

import torch

from shardscope import _hooks, _kinds as k, compiled
from shardscope._session import session
from shardscope.deepspeed.zero3_params import set_causes, state

_adapter = _hooks.Adapter("DeepCompile, operators", "", None)


class Compiled:
    """The models' parameters by ds_id, which keeps none alive, DeepSpeed's statuses, remaining users by (graph, ds_id), and persistent parameters' ds_ids."""
    params, statuses, users, persistent = weakref.WeakValueDictionary(), None, {}, set()
    watched = False  # the operators, which all engines of the process share


def forget():
    Compiled.watched = False
    for known in (Compiled.params, Compiled.users, Compiled.persistent):
        known.clear()


def watch(engine):
    """After init_z3, which loads the operators. Returns whether they are recorded."""
    if not Compiled.watched and not watch_operators():
        return False
    Compiled.params.update((param.ds_id, param) for param in engine.module.parameters())
    Compiled.statuses = type(next(iter(Compiled.params.values())).ds_status)
    return True


def watch_operators():
    table = _hooks.Table(_adapter, torch.ops.dc)
    try:
        wrap(table, "allgather_param", "a graph_id id", before=lambda a, graph, number, *_, **__: runs(a) and changes((number,), "INFLIGHT"))
        wrap(table, "prefetch_params_fused", "graph_id params ids", before=lambda graph, params, numbers, *_, **__:
             all(map(runs, params)) and changes(numbers, "INFLIGHT", k.PREFETCH))
        wrap(table, "wait_allgather", "a graph_id id", after=lambda _, result, a, graph, number:
             runs(a) and changes((number,), "AVAILABLE"))
        wrap(table, "release_param", "a graph_id id n_users", after=released)
    except _hooks.Differs as why:
        _adapter.turn_off(f"{why}; parameters in compiled graphs are not recorded")
        return False
    from deepspeed.compile.util import get_deepcompile_handle
    handle = get_deepcompile_handle()
    table.replace(handle, "set_persistent", _hooks.wrapped(_adapter, "set_persistent", handle.set_persistent, None, kept))
    table.apply()
    Compiled.watched = True
    _hooks.at_turn_off(forget)
    return True


def wrap(table, name, parameters, before=None, after=None):
    operator = table.owner(f"{name}.default")
    known, expected = [argument.name for argument in operator._schema.arguments], parameters.split()
    if known[:len(expected)] != expected:
        raise _hooks.Differs(f"torch.ops.dc.{name} takes ({', '.join(known)}), not ({parameters}, ...)")
    table.replace(operator, "_op", _hooks.wrapped(_adapter, f"torch.ops.dc.{name}", operator._op, before, after))


def runs(tensor):
    """Whether it is a call of the training. While a graph is compiled operators are called too: traced, with tensors that
    hold nothing, and measured."""
    return session.started and not compiled.Compiling.now and type(tensor) in (torch.Tensor, torch.nn.Parameter)


def changes(numbers, status, cause=k.FETCH):
    causes = set_causes(cause, k.RELEASE)
    try:
        for number in numbers:
            if number in Compiled.params:
                state.changed(Compiled.params[number], Compiled.statuses[status])
    finally:
        set_causes(*causes)


def released(_, result, tensor, graph, number, users):
    """As DeepCompile counts the users of a graph."""
    if not runs(tensor):
        return
    left = (Compiled.users.get((graph, number)) or users) - 1
    Compiled.users[graph, number] = left
    if left == 0 and number not in Compiled.persistent:
        changes((number,), "NOT_AVAILABLE")


def kept(_, result, number):
    Compiled.persistent.add(number)
    if session.started:
        changes((number,), "AVAILABLE", k.PERSISTENT)
