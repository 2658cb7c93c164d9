#!/usr/bin/env python3
"""GPT-2 in PyTorch at its best on one GPU: torch.compile, scaled_dot_product_attention, fused AdamW, bf16 autocast over
fp32 weights, fp32 gradient clipping. Prints one line of JSON: step times and peak memory. Run by gpu_training.py.

usage: gpu_torch_peer.py --layers N --width N --heads N --context N --vocabulary N --micro-batch N --steps N --warm-up N
"""
import argparse
import json
import sys
import time


def parse(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("layers", "width", "heads", "context", "vocabulary", "micro-batch", "steps", "warm-up"):
        parser.add_argument(f"--{name}", type=int, required=True)
    return parser.parse_args(argv)


def main():
    args = parse()
    try:
        import torch
        from torch import nn
        from torch.nn import functional as F
    except ImportError as error:
        print(f"gpu_torch_peer.py: no PyTorch here ({error}); the table is made without it", file=sys.stderr)
        return 3
    if not torch.cuda.is_available():
        print("gpu_torch_peer.py: PyTorch finds no GPU", file=sys.stderr)
        return 2

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(args.width), nn.LayerNorm(args.width)
            self.qkv, self.proj = nn.Linear(args.width, 3 * args.width), nn.Linear(args.width, args.width)
            self.fc, self.out = nn.Linear(args.width, 4 * args.width), nn.Linear(4 * args.width, args.width)

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = (y.view(b, t, args.heads, c // args.heads).transpose(1, 2)
                       for y in self.qkv(self.ln_1(x)).split(c, dim=2))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
            return x + self.out(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte = nn.Embedding(args.vocabulary, args.width)
            self.wpe = nn.Embedding(args.context, args.width)
            self.h = nn.ModuleList(Block() for _ in range(args.layers))
            self.ln_f = nn.LayerNorm(args.width)

        def forward(self, tokens, target):
            x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1], device=tokens.device))
            for block in self.h:
                x = block(x)
            logits = F.linear(self.ln_f(x), self.wte.weight)
            return F.cross_entropy(logits.view(-1, args.vocabulary), target.reshape(-1))

    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    model = Gpt().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.01, fused=True)
    compiled = torch.compile(model)
    tokens = torch.randint(args.vocabulary, (args.micro_batch, args.context + 1), device="cuda")
    times = []
    for step in range(args.warm_up + args.steps):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = compiled(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()  # as a training loop that prints its loss
        torch.cuda.synchronize()
        if step >= args.warm_up:
            times.append(1e3 * (time.perf_counter() - begin))
    # In use, as our arenas count; the allocator's cache, which is more, says nothing of what is needed.
    print(json.dumps({"step_ms": times, "version": torch.__version__, "peak_bytes": torch.cuda.max_memory_allocated(),
                      "reserved_bytes": torch.cuda.max_memory_reserved()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
