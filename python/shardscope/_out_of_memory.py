"""An allocation that torch's CUDA allocator refuses: how much was asked for, and what had the memory at that time.

| symbol | event |
|---|---|
| torch._C._cuda_attach_out_of_memory_observer | a warning in the recording; memory levels, allocator_state |

torch calls it before it raises, without its allocator's lock.
"""
from shardscope import _memory, _say

MIB = 1 << 20
_memory_of_run = None
_attached = False


def watch(memory):
    """Tells this Memory about failures from now on. torch cannot remove an observer: the process gets one."""
    global _memory_of_run, _attached
    import torch
    _memory_of_run = memory
    # Attaching would initialize CUDA.
    if not _attached and torch.cuda.is_initialized() and hasattr(torch._C, "_cuda_attach_out_of_memory_observer"):
        torch._C._cuda_attach_out_of_memory_observer(refused)
        _attached = True


def refused(device, size, total, free):
    """Anything that it raised would replace torch's own error."""
    memory = _memory_of_run
    if memory is None or not memory.on:
        return
    try:
        import torch
        allocated, reserved = torch.cuda.memory_allocated(device), torch.cuda.memory_reserved(device)
        _say.recorded_warning(f"out of memory on device {device}: {size / MIB:,.1f} MiB asked for; free {free / MIB:,.1f} of {total / MIB:,.1f} MiB, "
                              f"allocated by torch {allocated / MIB:,.1f}, reserved by torch and free {(reserved - allocated) / MIB:,.1f}")
        memory.sample(_memory.SUB_GROUP)
    except Exception as error:
        _say.warning(f"out of memory: the hook failed ({type(error).__name__}: {error})")
