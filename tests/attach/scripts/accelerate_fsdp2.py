"""A loop of one's own with accelerate and FSDP2: accelerate_fsdp2.py OUT

accelerate (1.15) takes FSDP for types of devices alone, though what it then calls (torch's fully_shard) trains on CPUs as well: here
its state says that the ranks have GPUs, and its device stays the CPU. Of this script only, as cuda_on_cpu.py is of others.
"""
import accelerate_loop
from accelerate import Accelerator, FullyShardedDataParallelPlugin
from accelerate.state import DistributedType, PartialState


def accelerator_of_cpus():
    PartialState(cpu=True).distributed_type = DistributedType.MULTI_GPU
    plugin = FullyShardedDataParallelPlugin(fsdp_version=2, auto_wrap_policy="transformer_based_wrap",
                                            transformer_cls_names_to_wrap=["GPT2Block"], reshard_after_forward=True)
    return Accelerator(fsdp_plugin=plugin, gradient_accumulation_steps=2)


def main():
    accelerator = accelerator_of_cpus()
    assert accelerator.is_fsdp2 and accelerator.device.type == "cpu"
    accelerate_loop.train(accelerator)


if __name__ == "__main__":
    main()
