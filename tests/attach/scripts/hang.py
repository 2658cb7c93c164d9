"""A training of three ranks that hangs on purpose: hang.py FRAMEWORK MODE [SECONDS]. What rank 1 does in its third
step: returns, skips (a module), branches (another module first), fewer (batches, then waits), late (likewise, and the others give
up after 6 s), dies, stops, saves (alone). HANG_DUMPS
is a folder that gets the time of that, and PyTorch's Flight Recorder dumps of the ranks that run when it has a file `dump`."""
import datetime
import os
import pathlib
import signal
import sys
import tempfile
import threading
import time

import torch
import torch.distributed as dist
from torch import nn

FRAMEWORK, MODE = sys.argv[1:3]
SECONDS = float(sys.argv[3]) if len(sys.argv) > 3 else 60
WIDTH, STEPS, ODD = 32, 4, 1


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x, odd):
        order = [0, 1, 2, 3]
        if odd and MODE == "skips":
            order = [0, 2, 3]
        if odd and MODE == "branches":
            order = [1, 0, 2, 3]
        for index in order:
            x = torch.relu(self.blocks[index](x))
        return x.square().mean()


def save_alone(model):
    """What every rank has to take part in, on this one: gathering the weights; at stage 2 DeepSpeed's save_checkpoint."""
    if FRAMEWORK == "fsdp2":
        [parameter.full_tensor() for parameter in model.parameters()]
    elif FRAMEWORK == "zero3":
        import deepspeed
        with deepspeed.zero.GatheredParameters(list(model.parameters())):
            pass
    else:
        with tempfile.TemporaryDirectory() as folder:
            model.save_checkpoint(folder)


def dump_when_asked(folder, rank):
    from torch._C import _distributed_c10d as c10d
    while not (folder / "dump").exists():
        time.sleep(0.01)
    dump = c10d._dump_fr_trace()
    part = folder / f"part-{rank}"
    part.write_bytes(dump if isinstance(dump, bytes) else dump.encode())
    part.rename(folder / "pickle" / f"trace_rank_{rank}")


def main():
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=6) if MODE == "late" else None)
    rank = dist.get_rank()
    dumps = pathlib.Path(os.environ["HANG_DUMPS"]) if "HANG_DUMPS" in os.environ else None
    if dumps:
        threading.Thread(target=dump_when_asked, args=(dumps, rank), daemon=True).start()
    model = Net()
    if FRAMEWORK == "fsdp2":
        from torch.distributed.fsdp import fully_shard
        for block in model.blocks:
            fully_shard(block)
        fully_shard(model)
        optimizer = torch.optim.AdamW(model.parameters())
        backward, update = (lambda loss: loss.backward()), lambda: (optimizer.step(), optimizer.zero_grad())  # noqa: E731
    else:
        import deepspeed
        # PyTorch's AdamW: DeepSpeed compiles its own one at its first use, which may take longer than the test waits.
        model, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config={
            "train_micro_batch_size_per_gpu": 2, "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
            "zero_optimization": {"stage": int(FRAMEWORK[-1]), "stage3_param_persistence_threshold": 0}})
        backward, update = model.backward, model.step
    for step in range(STEPS):
        odd = rank == ODD and step == 2
        if odd:
            if dumps:
                (dumps / "stopped").write_text(str(time.time()), encoding="utf-8")
            if MODE in ("returns", "fewer", "late"):
                time.sleep(0 if MODE == "returns" else SECONDS)
                break
            if MODE == "dies":
                os.kill(os.getpid(), signal.SIGKILL)
            if MODE == "stops":
                os.kill(os.getpid(), signal.SIGSTOP)
            if MODE == "saves":
                save_alone(model)
        backward(model(torch.randn(2, WIDTH), odd))
        update()
    if MODE == "returns":
        os._exit(0)  # without a word to the others


main()
