"""An optional helper in C++ that needs torch's ABI: exact peaks of its allocator on GPUs within each phase.

    python -m shardscope.torch_helper      # once for each version of torch, in the Python that trains

torch's own extension builder compiles it (torch.utils.cpp_extension; a C++ compiler, ninja and CUDA's headers) into the user's
cache folder. A rank never compiles: it loads what exists for exactly its torch and this source, else it does without.

| symbol | what it gives |
|---|---|
| c10::cuda::CUDACachingAllocator::attachAllocatorTraceTracker | bytes in use at every allocation and free |
"""
import ctypes
import functools
import hashlib
import os
import pathlib
import site
import sys

from shardscope import _say

SOURCE = pathlib.Path(__file__).with_name("torch_helper.cpp")
NAME = "shardscope_torch_helper"
COMMAND = "python -m shardscope.torch_helper"


def folder():
    """Of the build for this torch: a build for another torch, or of another source, is never loaded."""
    import torch
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    of_source = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]
    return pathlib.Path(cache) / "shardscope" / "torch-helper" / f"torch-{torch.__version__}-{of_source}"


@functools.cache
def peaks():
    """f(device) -> bytes by which torch's allocator has exceeded its present use since the last call; None if there is no
    helper. Counts from the first call of peaks() on, for the life of the process: torch cannot remove a tracker."""
    try:
        import torch
        if not torch.cuda.is_initialized():
            return None
        built = folder() / f"{NAME}.so"
        if not built.exists():
            _say.info(f"the peak of a phase is recorded only where it is a new one of the process; `{COMMAND}`, run once, gives all of them")
            return None
        library = ctypes.CDLL(str(built))
        error = ctypes.create_string_buffer(512)
        if not library.shardscope_count_peaks(error, ctypes.c_size_t(len(error))):
            raise RuntimeError(error.value.decode(errors="replace").splitlines()[0])
        above_now = library.shardscope_above_now
        above_now.restype = ctypes.c_int64
        return above_now
    except Exception as error:
        _say.warning(f"torch helper: {type(error).__name__}: {error}; peaks are torch's own, training is as before")
        return None


def cuda_includes():
    """Folders of CUDA's headers: of the packages that torch's wheel depends on, else of the toolkit."""
    import torch
    from torch.utils import cpp_extension
    beside = {pathlib.Path(torch.__file__).parents[1], *map(pathlib.Path, site.getsitepackages())}
    found = [path.parent for root in beside for path in root.glob("nvidia/*/include/cuda_runtime_api.h")]
    return [str(path) for path in found] or ([f"{cpp_extension.CUDA_HOME}/include"] if cpp_extension.CUDA_HOME else [])


def build():
    """Compiles the helper for this torch; returns the folder. Raises RuntimeError if that cannot be done."""
    import torch
    from torch.utils import cpp_extension
    if torch.version.cuda is None:
        raise RuntimeError(f"PyTorch {torch.__version__} is without CUDA: there is nothing to build for it")
    out = folder()
    out.mkdir(parents=True, exist_ok=True)
    # ninja is a package of Python, and its program need not be in the PATH.
    os.environ["PATH"] = f"{os.path.dirname(sys.executable)}:{os.environ.get('PATH', os.defpath)}"
    cpp_extension.load(NAME, [str(SOURCE)], build_directory=str(out), extra_include_paths=cuda_includes(), extra_cflags=["-O2"],
                       extra_ldflags=[f"-L{pathlib.Path(torch.__file__).parent / 'lib'}", "-lc10_cuda"], with_cuda=False,
                       is_python_module=False)
    return out


def main():
    try:
        print(build())
    except Exception as error:  # of a compiler: its own error, not torch's trace
        lines = [line for line in str(error).splitlines() if line.strip()]
        wrong = next((line for line in lines if "error:" in line), lines[0] if lines else "")
        sys.exit(f"shardscope: the torch helper was not built: {type(error).__name__}: {wrong}")


if __name__ == "__main__":
    main()
