"""For frameworks that name CUDA without asking whether there is one (Megatron-Core, Colossal-AI): what they put on a GPU is put
into host memory, and what they ask of `torch.cuda` has nothing to do. Of the test scripts only; the package knows nothing of it.
"""
import contextlib
import importlib.abc
import importlib.machinery
import sys
import types

import torch
from torch.overrides import TorchFunctionMode


class OnHost(TorchFunctionMode):
    """`device="cuda"` is the CPU, and a tensor's type() is that of a CUDA tensor, by which Megatron-Core decides what it may shard."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if is_cuda(kwargs.get("device")):
            kwargs["device"] = "cpu"
        if function is torch.Tensor.type and len(args) == 1 and not kwargs:
            return function(*args).replace("torch.", "torch.cuda.")
        if function is torch.Tensor.cuda:
            return args[0]
        if function is torch.Tensor.record_stream:
            return None
        if function is torch.Tensor.to and len(args) > 1 and is_cuda(args[1]):
            args = (args[0], "cpu", *args[2:])
        return function(*args, **kwargs)


def is_cuda(device):
    return device is not None and not isinstance(device, torch.dtype) and str(device).startswith("cuda")


class Stream:
    """Of work that is done by the time it has been queued."""

    def __init__(self, *_, **__):
        self.cuda_stream = 0

    def wait_stream(self, other):
        pass

    def wait_event(self, event):
        pass

    def synchronize(self):
        pass


def install():
    """From now on, for this process."""
    cuda = torch.cuda
    if cuda.Stream is Stream:
        return
    cuda.current_device = lambda: "cpu"
    cuda.Stream = Stream
    cuda.current_stream = cuda.default_stream = lambda device=None: Stream()
    cuda.stream = lambda stream: contextlib.nullcontext()
    cuda.synchronize = cuda.empty_cache = lambda *_: None
    OnHost().__enter__()


class Absent(types.ModuleType):
    """Whatever is imported from it is a class of that name with nothing in it."""
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in self.names:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return Absent(spec.name)

    def exec_module(self, module):
        pass


def stand_in_for(*names):
    """Packages that a framework imports for parts of it that are not used here."""
    sys.meta_path.append(StandIns(names))
