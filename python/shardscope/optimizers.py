"""Hooks common to all frameworks on torch: backward, optimizer step, learning rate, gradient norm, data wait.

| symbol | event |
|---|---|
| torch.Tensor.backward, before | loss, phase backward |
| torch.optim.optimizer's global step hooks | gate `optimizer`, phase optimizer, learning rate, step end; parameter groups, at an optimizer's first |
| torch.nn.utils.clip_grad_norm_, after | gradient norm, if every rank has the total |
| DTensor.full_tensor, after | gradient norm, if it was distributed over ranks: the script's own communication gives the total |
| torch.amp.GradScaler.step, update | loss scale; the end of a step that it skipped |
| _BaseDataLoaderIter.__next__ | data wait |

| torch.distributed.optim.ZeroRedundancyOptimizer.step, before the first | stage 1: which rank has the states of which parameter |

DeepSpeed's engine has its own hooks for backward, step and norm; these emit nothing then (`session.plain`).
"""
import sys
import threading
import weakref

from shardscope import _core, _hooks, _kinds as k, param_groups
from shardscope._hooks import Adapter
from shardscope._session import session

events = _core.events


def adapters():
    return [Adapter("backward", "torch._tensor", install_backward),
            Adapter("optimizer steps", "torch.optim.optimizer", install_steps),
            Adapter("ZeroRedundancyOptimizer", "torch.distributed.optim.zero_redundancy_optimizer", install_redundancy),
            Adapter("gradient norm", "torch.nn.utils.clip_grad", install_norm),
            Adapter("gradient norm, spread over ranks", "torch.distributed.tensor._api", install_whole_norm),
            Adapter("loss scale", "torch.amp.grad_scaler", install_scaler),
            # FSDP1's scaler overrides update().
            Adapter("loss scale, FSDP1", "torch.distributed.fsdp.sharded_grad_scaler", install_sharded_scaler),
            Adapter("data wait", "torch.utils.data.dataloader", install_loader)]


def install_backward(table):
    table.wrap("Tensor.backward", "self gradient retain_graph", before=backward)


def backward(tensor, *args, **kwargs):
    if session.plain_backward and session.started and session.in_micro_step:
        if tensor.numel() == 1:
            session.loss(tensor)
        session.begin_backward()


def install_steps(table):
    adapter = table.adapter

    def guarded(hook):
        def outer(optimizer, args, kwargs):
            if adapter.on and session.plain and session.started:
                try:
                    hook(optimizer)
                except Exception as error:
                    adapter.failed("register_optimizer_step_hook", error)
        return outer

    for handle in (table.module.register_optimizer_step_pre_hook(guarded(step_begins)),
                   table.module.register_optimizer_step_post_hook(guarded(step_ended))):
        _hooks.at_turn_off(handle.remove)
    _hooks.at_turn_off(param_groups.forget)


def step_begins(optimizer):
    param_groups.add_of(optimizer)
    session.memory.optimizer(optimizer)
    session.begin_optimizer()


def step_ended(optimizer):
    if session.step_trains:
        session.learning_rate(optimizer.param_groups[0].get("lr"))
        session.end_step()


def install_redundancy(table):
    table.owner("ZeroRedundancyOptimizer")
    if not table.has("ZeroRedundancyOptimizer._partition_parameters"):
        raise _hooks.Differs("ZeroRedundancyOptimizer._partition_parameters is not there")
    table.wrap("ZeroRedundancyOptimizer.step", "self closure", before=redundancy_begins)
    _hooks.at_turn_off(_divided.clear)


_divided = weakref.WeakSet()  # optimizers whose division is in the tables


def redundancy_begins(optimizer, *args, **kwargs):
    """Each rank updates some of the parameters, whole, and broadcasts them: ZeRO-1 beside DistributedDataParallel."""
    # With overlap_with_ddp the division comes with the third step.
    if not session.started or session.kind != "ddp" or optimizer in _divided or not optimizer._partition_parameters_cache:
        return
    import torch.distributed as dist
    _divided.add(optimizer)
    ranks = dist.get_process_group_ranks(optimizer.process_group)
    for rank, groups in zip(ranks, optimizer._partition_parameters()):
        offset = 0
        for param in (param for group in groups for param in group["params"]):
            number = session.params.get(id(param))
            if number is not None:
                session.run.add_slice(number, rank, 0, offset, param.numel(), 0)
            offset += param.numel()
    session.run.set_stage(1)
    session.run.publish()


