"""A small training run, unmodified as a user would write it: train.py FRAMEWORK OUT [name=value ...] [-- FRAMEWORK OUT ...]

FRAMEWORK: ddp, fsdp1, fsdp2, zero0, zero1, zero2, zero3. Writes OUT.RANK: losses and gradient norms of every micro-step and step
as exact texts, and a digest of the final weights' bytes; with census=1 the bytes of all tensors after
each step; with evaluate=1 (DeepSpeed) two batches are evaluated after the second and after the third micro-step; with nvme=FOLDER (zero3)
parameters and states of the optimizer go there; with overflow=NAME (DeepSpeed) an element of that parameter's gradient is infinite in the second
micro-step on rank 0; bucket=N (DeepSpeed): elements of a bucket, at stage 0 whole_bucket=N; bucket_mb=MB and unused=1 are DDP's. fsdp2: reshard=0 keeps parameters
gathered from forward to backward, 1 reshards them, N to N ranks; sync=0 reduces gradients in a step's last micro-step only; ahead=N prefetches
the N blocks that come; dim=1 shards matrices by columns; offload=1 keeps shards on the host; spread=1 has the norm in parts on the ranks. Knows nothing of Shardscope.
"""
import functools
import gc
import hashlib
import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

WIDTH, BLOCKS, BATCH = 32, 3, 4


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self, blocks=BLOCKS, checkpoint=False, width=WIDTH):
        super().__init__()
        self.first = nn.Linear(16, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.last = nn.Linear(width, 5)
        self.checkpoint = checkpoint

    def forward(self, x, y):
        x = self.first(x)
        for block in self.blocks:
            x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False) if self.checkpoint else block(x)
        return nn.functional.cross_entropy(self.last(x).float(), y)


def batch(index, rank):
    generator = torch.Generator().manual_seed(1000 * index + rank)
    return (torch.randn(BATCH, 16, generator=generator), torch.randint(5, (BATCH,), generator=generator))


def options_of(arguments):
    options = {"steps": 3, "accumulate": 1, "reshard": 1, "dtype": "fp32", "checkpoint": 0, "offload": 0, "crash": 0,
               "loaders": 0, "sleep": 0.0, "census": 0, "replicas": 1, "groups": 0,
               "evaluate": 0, "nvme": "", "width": WIDTH, "overflow": "", "bucket": 5000, "whole_bucket": 0, "bucket_mb": 0.0, "unused": 0, "sync": 1,
               "ahead": 0, "dim": 0, "spread": 0}
    for argument in arguments:
        name, value = argument.split("=")
        options[name] = type(options[name])(value)
    return options


def loader(options, rank):
    """Batches; from worker processes where asked for."""
    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return options["steps"] * options["accumulate"]

        def __getitem__(self, index):
            time.sleep(options["sleep"])
            return batch(index, rank)

    return torch.utils.data.DataLoader(Data(), batch_size=None, num_workers=options["loaders"])


def parameters_of(model, options):
    """What the optimizer gets: with groups=1 biases and norms without weight decay and at another rate."""
    if not options["groups"]:
        return model.parameters()
    few, many = [p for p in model.parameters() if p.dim() < 2], [p for p in model.parameters() if p.dim() >= 2]
    return [{"params": few, "weight_decay": 0.0, "lr": 2e-3}, {"params": many, "weight_decay": 0.1}]


def whole(tensor):
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def spread_norm(grads, norm_type, *_):
    """A DTensor of which each rank has the norm of its own shards. PyTorch 2.15's is whole on every rank, others' need not be."""
    from torch.distributed.tensor import DTensor
    from torch.distributed.tensor._ops._math_ops import _NormPartial
    grads = list(grads)
    own = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(grad.to_local(), norm_type) for grad in grads]), norm_type)
    return DTensor.from_local(own, grads[0].device_mesh, [_NormPartial(norm_type)], run_check=False)


