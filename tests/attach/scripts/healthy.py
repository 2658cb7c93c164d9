"""A training of two ranks with nothing to find: healthy.py ddp|fsdp1|fsdp2|zero0 to zero3. It computes for many times as long as it
communicates."""
import sys

import torch
import torch.distributed as dist
from torch import nn

FRAMEWORK = sys.argv[1]
WIDTH, BLOCKS, ROWS, STEPS = 192, 6, 512, 24


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.last = nn.Linear(WIDTH, 10)

    def forward(self, x, y):
        for block in self.blocks:
            x = block(x)
        return nn.functional.cross_entropy(self.last(x), y)


def batches(rank):
    """One batch again and again, so that the loss falls."""
    generator = torch.Generator().manual_seed(rank)
    rows = torch.randn(ROWS, WIDTH, generator=generator), torch.randint(10, (ROWS,), generator=generator)
    return torch.utils.data.DataLoader([rows] * STEPS, batch_size=None)


def torch_loop(model):
    dist.init_process_group("gloo")
    if FRAMEWORK == "ddp":
        # As many buckets as blocks.
        size = 4 * sum(parameter.numel() for parameter in model.parameters())
        model = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=size / BLOCKS / 2**20)
    elif FRAMEWORK == "fsdp1":
        from torch.distributed.fsdp import FullyShardedDataParallel
        from torch.distributed.fsdp.wrap import ModuleWrapPolicy
        model = FullyShardedDataParallel(model, auto_wrap_policy=ModuleWrapPolicy({Block}), device_id=torch.device("cpu"))
    else:
        from torch.distributed.fsdp import fully_shard
        for block in model.blocks:
            fully_shard(block)
        fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for x, y in batches(dist.get_rank()):
        model(x, y).backward()
        optimizer.step()
        optimizer.zero_grad()


def deepspeed_loop(model):
    import deepspeed
    deepspeed.init_distributed("gloo")
    # A bucket, and what is prefetched, is a block or a little more; a block's bias or norm is never worth a gather.
    block = sum(parameter.numel() for parameter in model.blocks[0].parameters())
    zero = {"stage": int(FRAMEWORK[-1]), "overlap_comm": True, "reduce_bucket_size": block, "allgather_bucket_size": block,
            "stage3_prefetch_bucket_size": block, "stage3_param_persistence_threshold": 4 * WIDTH}
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config={
        "train_micro_batch_size_per_gpu": ROWS, "zero_optimization": zero,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "torch_adam": True}}})
    for x, y in batches(dist.get_rank()):
        engine.backward(engine(x, y))
        engine.step()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(7)
    model = Net()
    (deepspeed_loop if FRAMEWORK.startswith("zero") else torch_loop)(model)
    dist.barrier()
    dist.destroy_process_group()


main()
