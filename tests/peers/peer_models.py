"""The compared models, once as PyTorch modules and once as the module tree that zero_train reads (docs/models.md).

Names, order and numbers of modules and parameters agree on both sides, because ZeRO's decisions depend on them.
"""
import dataclasses
import json
import pathlib

SAMPLES = pathlib.Path(__file__).resolve().parents[2] / "samples" / "models"


@dataclasses.dataclass(frozen=True)
class GptShape:
    layers: int
    width: int
    heads: int
    context: int
    vocabulary: int


GOLDEN_GPT = GptShape(layers=2, width=30, heads=3, context=12, vocabulary=59)
# The model of the speed comparison.
SMALL_GPT = GptShape(layers=6, width=384, heads=6, context=256, vocabulary=256)


# By model: which formula its data has (formula_data.py, zero_train's --data golden:...).
DATA = {"mlp": "mlp", "gpt": "gpt", "gpt_tied": "gpt"}


def shape_of(job):
    """Of a job's model; None where it has only one."""
    return None if job["model"] == "mlp" else GptShape(**job["shape"])


def tree(model, shape=None):
    """The JSON text that zero_train's --model takes. gpt_tied: a gpt whose head is its token embedding."""
    if model == "mlp":
        return (SAMPLES / "mlp.json").read_text()
    linear = lambda name, i, o: {"kind": "linear", "name": name, "in": i, "out": o}
    norm = lambda name: {"kind": "layer_norm", "name": name, "width": shape.width}
    d = shape.width
    block = [
        {"kind": "residual", "children": [norm("ln1"), linear("qkv", d, 3 * d),
                                          {"kind": "attention", "heads": shape.heads}, linear("proj", d, d)]},
        {"kind": "residual", "children": [norm("ln2"), linear("fc1", d, 4 * d), {"kind": "gelu"},
                                          linear("fc2", 4 * d, d)]}]
    head = {**linear("head", d, shape.vocabulary), "bias": False}
    if model == "gpt_tied":
        head["weight_of"] = "wte.weight"
    return json.dumps({
        "name": model,
        "input": {"kind": "tokens", "vocabulary": shape.vocabulary, "context": shape.context},
        "loss": {"kind": "cross_entropy"},
        "root": {"kind": "sequential", "type": "GPT", "children": [
            {"kind": "embedding_sum", "children": [
                {"kind": "embedding", "name": "wte", "rows": shape.vocabulary, "width": d},
                {"kind": "embedding", "name": "wpe", "rows": shape.context, "width": d, "lookup": "positions"}]},
            {"kind": "list", "name": "h", "repeat": shape.layers,
             "children": [{"kind": "sequential", "type": "Block", "children": block}]},
            norm("lnf"), head]}})


def torch_model(model, shape=None):
    """An nn.Module whose forward(input, target) is the mean loss."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Blk(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln = nn.LayerNorm(64)
            self.fc1 = nn.Linear(64, 256)
            self.fc2 = nn.Linear(256, 64)

        def forward(self, x):
            return x + self.fc2(F.relu(self.fc1(self.ln(x))))

    class Mlp(nn.Module):
        def __init__(self):
            super().__init__()
            self.inp = nn.Linear(10, 64)
            self.blk = nn.ModuleList(Blk() for _ in range(3))
            self.out = nn.Linear(64, 1)

        def forward(self, x, y):
            x = self.inp(x)  # in the weights' type: reading it off a weight here would gather that weight
            for block in self.blk:
                x = block(x)
            return F.mse_loss(self.out(x).float(), y)

    class Block(nn.Module):
        def __init__(self, d, heads):
            super().__init__()
            self.heads = heads
            self.ln1 = nn.LayerNorm(d)
            self.qkv = nn.Linear(d, 3 * d)
            self.proj = nn.Linear(d, d)
            self.ln2 = nn.LayerNorm(d)
            self.fc1 = nn.Linear(d, 4 * d)
            self.fc2 = nn.Linear(4 * d, d)

        def forward(self, x):
            B, T, C = x.shape
            q, k, v = (t.view(B, T, self.heads, C // self.heads).transpose(1, 2)
                       for t in self.qkv(self.ln1(x)).split(C, dim=2))
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(mixed.transpose(1, 2).reshape(B, T, C))
            return x + self.fc2(F.gelu(self.fc1(self.ln2(x)), approximate="tanh"))

    class Gpt(nn.Module):
        def __init__(self, s, tied):
            super().__init__()
            self.wte = nn.Embedding(s.vocabulary, s.width)
            self.wpe = nn.Embedding(s.context, s.width)
            self.h = nn.ModuleList(Block(s.width, s.heads) for _ in range(s.layers))
            self.lnf = nn.LayerNorm(s.width)
            self.head = nn.Linear(s.width, s.vocabulary, bias=False)
            if tied:
                self.head.weight = self.wte.weight

        def forward(self, tokens, targets):
            x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
            for block in self.h:
                x = block(x)
            logits = self.head(self.lnf(x))
            return F.cross_entropy(logits.view(-1, logits.shape[-1]).float(), targets.reshape(-1))

    return Mlp() if model == "mlp" else Gpt(shape, tied=model == "gpt_tied")
