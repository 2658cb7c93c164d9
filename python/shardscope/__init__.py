"""Shardscope for Python: records PyTorch training without changes to the training code.

`shardscope attach -- COMMAND` needs no change of the script. In code: shardscope.attach(endpoint="tcp://HOST:PORT")
before the model is made, or shardscope.attach(model, endpoint=...) afterwards; shardscope.detach() ends the recording.
shardscope.counter("reward", 0.7) records a value of your own. shardscope.open("run.zscope") opens a recording.
"""
__version__ = "0.1.0"


def attach(of=None, *, endpoint=None, detail="params", run_id=None, key_file=""):
    """Records the training of this process from now on: the existing model `of` (a DeepSpeedEngine, a
    DistributedDataParallel, the root of fully_shard or a FullyShardedDataParallel), and models that are made later.
    Call it between two steps, on every rank.

    `endpoint`: the collector's (default: SHARDSCOPE_ENDPOINT). `detail`: steps, phases, modules, params or kernels.
    `run_id`: equal on all ranks (default: torchrun's). `key_file`: publishing key; empty: the file that SHARDSCOPE_KEY
    names, else the key that a collector on this machine has published.

    Does not raise if there is no collector: events are dropped then. Raises TypeError or ValueError if `of` cannot be
    recorded."""
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
    """Ends the recording of this process and restores the wrapped classes. `of`: the model given to attach(), if it
    is the only recorded one. Raises ValueError if it is not recorded, or if other models are too."""
    from shardscope import _arm
    if of is not None:
        from shardscope import _attached
        from shardscope._session import session
        if not session.watches(_attached.model_of(of)):
            raise ValueError(f"shardscope: {type(of).__name__} is not watched")
        if len(session.models) > 1:
            raise ValueError(f"shardscope: {len(session.models)} models are watched: detach() ends the recording of all")
    _arm.disarm()


def counter(name, value, unit="", accumulated=False):
    """Records a value of a counter of your own, such as a queue's length or a reward: a curve in the window's timeline,
    a counter in exports. `value` is a float and holds until the next one. `accumulated`: it only grows (bytes sent,
    joules), and its rate per second is shown. Costs about 1 us; does nothing while nothing is recorded, or below detail
    `phases`."""
    import sys
    attached = sys.modules.get("shardscope._session")
    if attached is not None:
        attached.session.counter(name, float(value), unit, accumulated)


def open(path, check=True):  # pylint: disable=redefined-builtin
    """Opens a recording and returns a shardscope.recording.Run: its figures, findings and tables. `check`: verify all
    checksums first, which reads the whole file; otherwise each part is verified when it is read. Raises
    shardscope.recording.RecordingError."""
    from shardscope.recording import Run
    return Run(path, check)
