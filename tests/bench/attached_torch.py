"""A training by FSDP2 or DistributedDataParallel whose settings are given: attached_torch.py SETTINGS.json STEPS

What attached_what_if.py trains with them: the model of attached_training.py. SETTINGS has "framework", and arguments and calls of
fully_shard or DistributedDataParallel by name; what is absent is the default. With FSDP2 each block and the root is a group. Knows
nothing of Shardscope.
"""
import contextlib
import json
import pathlib
import sys

import torch
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from attached_training import BATCH, LENGTH, WORDS, Model


def prefetch(blocks, ahead, name):
    """At each block the next ones of the pass are prefetched, by FSDPModule.set_modules_to_{forward,backward}_prefetch."""
    for at, block in enumerate(blocks):
        getattr(block, name)(blocks[at + 1:at + 1 + ahead])


def sharded(model, settings):
    reshard = settings.get("reshard_after_forward", True)
    for block in model.blocks:
        fully_shard(block, reshard_after_forward=reshard)
    fully_shard(model, **{"reshard_after_forward": settings[key] for key in ("root_reshard_after_forward",) if key in settings})
    ahead, back = settings.get("groups_to_forward_prefetch", 0), settings.get("groups_to_backward_prefetch", 1)
    if ahead:
        prefetch([model, *model.blocks], ahead, "set_modules_to_forward_prefetch")
    if back > 1:
        prefetch([model, *reversed(model.blocks)], back, "set_modules_to_backward_prefetch")
    return model


def main():
    settings = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    torch.distributed.init_process_group("gloo")
    torch.manual_seed(0)
    ddp = settings["framework"] == "DDP"
    run = DistributedDataParallel(Model(), bucket_cap_mb=settings.get("bucket_cap_mb")) if ddp else sharded(Model(), settings)
    optimizer = torch.optim.AdamW(run.parameters(), lr=1e-3)
    once = settings.get("reduce_in_last_micro_step_only", ddp)  # as scripts of DDP that accumulate usually do
    rank, micro_steps = torch.distributed.get_rank(), settings.get("gradient_accumulation_steps", 1)
    for micro_step in range(int(sys.argv[2]) * micro_steps):
        last = (micro_step + 1) % micro_steps == 0
        if once and not ddp:
            run.set_requires_gradient_sync(last)
        generator = torch.Generator().manual_seed(2 * micro_step + rank)
        with run.no_sync() if ddp and once and not last else contextlib.nullcontext():
            run(torch.randint(WORDS, (BATCH, LENGTH + 1), generator=generator)).backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
