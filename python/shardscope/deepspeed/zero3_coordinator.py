"""DeepSpeed's coordinator: parameters fetched, prefetched, kept and released at each module, and why.

C = partitioned_param_coordinator.PartitionedParameterCoordinator

| symbol | event |
|---|---|
| C._fetch_sub_module_impl, before | gates `pre_forward`, `pre_backward`: nothing is issued yet |
| C._fetch_sub_module_impl, after | fetch_decision: the prefetched parameters and why it stopped |
| C.__all_gather_params_, before | the gather: its parameters, fetch or prefetch |
| C.release_sub_module, after | release_kept with its reason; gates `post_forward`, `post_backward` |
| C.release_and_reset_all | cause partition; release_backward_leftovers releases as the missing hook would: cause release |
| C.reset_step, C._invalidate_trace | trace_mode, or eval_trace_mode in an evaluation; trace_invalidated |

Hooks that run for every module of every pass are C++: src/coordinator_hooks.cpp, src/module_hooks.cpp.
"""
import operator

from shardscope import _core
from shardscope._session import NO_ID, session
from shardscope.deepspeed.zero3_params import INVALIDATED, PARTITIONED, set_causes, state

events = _core.events
C = "_PartitionedParameterCoordinator__"


def private(name):
    """get(coordinator) of a private attribute."""
    return operator.attrgetter(C + name)


step_id_of, trace_mode_of, order_of = map(private, ("step_id", "trace_mode", "submodule_order"))
MODES = {"INVALID": 0, "RECORD": 1, "COMPLETE": 2}


def install_coordinator(table):
    cls = "PartitionedParameterCoordinator."
    table.owner("iter_params")
    table.owner("z3_leaf_module")
    iter_params, is_leaf = table.module.iter_params, table.module.z3_leaf_module
    fetches = _core.CoordinatorHooks(session, state, lambda module: iter_params(module, recurse=is_leaf(module)),
                                     complete_mode(table))
    hooks = module_hooks(fetches)
    table.wrap(cls + "_fetch_sub_module_impl", "self current_submodule forward is_leaf",
               before=fetches.fetch_begins, after=fetches.fetch_ended)
    table.wrap(cls + C + "all_gather_params_", "self params forward", before=fetches.gather_begins,
               after=fetches.gather_issued)
    table.wrap(cls + "release_sub_module", "self submodule forward", before=hooks.release_begins,
               after=hooks.released)
    table.wrap(cls + "release_and_reset_all", "self module", before=lambda *a: set_causes(state.cause_in, PARTITIONED),
               after=lambda token, result, *a: set_causes(*token))
    table.wrap(cls + "reset_step", "self", after=step_reset)
    table.wrap(cls + "_invalidate_trace", "self", before=invalidated, after=lambda token, result, *a: set_causes(*token))


def complete_mode(table):
    """The trace mode for which is_complete_trace() is true; None: the method checks more than the mode."""
    cls, modes = table.owner("PartitionedParameterCoordinator"), getattr(table.module, "ZeRoTraceMode", None)
    asked = getattr(getattr(cls, "is_complete_trace", None), "__code__", None)
    names = asked.co_names if asked is not None else ()
    return modes.COMPLETE if modes is not None and names == (C + "trace_mode", "ZeRoTraceMode", "COMPLETE") else None


def module_hooks(kept=None):
    """Spans and releases of modules, hooked in C++. `kept`: CoordinatorHooks, for releases."""
    import torch
    return _core.ModuleHooks(session, state, torch._C._current_graph_task_id, kept)


def step_reset(_, result, coordinator):
    """A root forward begins. If no backward can follow, it is an evaluation (or other code without training), which
    uses training's trace but is not a micro-step."""
    import torch
    if not session.started:
        return
    mode = MODES[trace_mode_of(coordinator).name]
    if session.in_micro_step and torch.is_grad_enabled():
        events.trace_mode(mode, session.micro_step, session.step)
    else:
        made = session.step if session.step_trains else session.step - 1
        events.eval_trace_mode(mode, made if made >= 0 else NO_ID)


def invalidated(coordinator):
    order, step_id = order_of(coordinator), step_id_of(coordinator)
    expected = session.modules.get(id(order[step_id]), NO_ID) if step_id < len(order) else NO_ID
    if session.started:
        events.trace_invalidated(0 if step_id < len(order) else 1, expected, state.entering, step_id, len(order))
    return set_causes(state.cause_in, INVALIDATED)
