"""Random models and settings to record DeepSpeed with: cases for record_coordinator.py and record_stage12.py.

usage: random_trees.py coordinator|stage12 FIRST COUNT CASES.json     (under the python of launch.ensure_venv)

The model "mlp_random_N" is drawn from N: a tree of containers, some with a parameter of their own and some running their
first child twice, over blocks of any width; "gpt_random_N" a GPT of any shape whose head is its own, tied or functional.
"""
import json
import pathlib
import random
import sys

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width, hidden, bias):
        super().__init__()
        self.ln = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, hidden, bias=bias), nn.Linear(hidden, width, bias=bias)

    def forward(self, x):
        return x + self.down(F.relu(self.up(self.ln(x))))


class Container(nn.Module):
    def __init__(self, draw, width, depth):
        super().__init__()
        self.own = nn.Parameter(torch.ones(width)) if draw.random() < 0.4 else None
        self.parts = nn.ModuleList(
            Block(width, draw.choice([5, 16, 90, 256]), draw.random() < 0.7) if depth == 0 or draw.random() < 0.5
            else Container(draw, width, depth - 1) for _ in range(draw.choice([1, 2, 3])))
        self.again = draw.random() < 0.25

    def forward(self, x):
        if self.own is not None:
            x = x * self.own
        for part in self.parts:
            x = part(x)
        return self.parts[0](x) if self.again else x


class Tree(nn.Module):
    def __init__(self, draw):
        super().__init__()
        width = draw.choice([3, 17, 33, 64])
        self.inp, self.body, self.out = nn.Linear(10, width), Container(draw, width, 2), nn.Linear(width, 1)

    def forward(self, x, y):
        return F.mse_loss(self.out(self.body(self.inp(x))), y)


def tree(seed):
    return Tree(random.Random(f"tree {seed}"))


def gpt_shape(seed):
    """Blocks, width, heads, vocabulary, head, and the blocks in the order in which they run."""
    draw = random.Random(f"gpt {seed}")
    blocks, heads = draw.choice([1, 2, 3]), draw.choice([1, 2, 3, 5])
    order = [draw.randrange(blocks) for _ in range(draw.choice([1, blocks, blocks + 1]))]
    return {"blocks": blocks, "width": heads * draw.choice([3, 7, 10, 13]), "heads": heads,
            "vocabulary": draw.choice([59, 61, 67]), "head": draw.choice(["own", "tied", "functional"]),
            "visit": order if draw.random() < 0.4 else list(range(blocks))}


def coordinator_settings(draw):
    limit = lambda unlimited: draw.choice([0, 1, draw.randrange(1, 2000), draw.randrange(1000, 60000), unlimited])
    settings = {"stage3_prefetch_bucket_size": limit(50_000_000), "stage3_max_live_parameters": limit(1_000_000_000),
                "stage3_max_reuse_distance": limit(1_000_000_000),
                "stage3_param_persistence_threshold": draw.choice([0, 1, 20, 64, 300, 100_000])}
    if draw.random() < 0.2:
        settings["stage3_model_persistence_threshold"] = draw.choice([0, 100, 1000, 10_000])
    return settings


def stage12_settings(draw):
    """All but contiguous_gradients off, with which DeepSpeed reduces nothing on the CPU."""
    settings = {"reduce_bucket_size": draw.choice([1, 50, 500, 3000, 20_000, 500_000]),
                "overlap_comm": draw.random() < 0.5}
    for key in ("round_robin_gradients", "reduce_scatter", "use_multi_rank_bucket_allreduce"):
        if draw.random() < 0.3:
            settings[key] = draw.random() < 0.5
    if draw.random() < 0.3:
        settings["allgather_bucket_size"] = draw.choice([1, 100, 5000])
    return settings


def case(kind, seed):
    draw = random.Random(f"case {seed}")
    common = {"model": f"{draw.choice(['mlp', 'mlp', 'gpt'])}_random_{seed}", "world": draw.choice([1, 2, 2, 3, 3, 4, 5])}
    if kind == "coordinator":
        return {"id": f"R{seed}", **common, "config": coordinator_settings(draw)}
    return {"run": seed, **common, "stage": draw.choice([1, 2]),
            "gradient_accumulation_steps": draw.choice([1, 1, 2, 3]), "config": stage12_settings(draw)}


def main():
    kind, first, count, path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    cases = [case(kind, seed) for seed in range(first, first + count)]
    pathlib.Path(path).write_text(json.dumps({"traces": cases} if kind == "coordinator" else cases))


if __name__ == "__main__":
    main()
