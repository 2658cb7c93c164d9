"""Numbers that the framework has in tensors: read at once on the CPU, later and without waiting on a device."""
import collections

_pending = collections.deque()  # (event, pinned copy, what to do with it)


def take(value, use):
    """use(float) for a number or a tensor of one element; now, or when a device's copy has arrived."""
    if not hasattr(value, "device"):
        if value is not None:
            use(float(value))
        return
    import torch
    tensor = value.detach()
    if hasattr(tensor, "to_local"):
        tensor = tensor.to_local()
    if tensor.numel() != 1:
        return
    if tensor.device.type == "cpu":
        use(float(tensor))
    elif tensor.device.type == "cuda" and not torch.cuda.is_current_stream_capturing():
        copy = torch.empty_like(tensor, device="cpu", pin_memory=True)
        copy.copy_(tensor, non_blocking=True)
        event = torch.cuda.Event()
        event.record()
        _pending.append((event, copy, use))
    poll()


def poll():
    while _pending and _pending[0][0].query():
        _, copy, use = _pending.popleft()
        use(float(copy))
