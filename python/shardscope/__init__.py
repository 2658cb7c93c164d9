"""Shardscope for Python: watches PyTorch training as it is.

`shardscope attach -- COMMAND` needs nothing of this in a script. In code: shardscope.attach(endpoint="tcp://HOST:PORT")
before the model is made, and shardscope.detach(). shardscope.open("run.zscope") reads a recording.
"""
__version__ = "0.1.0"


def attach(endpoint=None, detail="params", run_id=None, key_file=""):
    """Watches what this process trains from now on. `endpoint`: that of a collector (default: SHARDSCOPE_ENDPOINT);
    `detail`: steps, phases, modules, params or kernels; `run_id`: the same on every rank. Never raises for want of a
    collector: events without a collector are dropped."""
    import os

    from shardscope import _arm
    if detail not in _arm.DETAILS:
        raise ValueError(f"detail {detail!r}: use one of {', '.join(_arm.DETAILS)}")
    _arm.arm({"endpoint": endpoint or os.environ.get("SHARDSCOPE_ENDPOINT", ""), "detail": detail, "key_file": key_file,
              "run_id": run_id or os.environ.get("TORCHELASTIC_RUN_ID") or os.environ.get("MASTER_PORT") or "run"})


def detach():
    """Ends the recording of this process; its classes are as they were."""
    from shardscope import _arm
    _arm.disarm()


def open(path, check=True):  # pylint: disable=redefined-builtin
    """A recording: its figures, findings and tables (shardscope.recording.Run). `check`: verify every checksum first, which
    reads the whole file; without it what is read is verified when it is. Raises shardscope.recording.RecordingError."""
    from shardscope.recording import Run
    return Run(path, check)
