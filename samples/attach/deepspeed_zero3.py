"""DeepSpeed stage 3 on two CPU ranks:

    DS_ACCELERATOR=cpu shardscope attach --record zero3.zscope -- torchrun --nproc-per-node 2 samples/attach/deepspeed_zero3.py
"""
import deepspeed
import torch
from torch import nn

CONFIG = {"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2, "gradient_clipping": 1.0,
          "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
          "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 50000, "reduce_bucket_size": 50000,
                                "stage3_param_persistence_threshold": 100}}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True) for _ in range(4)]
        self.layers = nn.Sequential(nn.Embedding(256, 64), *layers, nn.Linear(64, 256))

    def forward(self, tokens):
        logits = self.layers(tokens[:, :-1])
        return nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def main():
    deepspeed.init_distributed()
    torch.manual_seed(0)
    engine, *_ = deepspeed.initialize(model=Model(), config=CONFIG)
    for micro_step in range(20):
        rank = torch.distributed.get_rank()
        tokens = torch.randint(256, (4, 33), generator=torch.Generator().manual_seed(100 * micro_step + rank))
        loss = engine(tokens.to(engine.device))
        engine.backward(loss)
        engine.step()
        if rank == 0:
            print(f"micro-step {micro_step}: loss {loss.item():.4f}")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
