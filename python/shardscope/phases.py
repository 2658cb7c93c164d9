"""Phases outside of training steps: generation of training text, evaluations, checkpoints.

| symbol | phase |
|---|---|
| transformers.generation.utils.GenerationMixin.generate | generation |
| trl.models.utils.unwrap_model_for_generation, from enter to exit | generation: with DeepSpeed 3 also its gathers around `generate` |
| transformers.trainer.Trainer.evaluation_loop | evaluation |
| deepspeed.runtime.engine.DeepSpeedEngine.save_checkpoint, load_checkpoint | checkpoint save, load |

A phase within another (an evaluation that generates) is part of the outer one. Inside a forward or a backward none is
recorded: those are the phases then.
"""
import contextlib
import functools

from shardscope import _core, _hooks, _kinds as k
from shardscope._hooks import Adapter
from shardscope._session import NO_ID, session

events = _core.events


class State:
    within = False

    def reset(self):
        """After detach() the end of an open phase is not seen."""
        self.within = session.within_phase = False


state = State()


def adapters():
    _hooks.at_turn_off(state.reset)
    return [Adapter("generation", "transformers.generation.utils",
                    lambda table: around(table, "GenerationMixin.generate", "self inputs", k.GENERATION)),
            Adapter("generation of TRL", "trl.models.utils", install_unwrapping),
            Adapter("evaluation", "transformers.trainer",
                    lambda table: around(table, "Trainer.evaluation_loop", "self dataloader", k.EVALUATION)),
            Adapter("checkpoints of DeepSpeed", "deepspeed.runtime.engine", install_checkpoints)]


def install_unwrapping(table):
    """Trainers import the function by its name, after its module: they get this one."""
    original, adapter = table.owner("unwrap_model_for_generation"), table.adapter
    _hooks.check_parameters("unwrap_model_for_generation", original, "model accelerator")

    @functools.wraps(original)
    @contextlib.contextmanager
    def unwrapped(*args, **kwargs):
        opened = guarded(adapter, begin, k.GENERATION)
        try:
            with original(*args, **kwargs) as model:
                yield model
        finally:
            guarded(adapter, end, opened)

    table.replace(table.module, "unwrap_model_for_generation", unwrapped)


def guarded(adapter, hook, argument):
    if not adapter.on:
        return None
    try:
        return hook(argument)
    except Exception as error:
        adapter.failed("unwrap_model_for_generation", error)
        return None


def install_checkpoints(table):
    around(table, "DeepSpeedEngine.save_checkpoint", "self save_dir", k.CHECKPOINT_SAVE)
    around(table, "DeepSpeedEngine.load_checkpoint", "self load_dir", k.CHECKPOINT_LOAD)


def around(table, symbol, parameters, phase):
    table.wrap(symbol, parameters, before=lambda *args, **kwargs: begin(phase),
               after=lambda opened, result, *args, **kwargs: end(opened), raised=end)


def begin(phase):
    """Begins a phase and returns (phase, step): the open step, or the next one for phases that prepare it, or the last
    completed one for phases that only read its weights."""
    import torch
    if not session.started or state.within:
        return None
    if session.in_micro_step and session.phase == k.BACKWARD and torch._C._current_graph_task_id() == -1:
        session.end_micro_step()  # the backward has returned
    if session.in_micro_step or session.phase is not None:
        return None
    state.within = True
    session.within_phase = True
    if phase == k.GENERATION:
        # The source of prompts: text may be generated between it and the micro-step.
        session.other_data |= session.came
    session.came = set()
    coming = session.step_trains or phase in (k.GENERATION, k.CHECKPOINT_LOAD) or session.step == 0
    opened = phase, session.step if coming else session.step - 1
    events.phase_begin(k.COMPUTE, *opened, micro_step=NO_ID)
    return opened


def end(opened):
    if opened is not None:
        state.within = session.within_phase = False
        if session.started:
            events.phase_end(k.COMPUTE, *opened, micro_step=NO_ID)
