"""A loop of one's own that has all settings from `accelerate launch --use_fsdp ...` or `--use_deepspeed ...`: accelerate_launched.py OUT"""
import os

import accelerate_loop
from accelerate import Accelerator
from accelerate.state import DistributedType, PartialState


def main():
    fsdp = "ACCELERATE_USE_FSDP" in os.environ
    state = PartialState(cpu=True)  # without a device accelerate would find one rank
    if fsdp:  # which it takes for types of devices alone: accelerate_fsdp2.py
        state.distributed_type = DistributedType.MULTI_GPU
    accelerator = Accelerator(gradient_accumulation_steps=2)
    assert accelerator.is_fsdp2 if fsdp else accelerator.distributed_type == DistributedType.DEEPSPEED
    assert accelerator.device.type == "cpu"
    if not fsdp:  # which accelerate has from a DataLoader; the loop has none
        accelerator.state.deepspeed_plugin.deepspeed_config["train_micro_batch_size_per_gpu"] = 1
    accelerate_loop.train(accelerator)


if __name__ == "__main__":
    main()
