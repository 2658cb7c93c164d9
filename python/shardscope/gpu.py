"""Records of the GPU (CUPTI's: kernels, copies, waits) of a run on CUDA, while the detail is `kernels`.

CUPTI serves one profiler of a process at a time. While torch's own records a device, ours leaves it:

| symbol | what happens |
|---|---|
| torch.autograd.profiler.profile._prepare_trace | CUPTI is left to torch's profiler; records of that time are missing |
| torch.autograd.profiler.profile.__exit__ | it is taken up again |
"""
from shardscope import _core, _say
from shardscope._hooks import Adapter
from shardscope._session import session

recording = []  # torch's profiles that record the device now
LEFT = "torch.profiler records the GPU: there are no records of kernels of ours meanwhile"


def adapters():
    return [Adapter("torch.profiler", "torch.autograd.profiler", install)]


def install(table):
    table.wrap("profile._prepare_trace", "self", before=profiler_begins)
    table.wrap("profile.__exit__", "self", after=profiler_ended)


def profiler_begins(profile, *_, **__):
    if profile.use_device == "cuda":
        recording.append(profile)
        suspend()


def suspend():
    """Where torch's profiler has CUPTI, ours leaves it."""
    if recording and session.gpu_recorded:
        _say.info(LEFT)
        _core.suspend_gpu()


def profiler_ended(_token, _result, profile, *_, **__):
    if profile in recording:
        recording.remove(profile)
        if session.gpu_recorded and not recording:
            _core.resume_gpu()
