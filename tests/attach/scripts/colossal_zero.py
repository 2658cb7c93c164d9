"""A small model trained by Colossal-AI's ZeRO stage 1 or 2, as a user's script would: colossal_zero.py OUT [name=value ...]. Writes
OUT.RANK as tests/attach/train.py does, and of fp16 the loss scale of each step and whether it was skipped. models=2 trains a second
model, with an optimizer of its own, after each step of the first; what is written of each step is the first one's. split=1 gives the
optimizer a parameter that is in no model: so no module has all of them. Knows nothing of Shardscope.
"""
import contextlib
import gc
import json
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import cuda_on_cpu  # noqa: E402

cuda_on_cpu.install()
cuda_on_cpu.stand_in_for("peft", "bitsandbytes", "galore_torch")

import torch.distributed as dist  # noqa: E402
from colossalai.accelerator import set_accelerator  # noqa: E402
from colossalai.accelerator.cpu_accelerator import CpuAccelerator  # noqa: E402


class Host(CpuAccelerator):
    """The CPU by CUDA's name, which LowLevelZeroOptimizer asks for."""
    name = "cuda"

    def __init__(self):
        self._name, self._communication_backend, self._is_synchronous = "cuda", "gloo", False

    def Stream(self, *args, **kwargs):  # pylint: disable=invalid-name
        return cuda_on_cpu.Stream()

    def current_stream(self, device=None):
        return cuda_on_cpu.Stream()

    def stream(self, stream):
        return contextlib.nullcontext()

    def synchronize(self, device=None):
        pass

    def device_count(self):
        return 1


set_accelerator(Host())

from colossalai.zero.low_level import LowLevelZeroOptimizer  # noqa: E402

from train import Net, batch, census, digest, parameters_of  # noqa: E402

BUCKET = 5000  # elements
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def options_of(arguments):
    options = {"steps": 3, "accumulate": 1, "dtype": "fp32", "stage": 2, "census": 0, "scale": 0, "groups": 0, "models": 1,
               "split": 0}
    for argument in arguments:
        name, value = argument.split("=")
        options[name] = type(options[name])(value)
    return options


def optimizer_of(model, options, scaling):
    params = parameters_of(model, options)
    if options["split"]:
        params = [*params, torch.nn.Parameter(torch.zeros(8))]
    return LowLevelZeroOptimizer(torch.optim.AdamW(params, lr=1e-3), partition_grad=options["stage"] == 2, reduce_bucket_size=BUCKET,
                                 clip_grad_norm=1.0, **scaling)


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    out, options = sys.argv[1], options_of(sys.argv[2:])
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(7)
    dtype = TYPES[options["dtype"]]
    model = Net().to(dtype)
    scaling = {"initial_scale": options["scale"], "hysteresis": 1, "max_scale": 2**40} if options["scale"] else {}
    optimizer = optimizer_of(model, options, scaling)
    others = [Net().to(dtype) for _ in range(options["models"] - 1)]
    others = [(other, optimizer_of(other, options, scaling)) for other in others]
    losses, norms, scales, skipped, bytes_held = [], [], [], [], []
    for index in range(options["steps"] * options["accumulate"]):
        x, y = batch(index, rank)
        loss = model(x.to(dtype), y)
        optimizer.backward(loss / options["accumulate"])
        losses.append(loss.item().hex())
        if (index + 1) % options["accumulate"] == 0:
            mixed = optimizer.mixed_precision_mixin if options["scale"] else None
            scales += [mixed.loss_scale] if mixed else []
            optimizer.step()
            skipped += [bool(mixed.found_overflow.item())] if mixed else []
            if not (mixed and skipped[-1]):
                norms.append(float(optimizer.get_grad_norm()).hex())
            if options["census"]:
                del x, y, loss
                gc.collect()
                bytes_held.append(census())
            optimizer.zero_grad()
            for other, its_optimizer in others:
                its_optimizer.backward(other(*batch(index, rank)))
                its_optimizer.step()
                its_optimizer.zero_grad()
    with open(f"{out}.{rank}", "w", encoding="utf-8") as file:
        json.dump({"losses": losses, "norms": norms, "weights": digest(model.named_parameters()), "census": bytes_held,
                   "scales": scales, "skipped": skipped}, file)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