def install_scaler(table):
    table.wrap("GradScaler.step", "self optimizer", before=scaled_step)
    table.wrap("GradScaler.update", "self new_scale", before=scale_updated)


def install_sharded_scaler(table):
    table.wrap("ShardedGradScaler.update", "self new_scale", before=scale_updated)


def scaled_step(scaler, optimizer, *args, **kwargs):
    """Records the scale of this step's gradients. With gradients that are not finite the scaler does not call the
    optimizer, so its hooks are not called."""
    if session.plain and session.started and session.in_step and scaler._scale is not None:
        session.end_micro_step()
        session.loss_scale(scaler._scale)


def scale_updated(scaler, *args, **kwargs):
    if session.plain and session.started and session.step_trains and not session.in_micro_step and scaler._scale is not None:
        session.overflow(True)
        session.end_step(skipped=True)


def install_norm(table):
    table.wrap("clip_grad_norm_", "parameters max_norm", after=clipped)
    # torch.nn.utils has its own reference to it, if it has been imported: both get the same wrapper.
    package = sys.modules.get("torch.nn.utils")
    if package is not None and vars(package).get("clip_grad_norm_") is vars(table.module)["clip_grad_norm_"]:
        table.replace(package, "clip_grad_norm_", table.wraps[-1][2])


def clipped(_, norm, *args, **kwargs):
    if not (session.plain and session.started):
        return
    if hasattr(norm, "placements"):
        if not all(placement.is_replicate() for placement in norm.placements):
            Spread.norm, Spread.step = weakref.ref(norm), session.step  # the total would need a collective of ours
            return
        norm = norm.to_local()
    session.end_micro_step()
    session.grad_norm(norm)


class Spread:
    """A weak reference to the last distributed gradient norm, until the script computes its total."""
    norm, step = None, 0

    @staticmethod
    def forget():
        Spread.norm = None


def install_whole_norm(table):
    table.wrap("DTensor.full_tensor", "self", after=made_whole)
    _hooks.at_turn_off(Spread.forget)


def made_whole(_, whole, spread, *args, **kwargs):
    if Spread.norm is None or Spread.norm() is not spread:
        return
    Spread.forget()
    if session.plain and session.started:
        session.grad_norm(whole, step=Spread.step)


def install_loader(table):
    table.wrap("_BaseDataLoaderIter.__next__", "self", before=data_wanted,
               after=batch_came, raised=data_came)


def data_wanted(iterator):
    # Training does not wait for data that another thread prefetches.
    if not session.started or session.thread not in (None, threading.get_ident()):
        return None
    if not session.in_step and feeds_training(iterator):
        session.begin_step()
    coming = session.micro_step if session.in_step else 0
    if session.in_micro_step:
        if not session.plain_backward or torch_is_in_backward():
            return None
        if session.phase == k.BACKWARD:
            # Between two micro-steps of a step: torch does not report the end of a backward. Another one may follow.
            session.end_phase()
            session.waits_for = coming + 1
        if session.waits_for is None:
            return None
        coming = session.waits_for  # also a second loader's
    events.data_wait_begin(coming, session.step)
    return coming


def feeds_training(iterator):
    """Whether the iterator's next batch is for a step: it reads the data set of the previous micro-step, has more
    batches, and the models are in training mode. The length of an iterable data set is unknown: its data wait is
    recorded before the step, like that of a run's first batch."""
    data = id(iterator._dataset)
    if data not in session.trains_on or data in session.other_data or not may_train():
        return False
    try:
        return iterator._num_yielded < len(iterator)
    except Exception:  # a user-defined sampler may raise
        return False


def may_train():
    """Whether no evaluation is in progress, as far as the hooks can see."""
    import torch
    return torch.is_grad_enabled() and not session.within_phase and not session.evaluating()


def torch_is_in_backward():
    import torch
    return torch._C._current_graph_task_id() != -1


def batch_came(waiting, _, iterator):
    if session.thread in (None, threading.get_ident()):  # also before the session starts, with the first forward
        if may_train():
            session.came.add(id(iterator._dataset))
    data_came(waiting)


def data_came(waiting):
    """Also called at the end of the data: the iterator has raised StopIteration."""
    if waiting is not None:
        events.data_wait_end(waiting, session.step)
