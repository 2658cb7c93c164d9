#!/usr/bin/env python3
"""Writes gpt_reference.safetensors: what PyTorch computes for a small GPT, to compare the runtime with.

    python3 -m pip install torch safetensors numpy
    python3 tests/reference/make_reference.py [OUTPUT]

The weights are rounded to fp32 first; everything after that is computed in double precision, so the file
holds the truth and a test's tolerance measures the runtime's own rounding only.

Tensors (fp32 unless said otherwise), B=3, T=16, V=61, C=24, 4 heads, 2 blocks, head tied to wte:
    transformer...            initial weights by GPT-2's names, Conv1D weights as [in,out] (as published files are)
    tokens  I32 [10,B,T+1]    one batch per step: inputs are [:, :T], targets [:, 1:]
    logits  [B,T,V]           of step 0
    grad.NAME                 gradient of step 0's mean loss; linear weights as [out,in]
    losses  F64 [10]          loss before the update of each step
    after.NAME                weights after ten AdamW steps (lr 1e-3, betas 0.9 0.999, eps 1e-8, weight decay 0.1)
"""
import math
import os
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

B, T, V, C, HEADS, BLOCKS, STEPS = 3, 16, 61, 24, 4, 2, 10


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = torch.nn.Linear(C, 3 * C)
        self.c_proj = torch.nn.Linear(C, C)

    def forward(self, x):
        def split(t):
            return t.view(t.shape[0], T, HEADS, C // HEADS).transpose(1, 2)

        q, k, v = (split(t) for t in self.c_attn(x).split(C, dim=2))
        scores = q @ k.transpose(-2, -1) / math.sqrt(C // HEADS)
        hidden = torch.triu(torch.ones(T, T, dtype=torch.bool), diagonal=1)
        out = scores.masked_fill(hidden, -math.inf).softmax(dim=-1) @ v
        return self.c_proj(out.transpose(1, 2).reshape(x.shape))


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.c_fc = torch.nn.Linear(C, 4 * C)
        self.c_proj = torch.nn.Linear(4 * C, C)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1 = torch.nn.LayerNorm(C)
        self.attn = Attention()
        self.ln_2 = torch.nn.LayerNorm(C)
        self.mlp = Mlp()

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Transformer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = torch.nn.Embedding(V, C)
        self.wpe = torch.nn.Embedding(T, C)
        self.h = torch.nn.ModuleList(Block() for _ in range(BLOCKS))
        self.ln_f = torch.nn.LayerNorm(C)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(T))
        for block in self.h:
            x = block(x)
        return self.ln_f(x)


class Gpt(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.transformer = Transformer()
        self.lm_head = torch.nn.Linear(C, V, bias=False)
        self.lm_head.weight = self.transformer.wte.weight

    def forward(self, tokens):
        return self.lm_head(self.transformer(tokens))


def initialise(model):
    """Larger than a real initialisation, and nothing left at 0 or 1, so that a mistake shows everywhere."""
    for name, p in model.named_parameters():
        scale = 0.05 if name.endswith("bias") else 0.1 if ".ln_" in name else 0.15
        values = torch.randn(p.shape, dtype=torch.float32) * scale
        if ".ln_" in name and name.endswith("weight"):
            values += 1
        p.data = values.double()


def published_layout(name, value):
    conv1d = any(name.endswith(end) for end in ("c_attn.weight", "c_proj.weight", "c_fc.weight"))
    return (value.t() if conv1d else value).float().contiguous()


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    output = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "gpt_reference.safetensors")
    torch.manual_seed(20)
    model = Gpt()
    initialise(model)
    tokens = torch.randint(0, V, (STEPS, B, T + 1))
    tensors = {name: published_layout(name, p.detach()) for name, p in model.named_parameters()}
    tensors["tokens"] = tokens.to(torch.int32)

    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.1)
    losses = []
    for step in range(STEPS):
        logits = model(tokens[step, :, :T])
        loss = F.cross_entropy(logits.reshape(-1, V), tokens[step, :, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            tensors["logits"] = logits.detach().float()
            for name, p in model.named_parameters():
                tensors["grad." + name] = p.grad.float()
        losses.append(loss.item())
        optimizer.step()
    tensors["losses"] = torch.tensor(losses, dtype=torch.float64)
    for name, p in model.named_parameters():
        tensors["after." + name] = p.detach().float()
    save_file(tensors, output, metadata={"format": "pt", "torch": torch.__version__, "config":
              f"B={B} T={T} V={V} C={C} heads={HEADS} blocks={BLOCKS}"})
    print(f"{output}: {os.path.getsize(output)} bytes, losses {losses[0]:.6f} ... {losses[-1]:.6f}")


if __name__ == "__main__":
    main()
