"""A loop of one's own with accelerate and FSDP2: accelerate_fsdp2.py OUT

accelerate (1.15) takes FSDP for types of devices alone, though what it then calls (torch's fully_shard) trains on CPUs as well: here
its state says that the ranks have GPUs, and its device stays the CPU. Of this script only, as cuda_on_cpu.py is of others.
"""
import hashlib
import json
import os
import sys

import parts
import torch
from accelerate import Accelerator, FullyShardedDataParallelPlugin
from accelerate.state import DistributedType, PartialState


def accelerator_of_cpus():
    PartialState(cpu=True).distributed_type = DistributedType.MULTI_GPU
    plugin = FullyShardedDataParallelPlugin(fsdp_version=2, auto_wrap_policy="transformer_based_wrap",
                                            transformer_cls_names_to_wrap=["GPT2Block"], reshard_after_forward=True)
    return Accelerator(fsdp_plugin=plugin, gradient_accumulation_steps=2)


def digest(model):
    total = hashlib.sha256()
    for param in model.parameters():
        total.update(param.to_local().detach().contiguous().view(torch.uint8).numpy().tobytes())
    return total.hexdigest()


def main():
    accelerator = accelerator_of_cpus()
    assert accelerator.is_fsdp2 and accelerator.device.type == "cpu"
    model = parts.model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, optimizer = accelerator.prepare(model, optimizer)
    tokens, data, losses, norms = parts.tokenizer(), parts.texts(), [], []
    for index in range(6):
        ids = tokens(data[2 * index + accelerator.process_index]["text"], return_tensors="pt")["input_ids"]
        with accelerator.accumulate(model):
            loss = model(input_ids=ids, labels=ids).loss
            accelerator.backward(loss)
            losses.append(loss.item().hex())
            if accelerator.sync_gradients:
                norms.append(float(accelerator.clip_grad_norm_(model.parameters(), 1.0)).hex())
            optimizer.step()
            optimizer.zero_grad()
    with open(f"{sys.argv[1]}.{os.environ['RANK']}", "w", encoding="utf-8") as file:
        json.dump({"losses": losses, "norms": norms, "weights": digest(model)}, file)
    accelerator.end_training()


if __name__ == "__main__":
    main()