def digest(named):
    total = hashlib.sha256()
    for name, tensor in named:
        total.update(name.encode())
        total.update(whole(tensor.detach()).clone().contiguous().view(torch.uint8).numpy().tobytes())
    return total.hexdigest()


def census():
    """Bytes of every storage that any tensor of this process has: each counted once, whoever holds it."""
    found = {}
    for thing in gc.get_objects():
        if issubclass(type(thing), torch.Tensor):
            try:
                both = thing, thing.grad if thing.is_leaf else None
            except RuntimeError:  # a view whose base was changed in place
                both = (thing,)
            for tensor in both:
                tensor = getattr(tensor, "_local_tensor", tensor)
                if tensor is not None and tensor.layout == torch.strided:
                    storage = tensor.untyped_storage()
                    found[storage.data_ptr()] = storage.nbytes()
    return sum(found.values())


def train_torch(framework, options, rank):
    if not dist.is_initialized():
        dist.init_process_group("gloo")
    torch.manual_seed(7)
    model = Net(checkpoint=bool(options["checkpoint"]))
    if options["dtype"] == "bf16":
        model = model.bfloat16()
    if framework == "ddp":
        run = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=options["bucket_mb"] or None,
                                                  find_unused_parameters=bool(options["unused"]))
    elif framework == "fsdp1":
        from torch.distributed.fsdp import FullyShardedDataParallel
        from torch.distributed.fsdp.wrap import ModuleWrapPolicy
        run = FullyShardedDataParallel(model, auto_wrap_policy=ModuleWrapPolicy({Block}), device_id=torch.device("cpu"))
    else:
        from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard
        from torch.distributed.tensor import Shard
        mesh = None
        if options["replicas"] > 1:
            mesh = dist.device_mesh.init_device_mesh("cpu", (options["replicas"], dist.get_world_size() // options["replicas"]),
                                                     mesh_dim_names=("replicate", "shard"))
        after_forward = options["reshard"] if options["reshard"] > 1 else bool(options["reshard"])
        more = {}
        if options["dim"]:
            more["shard_placement_fn"] = lambda param: Shard(min(options["dim"], param.dim() - 1))
        if options["offload"]:
            more["offload_policy"] = CPUOffloadPolicy(pin_memory=False)
        for block in model.blocks:
            fully_shard(block, mesh=mesh, reshard_after_forward=after_forward, **more)
        # None, the default: the root stays gathered from its forward to its backward.
        run = fully_shard(model, mesh=mesh, reshard_after_forward=None if options["reshard"] else False, **more)
        for index, block in enumerate(model.blocks if options["ahead"] else ()):
            block.set_modules_to_forward_prefetch(list(model.blocks[index + 1:index + 1 + options["ahead"]]))
            block.set_modules_to_backward_prefetch(list(reversed(model.blocks[max(index - options["ahead"], 0):index])))
    optimizer = torch.optim.AdamW(run.parameters() if framework == "fsdp1" else parameters_of(model, options), lr=1e-3)
    if options["spread"]:
        nn.utils.clip_grad._get_total_norm = spread_norm
    losses, norms, micro, bytes_held = [], [], 0, []
    for x, y in loader(options, rank):
        if options["dtype"] == "bf16":
            x = x.bfloat16()
        if not options["sync"]:
            run.set_requires_gradient_sync((micro + 1) % options["accumulate"] == 0)
        loss = run(x, y)
        (loss / options["accumulate"]).backward()
        losses.append(loss.item().hex())
        micro += 1
        if options["crash"] and micro >= options["crash"]:
            raise RuntimeError("a crash on purpose")
        if micro % options["accumulate"] == 0:
            norm = run.clip_grad_norm_(1.0) if framework == "fsdp1" else nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            norms.append(float(whole(norm)).hex())
            optimizer.step()
            if options["census"]:
                del x, y, loss, norm
                bytes_held.append(census())
            optimizer.zero_grad()
    if framework == "fsdp1":
        with FullyShardedDataParallel.summon_full_params(run):
            return losses, norms, digest(run.named_parameters()), bytes_held
    return losses, norms, digest(model.named_parameters()), bytes_held


def train_deepspeed(framework, options, rank):
    import deepspeed
    deepspeed.init_distributed("gloo")
    torch.manual_seed(7)
    model = Net(checkpoint=bool(options["checkpoint"]), width=options["width"])
    zero = {"stage": int(framework[-1]), "reduce_bucket_size": options["bucket"], "stage3_prefetch_bucket_size": 6000,
            "stage3_param_persistence_threshold": 40, "allgather_bucket_size": options["bucket"]}
    if options["offload"]:
        zero["offload_optimizer"] = {"device": "cpu"}
    if options["nvme"]:
        place = {"device": "nvme", "nvme_path": options["nvme"], "buffer_count": 5}
        zero["offload_optimizer"], zero["offload_param"] = place, {**place, "buffer_count": 12, "buffer_size": 1 << 20}
    config = {"train_micro_batch_size_per_gpu": BATCH, "gradient_accumulation_steps": options["accumulate"],
              "gradient_clipping": 1.0, "zero_optimization": zero,
              "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}}}
    if options["dtype"] == "bf16":
        config["bf16"] = {"enabled": True}
    if options["dtype"] == "fp16":
        deepspeed.get_accelerator().is_fp16_supported = lambda: True  # PyTorch computes in it on any CPU
        config["fp16"] = {"enabled": True, "initial_scale_power": 4}
    engine, *_ = deepspeed.initialize(model=model, model_parameters=parameters_of(model, options), config=config)
    if framework == "zero0" and options["whole_bucket"]:
        engine.allreduce_gradients = functools.partial(engine.allreduce_gradients, bucket_size=options["whole_bucket"])
    losses, norms, micro, bytes_held = [], [], 0, []

    def overflow(gradient):
        if micro == 1 and rank == 0:
            gradient = gradient.clone()
            gradient.view(-1)[-1] = float("inf")
        return gradient

    if options["overflow"]:
        model.get_parameter(options["overflow"]).register_hook(overflow)
    for x, y in loader(options, rank):
        if options["dtype"] != "fp32":
            x = x.to(engine.module.last.weight.dtype)
        loss = engine(x, y)
        engine.backward(loss)
        engine.step()
        losses.append(loss.item().hex())
        micro += 1
        if options["evaluate"] and micro in (2, 3):
            engine.eval()
            with torch.no_grad():
                for index in range(100, 102):
                    engine(*batch(index, rank))
            engine.train()
        if options["crash"] and micro >= options["crash"]:
            raise RuntimeError("a crash on purpose")
        if micro % options["accumulate"] == 0:
            norms.append(float(engine.get_global_grad_norm() or 0).hex())
            if options["census"]:
                del x, y, loss
                bytes_held.append(census())
    with deepspeed.zero.GatheredParameters(list(model.parameters()), enabled=framework == "zero3"):
        return losses, norms, digest(model.named_parameters()), bytes_held


def runs_of(arguments):
    """Several runs of one process, one after the other: those that are not attached need no process each."""
    while arguments:
        end = arguments.index("--") if "--" in arguments else len(arguments)
        yield arguments[0], arguments[1], options_of(arguments[2:end])
        arguments = arguments[end + 1:]


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    rank = int(os.environ["RANK"])
    # The `deepspeed` launcher appends it for scripts that parse it.
    for framework, out, options in runs_of([given for given in sys.argv[1:] if not given.startswith("--local_rank=")]):
        train = train_deepspeed if framework.startswith("zero") else train_torch
        losses, norms, weights, bytes_held = train(framework, options, rank)
        with open(f"{out}.{rank}", "w", encoding="utf-8") as file:
            json.dump({"losses": losses, "norms": norms, "weights": weights, "census": bytes_held}, file)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
