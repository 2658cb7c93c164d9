"""Shardscope for Python: watches PyTorch training as it is.

`shardscope attach -- COMMAND` needs nothing of this in a script. In code: shardscope.attach(endpoint="tcp://HOST:PORT")
before the model is made, or shardscope.attach(model, endpoint=...) of one that is, and shardscope.detach(). shardscope.open("run.zscope") reads a recording.
"""
__version__ = "0.1.0"


def attach(of=None, *, endpoint=None, detail="params", run_id=None, key_file=""):
    """Watches what this process trains from now on: `of`, if it is made already (a DeepSpeedEngine, a DistributedDataParallel, the
    root of fully_shard or a FullyShardedDataParallel), and what is made after. Between two steps, on every rank. `endpoint`: that of a
    collector (default: SHARDSCOPE_ENDPOINT); `detail`: steps, phases, modules, params or kernels; `run_id`: the same on every rank.
    Never raises for want of a collector: events without a collector are dropped. Raises TypeError or ValueError for an `of` that cannot be
    watched."""
    import os

    from shardscope import _arm, _attached
    if of is not None:
        _attached.check(of)
    if detail not in _arm.DETAILS:
        raise ValueError(f"detail {detail!r}: use one of {', '.join(_arm.DETAILS)}")
    _arm.arm({"endpoint": endpoint or os.environ.get("SHARDSCOPE_ENDPOINT", ""), "detail": detail, "key_file": key_file,
              "run_id": run_id or os.environ.get("TORCHELASTIC_RUN_ID") or os.environ.get("MASTER_PORT") or "run"})
    if of is not None:
        _attached.describe(of)


def detach(of=None):
    """Ends the recording of this process; its classes are as they were. `of`: what attach() was given, where that is the only model that
    is watched. Raises ValueError where it is not watched, or others are as well: a recording ends as a whole."""
    from shardscope import _arm
    if of is not None:
        from shardscope import _attached
        from shardscope._session import session
        if not session.watches(_attached.model_of(of)):
            raise ValueError(f"shardscope: {type(of).__name__} is not watched")
        if len(session.models) > 1:
            raise ValueError(f"shardscope: {len(session.models)} models are watched: detach() ends the recording of all")
    _arm.disarm()


def open(path, check=True):  # pylint: disable=redefined-builtin
    """A recording: its figures, findings and tables (shardscope.recording.Run). `check`: verify every checksum first, which
    reads the whole file; without it what is read is verified when it is. Raises shardscope.recording.RecordingError."""
    from shardscope.recording import Run
    return Run(path, check)
