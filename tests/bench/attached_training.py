"""A DeepSpeed training whose configuration is given: attached_training.py CONFIG.json STEPS

What attached_what_if.py trains: blocks of a transformer of about 1.8 M parameters on sequences of made-up tokens, two CPU ranks.
A step is `gradient_accumulation_steps` micro-batches. Knows nothing of Shardscope.
"""
import json
import pathlib
import sys

import torch
from torch import nn

WIDTH, BLOCKS, BATCH, LENGTH, WORDS = 160, 5, 4, 96, 512


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.Sequential(*(nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True) for _ in range(BLOCKS)))
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens):
        logits = self.head(self.blocks(self.embedding(tokens[:, :-1])))
        return nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def main():
    import deepspeed
    config = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    deepspeed.init_distributed("gloo")
    torch.manual_seed(0)
    engine, *_ = deepspeed.initialize(model=Model(), config=config)
    rank = torch.distributed.get_rank()
    for micro_step in range(int(sys.argv[2]) * config["gradient_accumulation_steps"]):
        generator = torch.Generator().manual_seed(2 * micro_step + rank)
        loss = engine(torch.randint(WORDS, (BATCH, LENGTH + 1), generator=generator))
        engine.backward(loss)
        engine.step()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
