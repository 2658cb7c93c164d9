"""Megatron-Core: the model and its micro-steps.

| symbol of megatron.core | event |
|---|---|
| distributed.distributed_data_parallel.DistributedDataParallel.__init__, after | the model: modules, parameters, slices; the run starts |
| pipeline_parallel.schedules.forward_step | micro-step begin with gates `step` and `micro_step`, phase forward; loss |
| pipeline_parallel.schedules.backward_step | phase backward; micro-step end |
| distributed.data_parallel_base._BaseDataParallel.forward, before | the same for a script without a schedule |

Stages of a pipeline run forwards ahead of backwards: there a micro-step lasts from one forward to the next and contains
the backwards of earlier ones.
"""
import dataclasses
import weakref

from shardscope import _hooks, _kinds as k
from shardscope._hooks import Adapter
from shardscope._session import session
from shardscope.megatron import layout, memory


class State:
    in_schedule = False  # a forward_step is running
    pipelined = False


state = State()


def adapters():
    core = "megatron.core."
    return [Adapter("Megatron-Core", core + "distributed.distributed_data_parallel", install_model),
            Adapter("Megatron-Core, schedules", core + "pipeline_parallel.schedules", install_schedules),
            Adapter("Megatron-Core, forward", core + "distributed.data_parallel_base", install_forward)]


def install_model(table):
    _hooks.at_turn_off(forget)
    table.wrap("DistributedDataParallel.__init__", "self config ddp_config module", after=made)


def install_schedules(table):
    table.wrap("forward_step", "forward_step_func data_iterator model", before=forward_begins, after=forward_ended,
               raised=forward_raised)
    table.wrap("backward_step", "input_tensor output_tensor output_tensor_grad", before=backward_begins, after=backward_ended)


def install_forward(table):
    table.wrap("_BaseDataParallel.forward", "self", before=forward)


def forget():
    state.in_schedule = state.pipelined = False
    memory.models.clear()


# ---- the model ------------------------------------------------------------------------------------------

def made(_, result, ddp, *args, **kwargs):
    import megatron.core
    import torch
    import torch.distributed as dist
    if not ddp.buffers + ddp.expert_parallel_buffers:
        return  # none of its parameters is trained
    state.pipelined = state.pipelined or layout.stages_of(ddp) > 1
    first = (ddp.buffers + ddp.expert_parallel_buffers)[0]
    size, device = first.param_dtype.itemsize, first.grad_data.device
    held = weakref.ref(ddp)  # a waiting description must keep no model alive
    session.memory.watch(ddp.module, lambda: memory.source_of(ddp), device.type)
    session.describe(ddp.module, lambda run: held() and layout.describe(run, held()), then=lambda: held() and watch(held()),
                     stage=1 if ddp.ddp_config.use_distributed_optimizer else 0, kind="megatron", plain_backward=True,
                     framework=f"Megatron-Core {megatron.core.__version__}, PyTorch {torch.__version__}", device=str(device),
                     config={"ddp_config": dataclasses.asdict(ddp.ddp_config)}, ranks=(dist.get_rank(), dist.get_world_size()),
                     param_bytes=size, grad_bytes=first.grad_dtype.itemsize, master_bytes=4 if size == 2 else 0)


def watch(ddp):
    """Records modules and their gates, if all ranks have the same modules."""
    if layout.alike_on_all_ranks(ddp):
        from shardscope import modules
        modules.watch(ddp.module)


# ---- micro-steps ----------------------------------------------------------------------------------------

def training():
    import torch
    return session.started and session.kind == "megatron" and torch.is_grad_enabled()


def forward_begins(*args, **kwargs):
    if training():
        state.in_schedule = True
        session.begin_micro_step()
        return True


def forward_ended(token, result, *args, **kwargs):
    """The training loss: of the last stage, divided by the number of micro-steps."""
    state.in_schedule = False
    if token:
        output = result[0][0] if isinstance(result[0], list) else result[0]
        if getattr(output, "numel", int)() == 1:
            session.loss(output)


def forward_raised(_):
    state.in_schedule = False


def forward(ddp, *args, **kwargs):
    if not state.in_schedule and training() and ddp.training and session.watches(ddp.module):
        session.begin_micro_step()


def backward_begins(*args, **kwargs):
    if training() and session.in_step:
        session.begin_phase(k.BACKWARD)
        return True


def backward_ended(begun, result, *args, **kwargs):
    if not begun:
        return
    if state.pipelined:
        session.end_phase()
    else:
        session.end_micro_step()
