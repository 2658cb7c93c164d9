"""Calls of compiled graphs are spans: as many as the script makes, in every pass and with both versions of torch.

    tests/attach/run compiled_graphs_test
"""
import collections
import unittest

import runs
from pairs import folder

STEPS = 3
# OUT BACKEND: a function of two graphs in a module of DDP, called in two micro-steps of each step and once in an evaluation, for which
# it is compiled again; checkpointed in the last micro-step.
CALLS = """
import json, sys
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.checkpoint import checkpoint

out, backend = sys.argv[1:]
torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(7)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.whole = nn.Linear(8, 8), nn.Linear(8, 8), False

    def forward(self, x):
        return checkpoint(self.both, x, use_reentrant=False) if self.whole else self.both(x)

    @torch.compile(backend=backend)
    def both(self, x):
        x = torch.relu(self.first(x))
        torch._dynamo.graph_break()
        return self.second(x).view(-1), x.sum()

net = Net()
model = nn.parallel.DistributedDataParallel(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for step in range(STEPS):
    for micro in range(2):
        net.whole = micro == 1
        rows, total = model(torch.randn(4, 8))
        (rows.sum() + total).backward()
        losses.append(total.item().hex())
    optimizer.step()
    optimizer.zero_grad()
net.whole = False
with torch.no_grad():
    losses.append(net(torch.randn(4, 8))[1].item().hex())
with open(f"{out}.{dist.get_rank()}", "w", encoding="utf-8") as file:
    json.dump([losses, [p.double().sum().item().hex() for p in net.parameters()]], file)
dist.barrier()
dist.destroy_process_group()
"""


def setUpModule():
    folder()


def spans_of_graphs(made, rank):
    """[(number, pass, begin, end)] of the calls of compiled graphs."""
    spans = []
    for span in runs.read(made).spans_of(rank, "span_begin"):
        if span["label"].startswith("compiled graph "):
            assert (span["stream"], span["open_until_ns"]) == ("compute", ""), span
            number, name = span["label"].removeprefix("compiled graph ").split(", ")
            spans.append((int(number), name, int(span["begin_ns"]), int(span["end_ns"])))
    return spans


def called(made, rank):
    """{(number, pass): calls}."""
    return collections.Counter(span[:2] for span in spans_of_graphs(made, rank))


class Calls(unittest.TestCase):
    def test_of_two_graphs_in_micro_steps_recomputations_and_an_evaluation(self):
        script = folder() / "calls.py"
        script.write_text(CALLS.replace("STEPS", str(STEPS)), encoding="utf-8")
        for torch in (None, "2.14.1"):
            with self.subTest(torch=torch):
                made, out, plain = (folder() / f"calls-{torch}{end}" for end in (".zscope", ".out", ".plain"))
                said = runs.finish(runs.start(runs.attach(made) + runs.torchrun(script, out, "aot_eager"), torch=torch))
                self.assertNotIn("is off", said)
                self.assertNotIn("this part is not recorded", said)
                runs.finish(runs.start(runs.torchrun(script, plain, "aot_eager"), torch=torch))
                self.assertEqual(runs.results(out), runs.results(plain))
                # Spans of the lane do not overlap: a recomputation comes before the call of the backward that needs it.
                self.assertEqual(runs.figures(made)["unmatched_ends"]["count"], 0)
                micro = 2 * STEPS
                for rank in range(2):
                    self.assertEqual(called(made, rank), {(graph, name): calls for graph, names in (
                        *((graph, {"forward": micro, "recompute": STEPS, "backward": micro}) for graph in (0, 1)),
                        *((graph, {"forward": 1}) for graph in (2, 3)))  # compiled again without gradients
                        for name, calls in names.items()})


if __name__ == "__main__":
    unittest.main()
