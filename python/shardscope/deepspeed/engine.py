"""DeepSpeed's engine at any stage: the model, micro-steps, phases, steps, loss, norm, learning rate.

| symbol of runtime.engine.DeepSpeedEngine | event |
|---|---|
| __init__, after | the model: modules, parameters, slices; the run starts |
| forward, before | micro-step begin with gates `step` and `micro_step`, phase forward |
| _backward_prologue, before; _backward_epilogue, after | phase backward, also of loss.backward() without the engine |
| backward, before | loss |
| _take_model_step, before | gate `optimizer`, phase optimizer; after it the step end of a PipelineEngine, whose `step` raises |
| step, after, at the boundary | norm, learning rate, overflow, step end |
"""
import weakref

from shardscope._hooks import Adapter
from shardscope._session import NO_ID, session
from shardscope.deepspeed import layout, memory, zero3_modules, zero3_params


def adapters():
    return [Adapter("DeepSpeed's engine", "deepspeed.runtime.engine", install)]


def install(table):
    # Stage 0 and others have no prologue in older versions; then only engine.backward() is a phase.
    table.wrap("DeepSpeedEngine.__init__", "self args model", after=described)
    table.wrap("DeepSpeedEngine.forward", "self", before=forward)
    table.wrap("DeepSpeedEngine.backward", "self loss", before=backward, after=backward_done, raised=backward_raised)
    table.wrap("DeepSpeedEngine._backward_prologue", "self", before=prologue)
    table.wrap("DeepSpeedEngine._backward_epilogue", "self", after=epilogue)
    table.wrap("DeepSpeedEngine._take_model_step", "self lr_kwargs", before=optimizer, after=taken)
    table.wrap("DeepSpeedEngine.step", "self", before=at_boundary, after=stepped)


class State:
    in_backward = False  # an engine's backward is running


def backward_raised(_):
    State.in_backward = False


def described(_, result, engine, *args, **kwargs):
    import deepspeed
    import torch
    stage = int(engine.zero_optimization_stage())
    held = weakref.ref(engine)  # a waiting description must keep no engine alive
    session.memory.watch(engine.module, lambda: memory.source_of(engine), engine.device.type)
    session.describe(engine.module, lambda run: held() and layout.describe(run, held(), trained(held())), stage=stage,
                     trained=trained(engine), then=lambda: held() and described_now(held(), stage),
                     kind={0: "zero0", 3: "zero3"}.get(stage, "zero12"),
                     framework=f"DeepSpeed {deepspeed.__version__}, PyTorch {torch.__version__}",
                     device=str(engine.device), config=config_of(engine), **layout.bytes_of(engine))


def described_now(engine, stage):
    zero3_params.after_description(engine)
    if stage < 3 and layout.stages_of(engine) < 2:
        from shardscope import modules
        modules.watch(engine.module)


def trained(engine):
    """An engine for inference only (a reference) has no optimizer; at stage 3 a parameter gatherer is in its place."""
    return engine.optimizer is not None and type(engine.optimizer).__name__ != "DeepSpeedZeRoOffload"


def config_of(engine):
    """The user's configuration with DeepSpeed's final batch sizes. `compat` selects DeepSpeed's own behaviour for the
    expected figures, which differs from the papers' in some points."""
    given = engine.config if isinstance(engine.config, dict) else getattr(engine._config, "_param_dict", None) or {}
    return {"shardscope": {"compat": "deepspeed"}, **given,
            "gradient_accumulation_steps": engine.gradient_accumulation_steps(),
            "train_micro_batch_size_per_gpu": engine.train_micro_batch_size_per_gpu()}


def is_ours(engine):
    return session.watches(engine.module)


def forward(engine, *args, **kwargs):
    import torch
    if not is_ours(engine):
        return
    if zero3_params.Late.came:
        layout.add_late(engine)
    if torch.is_grad_enabled() and engine.training:
        session.begin_micro_step()


def backward(engine, loss=None, *args, **kwargs):
    State.in_backward = True
    if is_ours(engine):
        session.loss(loss)
        session.begin_backward()


def backward_done(_, result, engine, *args, **kwargs):
    State.in_backward = False
    if is_ours(engine):
        zero3_modules.emit_counters()
        backward_of_micro_step_ended(engine)


def backward_of_micro_step_ended(engine):
    """Stages of a pipeline run forwards ahead of backwards: there a micro-step lasts from one forward to the next."""
    if layout.is_pipeline(engine):
        session.end_phase()
    else:
        session.end_micro_step()


def prologue(engine):
    if is_ours(engine):
        # The first stages of a pipeline do not call the engine's backward, and their backwards have no epilogue.
        if layout.is_pipeline(engine) and not State.in_backward:
            session.end_phase()
        session.begin_backward()


def epilogue(_, result, engine):
    if is_ours(engine) and not getattr(engine, "_running_engine_backward", False):
        zero3_modules.emit_counters()
        backward_of_micro_step_ended(engine)


def optimizer(engine, *args, **kwargs):
    if is_ours(engine):
        session.begin_optimizer()
        return at_boundary(engine) if layout.is_pipeline(engine) else None


def taken(token, result, engine, *args, **kwargs):
    if token is not None:
        stepped((True, *token[1:]), result, engine)


def at_boundary(engine, *args, **kwargs):
    return is_ours(engine) and engine.is_gradient_accumulation_boundary(), engine.skipped_steps, scale_of(engine)


def scale_of(engine):
    """(loss scale, further overflows before it is lowered) of fp16; None: no loss scaling."""
    optimizer = engine.optimizer
    scale = getattr(optimizer, "loss_scale", None)
    if scale is None or not getattr(engine, "fp16_enabled", lambda: False)():
        return None
    hysteresis = getattr(getattr(optimizer, "loss_scaler", None), "cur_hysteresis", NO_ID)
    return scale, hysteresis


def stepped(token, result, engine, *args, **kwargs):
    boundary, skipped_before, before = token or (False, 0, None)
    if not boundary or not session.in_step:
        return
    norm = engine.get_global_grad_norm()
    skipped = engine.skipped_steps > skipped_before
    if norm is not None and not skipped:
        session.grad_norm(norm)
    rates = engine.get_lr()
    if rates:
        session.learning_rate(rates[0])
    if getattr(engine, "fp16_enabled", lambda: False)():
        session.overflow(skipped)
        if before is not None:
            session.loss_scale(*before)
    session.end_step(skipped)
