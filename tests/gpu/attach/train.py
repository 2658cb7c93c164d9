"""A training run on a GPU, unmodified as a user would write it: train.py FRAMEWORK OUT [name=value ...]

FRAMEWORK: ddp, fsdp2, zero2, zero3. Writes OUT.RANK: losses and gradient norms as exact texts, a digest of the final weights,
what torch's allocator holds when the optimizer has made its step, how often a step made the host wait for the device (torch's own count), and with
profile=1 how many kernels of each name torch.profiler saw in the last step but one. Knows nothing of Shardscope.
"""
import collections
import hashlib
import json
import os
import sys
import time
import warnings

import torch
import torch.distributed as dist
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self, width, blocks):
        super().__init__()
        self.first = nn.Linear(64, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.last = nn.Linear(width, 16)

    def forward(self, x, y):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return nn.functional.cross_entropy(self.last(x).float(), y)


def options_of(arguments):
    options = {"steps": 5, "width": 512, "blocks": 6, "rows": 2048, "backend": "nccl", "profile": 0, "dtype": "fp32"}
    for argument in arguments:
        name, value = argument.split("=")
        options[name] = type(options[name])(value)
    return options


def whole(tensor):
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def digest(named):
    total = hashlib.sha256()
    for name, tensor in named:
        total.update(name.encode())
        total.update(whole(tensor.detach()).clone().contiguous().view(torch.uint8).cpu().numpy().tobytes())
    return total.hexdigest()


class Waits:
    """How often the host was made to wait, by torch's own warnings."""

    def __init__(self):
        self.count = 0

    def __enter__(self):
        self.caught = warnings.catch_warnings(record=True)
        self.seen = self.caught.__enter__()
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        return self

    def __exit__(self, *error):
        torch.cuda.set_sync_debug_mode("default")
        self.count = sum("synchroniz" in str(each.message) for each in self.seen)
        self.caught.__exit__(*error)


def kernels_of(profile):
    found = collections.Counter()
    for event in profile.events():
        if event.device_type == torch.autograd.DeviceType.CUDA and not event.name.startswith(("Memcpy", "Memset")):
            found[event.name] += 1
    return found


def train(options, rank, step_of, result):
    generator = torch.Generator().manual_seed(1000 + rank)
    batches = [(torch.randn(options["rows"], 64, generator=generator).cuda(),
                torch.randint(16, (options["rows"],), generator=generator).cuda()) for _ in range(options["steps"])]
    if options["dtype"] != "fp32":
        batches = [(x.bfloat16() if options["dtype"] == "bf16" else x.half(), y) for x, y in batches]
    for index, (x, y) in enumerate(batches):
        torch.cuda.synchronize()
        began = time.monotonic()
        if options["profile"] and index + 2 == options["steps"]:
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
                loss, norm = step_of(x, y)
                torch.cuda.synchronize()
            result["kernels"] = kernels_of(profile)
        else:
            with Waits() as waits:
                loss, norm = step_of(x, y)
            result["waits"].append(waits.count)
        torch.cuda.synchronize()
        result["seconds"].append(time.monotonic() - began)
        result["losses"].append(loss.item().hex())
        result["norms"].append(float(whole(norm)).hex() if norm is not None else "")


def run_torch(framework, options, rank, result):
    dist.init_process_group(options["backend"])
    torch.manual_seed(7)
    model = Net(options["width"], options["blocks"]).cuda()
    if options["dtype"] == "bf16":
        model = model.bfloat16()
    if framework == "ddp":
        run = nn.parallel.DistributedDataParallel(model)
    else:
        from torch.distributed.fsdp import fully_shard
        mesh = dist.device_mesh.init_device_mesh("cuda", (dist.get_world_size(),))
        for block in model.blocks:
            fully_shard(block, mesh=mesh)
        run = fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step(x, y):
        loss = run(x, y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        result["allocated"].append(torch.cuda.memory_allocated())
        optimizer.zero_grad()
        return loss.detach(), norm.detach()

    train(options, rank, step, result)
    result["weights"] = digest(model.named_parameters())


def run_deepspeed(framework, options, rank, result):
    import deepspeed
    deepspeed.init_distributed(options["backend"])
    torch.manual_seed(7)
    model = Net(options["width"], options["blocks"])
    config = {"train_micro_batch_size_per_gpu": options["rows"], "gradient_clipping": 1.0,
              "zero_optimization": {"stage": int(framework[-1]), "reduce_bucket_size": 3_000_000,
                                    "stage3_prefetch_bucket_size": 3_000_000, "stage3_param_persistence_threshold": 1000},
              "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}}}
    if options["dtype"] != "fp32":
        config[options["dtype"]] = {"enabled": True}
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)

    def step(x, y):
        loss = engine(x, y)
        engine.backward(loss)
        engine.step()
        result["allocated"].append(torch.cuda.memory_allocated())
        return loss.detach(), engine.get_global_grad_norm()

    train(options, rank, step, result)
    with deepspeed.zero.GatheredParameters(list(model.parameters()), enabled=framework == "zero3"):
        result["weights"] = digest(model.named_parameters())


def main():
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.cuda.set_device(0)
    rank = int(os.environ["RANK"])
    framework, out, *rest = [given for given in sys.argv[1:] if not given.startswith("--local_rank=")]
    options = options_of(rest)
    result = {"losses": [], "norms": [], "allocated": [], "waits": [], "seconds": [], "kernels": {}}
    (run_deepspeed if framework.startswith("zero") else run_torch)(framework, options, rank, result)
    with open(f"{out}.{rank}", "w", encoding="utf-8") as file:
        json.dump(result, file)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
