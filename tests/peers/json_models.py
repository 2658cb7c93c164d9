"""A module tree of docs/models.md as PyTorch modules, so that peers run what zero_train reads.

A module that "returns" parameters has the result (value, parameter, ...), as Megatron's layers that leave their bias
to the caller; a functional_linear uses what was returned to it, and reads the weight by attribute where nothing was.
"""
import copy
import json
import pathlib

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils import checkpoint

SAMPLES = pathlib.Path(__file__).resolve().parents[2] / "samples" / "models"
FUNCTIONAL = {"residual", "attention", "embedding_sum", "functional_linear", "conditional", "reuse"}


def is_module(node):
    named_only = node["kind"] in ("gelu", "relu") and not node.get("name")
    return node["kind"] not in FUNCTIONAL and not named_only


def sample(name):
    text = (SAMPLES / f"{name}.json").read_text()
    return json.loads("\n".join(line for line in text.splitlines() if not line.lstrip().startswith("//")))


def expand(node):
    """Copies of a repeated child are distinguished, so that one alone can be changed."""
    if "repeat" in node:
        child = node["children"][0]
        node["children"] = [{**copy.deepcopy(child), "name": str(i)} for i in range(node.pop("repeat"))]
    for child in node.get("children", []):
        expand(child)


def by_path(node, path=""):
    """{path: module node}."""
    found = {path: node} if is_module(node) else {}
    for child in node.get("children", []):
        below = ".".join(filter(None, (path, child["name"]))) if is_module(child) else path
        found.update(by_path(child, below))
    return found


def tree_of(name, definition):
    """The tree that `definition` says: {"tree": a tree or a sample's name, "set": {module path: keys to add}}."""
    tree = definition["tree"]
    tree = copy.deepcopy(sample(tree) if isinstance(tree, str) else tree)
    tree["name"] = name
    expand(tree["root"])
    modules = by_path(tree["root"])
    for path, keys in definition.get("set", {}).items():
        modules[path].update(keys)
    return tree


class Composite(nn.Module):
    """A sequential or a list: runs its nodes, functional ones in its own forward."""

    def run(self, node, x):
        kind = node["kind"]
        if is_module(node):
            child = self._modules[node["name"]]
            if kind == "list":
                return self.sequence(node["children"], x, child)
            if node.get("checkpoint"):
                return self.take(node, checkpoint.checkpoint(child, x, use_reentrant=True))
            return self.take(node, child(x))
        if kind == "residual":
            return x + self.sequence(node["children"], x)
        if kind == "embedding_sum":
            return sum(self.run(child, x) for child in node["children"])
        if kind == "relu":
            return F.relu(x)
        if kind == "gelu":
            return F.gelu(x, approximate="tanh")
        if kind == "attention":
            rows, length, width = x.shape[0], x.shape[1], x.shape[2] // 3
            q, k, v = (part.view(rows, length, node["heads"], -1).transpose(1, 2) for part in x.split(width, dim=2))
            return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(rows, length, width)
        if kind == "functional_linear":
            handed = self.shared["returned"].get(node["weight_of"])
            return F.linear(x, parameter(self.shared["root"], node["weight_of"]) if handed is None else handed)
        if kind == "conditional":
            return x if self.shared["iteration"] in node["skip_iterations"] else self.sequence(node["children"], x)
        if kind == "reuse":
            result = self.shared["root"].get_submodule(node["target"])(x)
            return result[0] if isinstance(result, tuple) else result
        raise ValueError(f"kind {kind} has no PyTorch counterpart here")

    def take(self, node, result):
        """The value of a result; the parameters returned with it are kept for the next module that reads them."""
        if not node.get("returns"):
            return result
        value, *handed = result
        self.shared["returned"].update(zip(node["returned_names"], handed))
        return value

    def sequence(self, nodes, x, holder=None):
        for node in nodes:
            x = (holder or self).run(node, x)
        return x

    def forward(self, x):
        x = self.sequence(self.node["children"], x)
        if not self.node.get("returns"):
            return x
        return (x, *(parameter(self, name) for name in self.node["returns"]))


class Root(Composite):
    def forward(self, x, target):
        self.shared["returned"].clear()
        x = super().forward(x)
        if self.shared["loss"] == "mse":
            return F.mse_loss(x, target)
        return F.cross_entropy(x.view(-1, x.shape[-1]), target.reshape(-1))


def parameter(module, path):
    owner, _, name = path.rpartition(".")
    return getattr(module.get_submodule(owner), name)


class Positions(nn.Embedding):
    def forward(self, tokens):
        return super().forward(torch.arange(tokens.shape[1]))


def with_returns(cls, names):
    """Of a layer: a class of the same name whose result has these parameters of its own beside it."""
    def forward(self, x):
        return (cls.forward(self, x), *(getattr(self, name) for name in names))
    return type(cls.__name__, (cls,), {"forward": forward})


def layer(node):
    kind = node["kind"]
    if kind == "linear":
        made = nn.Linear(node["in"], node["out"], bias=node.get("bias", True))
    elif kind == "layer_norm":
        made = nn.LayerNorm(node["width"], eps=node.get("epsilon", 1e-5))
    elif kind == "embedding":
        made = nn.Embedding(node["rows"], node["width"])
        if node.get("lookup") == "positions":
            made.__class__ = type("Embedding", (Positions,), {})
    elif kind == "gelu":
        made = nn.GELU(approximate="tanh")
    elif kind == "relu":
        made = nn.ReLU()
    else:
        raise ValueError(f"kind {kind} has no PyTorch counterpart here")
    if node.get("returns"):
        made.__class__ = with_returns(made.__class__, node["returns"])
    return made


def add_children(composite, node, path, shared):
    for child in node.get("children", []):
        if not is_module(child):
            add_children(composite, child, path, shared)
            continue
        below = ".".join(filter(None, (path, child["name"])))
        child["returned_names"] = [f"{below}.{name}" for name in child.get("returns", [])]
        made = compose(child, below, shared) if child["kind"] in ("sequential", "list") else layer(child)
        composite.add_module(child["name"], made)
        if child.get("weight_of"):
            made.weight = parameter(shared["root"], child["weight_of"])


def compose(node, path, shared, cls=Composite):
    default = "ModuleList" if node["kind"] == "list" else "Sequential"
    made = type(node.get("type", default), (cls,), {})()
    made.node = node
    made.shared = shared
    shared.setdefault("root", made)
    add_children(made, node, path, shared)
    return made


def freeze(root, node, path="", trainable=True):
    """As docs/models.md: the nearest module that says anything decides; a shared weight is what its owner says."""
    said = node.get("trainable", trainable) if is_module(node) else trainable
    inherited = trainable if isinstance(said, dict) else said
    if is_module(node):
        for name, param in root.get_submodule(path).named_parameters(recurse=False):
            if name == "weight" and node.get("weight_of"):
                continue
            param.requires_grad_(said.get(name, inherited) if isinstance(said, dict) else inherited)
    for child in node.get("children", []):
        below = ".".join(filter(None, (path, child["name"]))) if is_module(child) else path
        freeze(root, child, below, inherited)


def torch_model(tree):
    """An nn.Module of forward(input, target), the mean loss; model.shared["iteration"] is what a conditional asks."""
    tree = copy.deepcopy(tree)
    shared = {"returned": {}, "iteration": 0, "loss": tree["loss"]["kind"]}
    root = compose(tree["root"], "", shared, Root)
    freeze(root, tree["root"])
    return root
