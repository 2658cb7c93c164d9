"""Arming a process: ranks only, once; the adapters wait for their frameworks' modules to be imported."""
import atexit
import json
import os
import sys

DETAILS = ("steps", "phases", "modules", "params", "kernels")
_armed = False


def arm_from(folder):
    """Arms a rank with the settings that `shardscope attach` left in `folder`; a launcher stays as it is."""
    if "RANK" not in os.environ and "LOCAL_RANK" not in os.environ and "OMPI_COMM_WORLD_RANK" not in os.environ \
            and "SLURM_PROCID" not in os.environ and not _alone():
        return
    with open(os.path.join(folder, "settings.json"), encoding="utf-8") as file:
        arm(json.load(file))


def _alone():
    """No launcher: `python train.py` with one process. Launchers are known by the module that they run."""
    argv = getattr(sys, "orig_argv", sys.argv)
    launchers = ("torchrun", "deepspeed", "accelerate", "torch.distributed.run", "torch.distributed.launch",
                 "accelerate.commands.launch", "deepspeed.launcher.launch", "deepspeed.launcher.runner")
    names = {os.path.basename(argument) for argument in argv[:4]}
    return not any(name in names for name in launchers)


def arm(settings):
    global _armed
    if _armed:
        return
    _armed = True
    from shardscope import _hooks
    from shardscope._session import session
    settings = dict(settings)
    detail = settings.get("detail", "params")
    settings["detail"] = DETAILS.index(detail) if detail in DETAILS else 3
    session.settings = settings
    from shardscope import collectives, compiled, ddp, fsdp1, fsdp2, gpu, optimizers
    from shardscope.deepspeed import engine, not_finite, transfers, zero12, zero3
    from shardscope.colossalai import low_level
    from shardscope.megatron import buckets, optimizers as megatron_optimizers, training
    for part in (collectives, compiled, gpu, optimizers, ddp, fsdp1, fsdp2, engine, zero3, zero12, not_finite, transfers, training,
                 buckets, megatron_optimizers, low_level):
        for adapter in part.adapters():
            _hooks.watch(adapter)
    os.register_at_fork(after_in_child=session.after_fork)
    atexit.register(session.finish)
    _watch_exceptions(session)


def _watch_exceptions(session):
    """How a rank ended: its exception's words, or sys.exit's code. An excepthook that was set before still runs."""
    before = sys.excepthook

    def excepthook(kind, value, trace):
        session.exit_code, session.exit_message = 1, f"{kind.__name__}: {value}"
        before(kind, value, trace)

    leave = sys.exit

    def leaving(code=None, /):
        session.exit_code = code if isinstance(code, int) else 0 if code is None else 1
        leave(code)

    sys.excepthook, sys.exit = excepthook, leaving


def disarm():
    global _armed
    from shardscope import _hooks
    from shardscope._session import Session, session
    _hooks.turn_off_all()
    session.finish()
    atexit.unregister(session.finish)
    forked = session.forked
    session.reset()
    session.__dict__.update(Session().__dict__)
    session.forked = forked
    _hooks.forget()
    _armed = False
