"""Records of the GPU (by CUPTI: kernels, copies, waits) for runs on CUDA while the detail level is `kernels`.

CUPTI serves one profiler per process. While torch's profiler records a device, ours releases CUPTI:

| symbol | what happens |
|---|---|
| torch.autograd.profiler.profile._prepare_trace | CUPTI is released to torch's profiler; records of that time are missing |
| torch.autograd.profiler.profile.__exit__ | CUPTI is acquired again |
| torch.profiler._cuspy.core.Cuspy._ensure_subscribed | the same for its other backend, whose profile has no device: released |
| torch.profiler._cuspy.core.Cuspy._release_subscriber_if_idle | acquired again |
"""
from shardscope import _core, _say
from shardscope._hooks import Adapter
from shardscope._session import session

recording = []  # torch's profiles and subscribers that currently record the device
LEFT = "torch.profiler records the GPU: there are no records of kernels of ours meanwhile"


def adapters():
    return [Adapter("torch.profiler", "torch.autograd.profiler", install),
            Adapter("torch.profiler, cuspy", "torch.profiler._cuspy.core", install_cuspy)]


def install(table):
    table.wrap("profile._prepare_trace", "self", before=profiler_begins)
    table.wrap("profile.__exit__", "self", after=profiler_ended)


def install_cuspy(table):
    table.wrap("Cuspy._ensure_subscribed", "self", before=subscribes, after=subscribed, raised=not_subscribed)
    table.wrap("Cuspy._release_subscriber_if_idle", "self", after=subscribed)


def pci_bus_id(properties):
    """Of torch.cuda.get_device_properties(): "0000:17:00.0"."""
    return f"{properties.pci_domain_id:04x}:{properties.pci_bus_id:02x}:{properties.pci_device_id:02x}.0"


def profiler_begins(profile, *_, **__):
    if profile.use_device == "cuda":
        begin(profile)


def subscribes(cuspy):
    if cuspy._subscriber is None:
        begin(cuspy)
    return cuspy


def subscribed(_token, _result, cuspy):
    if cuspy._subscriber is None:
        end(cuspy)


def not_subscribed(cuspy):
    end(cuspy)


def begin(recorder):
    if recorder not in recording:
        recording.append(recorder)
    suspend()


def suspend():
    """Releases CUPTI if torch's profiler needs it."""
    if recording and session.gpu_recorded:
        _say.info(LEFT)
        _core.suspend_gpu()


def profiler_ended(_token, _result, profile, *_, **__):
    end(profile)


def end(recorder):
    if recorder in recording:
        recording.remove(recorder)
        if session.gpu_recorded and not recording:
            _core.resume_gpu()
