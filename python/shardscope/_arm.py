"""Arms a process: only ranks, only once; the adapters wait until their frameworks' modules are imported.

A launcher is recognized by the program that it runs, not by environment variables: under `srun torchrun`, `mpirun
accelerate` or in a pod of PyTorchJob a launcher has the variables of a rank.
"""
import atexit
import json
import os
import sys

DETAILS = ("steps", "phases", "modules", "params", "kernels")
# Console scripts and modules.
LAUNCHERS = ("torchrun", "torch.distributed.run", "torch.distributed.launch", "deepspeed", "deepspeed.pt", "ds",
             "deepspeed.launcher.runner", "deepspeed.launcher.launch", "accelerate", "accelerate-launch", "accelerate.commands.launch",
             "accelerate.commands.accelerate_cli", "colossalai")
# Modules and scripts that run another program: (options that name a module, other options that take a value).
PROFILER = ("-m",), ("-o", "--outfile", "-s", "--sort")
AROUND = {"cProfile": PROFILER, "profile": PROFILER, "pdb": (("-m",), ("-c", "--command")),
          "trace": (("--module",), ("-f", "--file", "-C", "--coverdir", "--ignore-module", "--ignore-dir")),
          "coverage": (("-m", "--module"), ("--concurrency", "--context", "--data-file", "--include", "--omit", "--rcfile", "--save-signal",
                                            "--source")),
          "debugpy": (("-m",), ("--listen", "--connect", "--log-to", "--adapter-access-token", "--parent-session-pid"))}

_armed = False
_restore_exits = None  # restores sys.excepthook and sys.exit in disarm()
_watches_forks = False


def arm_from(folder):
    """Arms a rank, or a process without a launcher, with the settings that `shardscope attach` stored in `folder`; a
    launcher is not armed."""
    if _launches(sys.orig_argv):
        return
    with open(os.path.join(folder, "settings.json"), encoding="utf-8") as file:
        settings = json.load(file)
    if settings.get("nccl_plugin"):
        from shardscope import _nccl
        _nccl.offer()
    arm(settings)


def _launches(argv):
    """Whether this command line of a Python (sys.orig_argv) is a launcher's. Arguments of a script do not matter:
    `train.py --backend deepspeed` is a rank."""
    program, rest = _program(argv[1:])
    while os.path.basename(program) in AROUND:
        program, rest = _program_within(os.path.basename(program), rest)
    return os.path.basename(program) in LAUNCHERS or program.endswith(("torch/distributed/run.py", "torch/distributed/launch.py"))


def _program_within(around, arguments):
    """(script or module that this program of AROUND runs, its arguments)."""
    modules, valued = AROUND[around]
    rest = list(arguments)
    if around == "coverage" and rest:
        rest.pop(0)  # its own command: run
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if not word.startswith("-"):
            return word, rest
        if name in modules:
            return value if equals else rest.pop(0) if rest else "", rest
        if word.startswith("-m") and "-m" in modules:  # -mMODULE
            return word[2:], rest
        if around == "debugpy" and (word == "-c" or name.startswith("--configure-")):
            valued = *valued, word
        if name in valued and not equals:
            rest = rest[1:]
    return "", rest


def _program(arguments):
    """(script or module that a Python with these arguments runs, its arguments); "" for -c, or if there is none."""
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if not argument.startswith("-") or argument == "-":
            return argument, rest
        if argument == "--check-hash-based-pycs":
            rest = rest[1:]
        if argument.startswith("--"):
            continue
        for index, letter in enumerate(argument[1:], 2):  # options may be combined: -um MODULE
            if letter == "c":
                return "", rest
            if letter in "mWX":
                value = argument[index:] or (rest.pop(0) if rest else "")
                if letter == "m":
                    return value, rest
                break
    return "", rest


def arm(settings):
    global _armed, _restore_exits, _watches_forks
    if _armed:
        return
    _armed = True
    from shardscope import _hooks
    from shardscope._session import session
    settings = dict(settings)
    detail = settings.get("detail", "params")
    settings["detail"] = DETAILS.index(detail) if detail in DETAILS else 3
    session.settings = settings
    from shardscope import collectives, compiled, ddp, fsdp1, fsdp2, gpu, optimizers, phases, pipelining
    from shardscope.deepspeed import engine, not_finite, transfers, zero0, zero12, zero3
    from shardscope.colossalai import low_level
    from shardscope.megatron import buckets, optimizers as megatron_optimizers, training
    for part in (collectives, compiled, gpu, optimizers, ddp, fsdp1, fsdp2, pipelining, engine, phases, zero0, zero3, zero12, not_finite, transfers,
                 training, buckets, megatron_optimizers, low_level):
        for adapter in part.adapters():
            _hooks.watch(adapter)
    if not _watches_forks:  # for good: it cannot be unregistered
        _watches_forks = True
        os.register_at_fork(after_in_child=session.after_fork)
    atexit.register(session.finish)
    _restore_exits = _watch_exits(session)


def _watch_exits(session):
    """Records how a rank ended: the message of its exception, or sys.exit's code. A previously set excepthook still
    runs. Returns a function that restores both."""
    before, leave = sys.excepthook, sys.exit
    watching = True

    def excepthook(kind, value, trace):
        if watching:
            session.exit_code, session.exit_message = 1, f"{kind.__name__}: {value}"
        before(kind, value, trace)

    def leaving(code=None, /):
        if watching:
            session.exit_code = code if isinstance(code, int) else 0 if code is None else 1
        leave(code)

    def restore():
        nonlocal watching
        watching = False
        # A hook that the script has put around ours stays; ours then only calls the original.
        if sys.excepthook is excepthook:
            sys.excepthook = before
        if sys.exit is leaving:
            sys.exit = leave

    sys.excepthook, sys.exit = excepthook, leaving
    return restore


def disarm():
    global _armed, _restore_exits
    from shardscope import _hooks
    from shardscope._session import Session, session
    _hooks.turn_off_all()
    session.finish()
    atexit.unregister(session.finish)
    if _restore_exits is not None:
        _restore_exits()
        _restore_exits = None
    forked = session.forked
    session.reset()
    session.__dict__.update(Session().__dict__)
    session.watch_memory()
    session.forked = forked
    _hooks.forget()
    _armed = False
