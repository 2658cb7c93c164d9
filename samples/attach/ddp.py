"""DistributedDataParallel on two CPU ranks: shardscope attach --record ddp.zscope -- torchrun --nproc-per-node 2 samples/attach/ddp.py"""
import torch
import torch.distributed as dist
from torch import nn


def main():
    dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
    torch.manual_seed(0)
    layers = [nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True) for _ in range(4)]
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Embedding(256, 64), *layers, nn.Linear(64, 256)), bucket_cap_mb=0.2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(20):
        tokens = torch.randint(256, (4, 33), generator=torch.Generator().manual_seed(100 * step + dist.get_rank()))
        logits = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if dist.get_rank() == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
