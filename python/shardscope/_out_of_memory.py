"""An allocation that torch's CUDA allocator refuses: how many bytes were requested, and what had the memory at that time.

| symbol | event |
|---|---|
| torch._C._cuda_attach_out_of_memory_observer | a warning in the recording; memory levels, allocator_state |

torch calls it before it raises, without its allocator's lock.
"""
from shardscope import _memory, _say

MIB = 1 << 20
MOST_RECORDED = 100  # a script may try again and again
_memory_of_run = None
_attached = False
_recorded = 0


def watch(memory):
    """Failures from now on are recorded with this Memory's levels. torch cannot remove an observer: the process gets one."""
    global _memory_of_run, _attached
    import torch
    _memory_of_run = memory
    # Attaching would initialize CUDA.
    if not _attached and torch.cuda.is_initialized() and hasattr(torch._C, "_cuda_attach_out_of_memory_observer"):
        torch._C._cuda_attach_out_of_memory_observer(refused)
        _attached = True


def refused(device, size, total, free):
    """Anything that it raised would replace torch's own error."""
    global _recorded
    memory = _memory_of_run
    if memory is None or not memory.on or _recorded == MOST_RECORDED:
        return
    _recorded += 1
    try:
        import torch
        allocated, reserved = torch.cuda.memory_allocated(device), torch.cuda.memory_reserved(device)
        _say.recorded_each_time(f"out of memory on device {device}: {size / MIB:,.1f} MiB requested; "
                                f"free {free / MIB:,.1f} of {total / MIB:,.1f} MiB, allocated by torch {allocated / MIB:,.1f}, "
                                f"reserved by torch and free {(reserved - allocated) / MIB:,.1f}"
                                + (f"; of {MOST_RECORDED} the last that is recorded" if _recorded == MOST_RECORDED else ""))
        memory.sample(_memory.SUB_GROUP)
    except Exception as error:
        _say.warning(f"out of memory: the hook failed ({type(error).__name__}: {error})")
