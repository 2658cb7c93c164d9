"""Numbers in tensors: read at once on the CPU, on a device copied asynchronously and read later."""
import collections

_pending = collections.deque()  # (event, pinned copy, callback)


def take(value, use):
    """Calls use(float) for a number or a one-element tensor: at once, or when the copy from the device has arrived."""
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
