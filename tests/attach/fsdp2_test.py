"""Options of FSDP2, checked by an independent count: resharding to fewer ranks, gradients kept unreduced, explicit prefetches, shards by columns.

    tests/attach/run fsdp2_test
"""
import collections
import unittest

import memory_test
import runs
from memory_test import PARAM_SECONDARY
from pairs import BLOCKS, TRAIN, as_double, folder

STEPS = 3
PARAMS = 6  # of a block
BLOCK_ELEMS = 2 * 32 + (32 * 128 + 128) + (128 * 32 + 32)
GATHER, REDUCE_SCATTER = 0, 1
NO_ID = "4294967295"
IN_FLIGHT, SECONDARY_HELD = 1, 8  # in a status
WORLD, GROUP = 0, 6  # scopes of collectives


def setUpModule():
    folder()


class Options(unittest.TestCase):
    """An attached run for each case, which trains as the plain one does."""

    def recording(self, *options, ranks=2):
        return runs.read(self.attached(*options, ranks=ranks)[1])

    def attached(self, *options, ranks=2):
        """(results, recording, output); made once."""
        name = "fsdp2-" + "_".join(options).replace("=", "") + f"-{ranks}"
        made, out, output = (folder() / f"{name}.{end}" for end in ("zscope", "attached", "log"))
        if not output.exists():
            runs.finish(runs.start(runs.torchrun(TRAIN, "fsdp2", f"{out}.plain", *options, ranks=ranks)))
            said = runs.finish(runs.start(runs.attach(made) + runs.torchrun(TRAIN, "fsdp2", out, *options, ranks=ranks)))
            self.assertEqual(runs.results(f"{out}.plain", ranks), runs.results(out, ranks), said[-2000:])
            self.assertNotIn("is off", said)
            self.assertNotIn("not recorded", said)
            output.write_text(said, encoding="utf-8")
        return runs.results(out, ranks), made, output.read_text(encoding="utf-8")

    def counts(self, recording, rank=0):
        """(gathers, reduce-scatters, prefetches) of groups."""
        ops = collections.Counter(int(e["code"]) for e in recording.of(rank, "collective_submitted") if e["b"] not in ("", NO_ID))
        return ops[GATHER], ops[REDUCE_SCATTER], len(recording.of(rank, "prefetch_issued"))


class Norms(Options):
    def test_the_norm_is_the_script_s(self):
        """A DTensor that is whole on every rank, and one that the script makes whole."""
        for case in (("accumulate=2",), ("spread=1",)):
            with self.subTest(case=case):
                results, made, _ = self.attached(*case)
                for rank in range(2):
                    events = runs.read(made).of(rank, "grad_norm")
                    self.assertEqual([as_double(e["v0"]) for e in events], [float.fromhex(norm) for norm in results[rank]["norms"]])
                    self.assertEqual([int(e["a"]) for e in events], list(range(STEPS)))


class ToFewerRanks(Options):
    """reshard_after_forward=2 of four ranks: a block's backward gathers from two."""

    CASE = ("reshard=2", "accumulate=2")
    MICRO = 2 * STEPS

    def test_gathers_of_the_backward_are_among_two_ranks(self):
        recording = self.recording(*self.CASE, ranks=4)
        for rank in range(4):
            self.assertEqual(self.counts(recording, rank),
                             (self.MICRO * (2 * BLOCKS + 1), self.MICRO * (BLOCKS + 1), self.MICRO * BLOCKS))
            scopes = collections.Counter(int(s["c"]) >> 8 & 0x1F for s in recording.spans_of(rank, "collective_begin")
                                         if int(s["code"]) == GATHER and s["b"] not in ("", NO_ID))
            self.assertEqual(scopes, {WORLD: self.MICRO * (BLOCKS + 1), GROUP: self.MICRO * BLOCKS})
            copied = collections.Counter(int(s["v0"]) for s in recording.spans_of(rank, "span_begin") if int(s["v0"]) > 0)
            self.assertEqual(copied[4 * BLOCK_ELEMS // 4], self.MICRO * BLOCKS, "into gathers of the forward: a shard each")
            self.assertEqual(copied[4 * BLOCK_ELEMS // 2], self.MICRO * BLOCKS, "of the backward: half a block")

    def test_parameters_leave_after_the_forward_and_after_the_backward(self):
        recording = self.recording(*self.CASE, ranks=4)
        whole = sum(int(param["elems"]) for param in recording.params)
        for rank in range(4):
            statuses = recording.of(rank, "param_status")
            held = collections.Counter(int(e["code"]) & 7 for e in statuses if int(e["code"]) & SECONDARY_HELD)
            self.assertEqual(held, {0: self.MICRO * BLOCKS * PARAMS, IN_FLIGHT: self.MICRO * BLOCKS * PARAMS})
            self.assertLess(max(int(e["v1"]) for e in statuses), whole, "never all of them, as each block is resharded")
            ends = [int(s["end_ns"]) for s in recording.spans_of(rank, "micro_step_begin")]
            self.assertEqual(len(ends), self.MICRO)
            for end in ends:
                self.assertEqual([e["v1"] for e in statuses if int(e["at_ns"]) <= end][-1], "0")

    def test_the_secondary_copy_is_counted(self):
        compared = memory_test.Memory()
        # With gradients of an earlier micro-step held the peak is in a backward whose other blocks have not come yet.
        made, levels = compared.compare("fsdp2", "reshard=2", "accumulate=2", ranks=4)
        for rank in range(4):
            self.assertEqual(memory_test.peak(runs.read(made), rank, PARAM_SECONDARY), BLOCKS * 4 * BLOCK_ELEMS // 2)
            self.assertEqual([level.get((0, PARAM_SECONDARY), 0) for level in levels[rank]], [0] * STEPS)
        model = runs.figures(made)["memory_model"]
        self.assertAlmostEqual(model["bytes_per_rank"], 4 * memory_test.PARAM_BYTES / 4, delta=1)
        parts = {part["cause"]: part["bytes"] for part in model["parts"]}
        blocks, rest = divmod(parts["secondary shards"], 4 * BLOCK_ELEMS // 2)
        self.assertEqual(rest, 0, "whole blocks are held so, each by halves")
        self.assertTrue(0 < blocks <= BLOCKS, blocks)
        # Padding is counted by elements; FSDP2 cuts by rows, of which the first ranks have one more.
        rows = 16 * sum(int(param["shard_elems"]) for param in runs.read(made).params) - model["bytes_per_rank"] - parts["padding"]
        self.assertAlmostEqual(model["unexplained_bytes"], rows, delta=8, msg=str(model))


class Offloaded(Options):
    """CPUOffloadPolicy, on a CPU: what is on the host is the framework's word, the copies have their places and bytes."""

    def shards(self, recording, rank):
        """Bytes by module's group: of this rank's shards with their padding, of fp32."""
        sizes = collections.Counter()
        for row in recording.params:
            sizes[row["name"].rpartition(".")[0].rpartition(".")[0]] += 4 * int(row["shard_elems"])
        return sizes

    def test_shards_go_to_the_device_for_each_gather_and_gradients_come_back(self):
        recording = self.recording("offload=1")
        names = {row["param"]: row["name"] for row in recording.params}
        for rank in range(2):
            shards = self.shards(recording, rank)
            gathers = collections.Counter({group: STEPS * (1 if group == "" else 2) for group in shards})
            moved = [collections.Counter(), collections.Counter()]
            for span in recording.spans_of(rank, "transfer_begin"):
                group = names[span["a"]].rpartition(".")[0].rpartition(".")[0]
                moved[int(span["code"])][group, int(span["v0"])] += 1
                self.assertEqual(span["open_until_ns"], "")
            self.assertEqual(moved[0], {(group, size): gathers[group] for group, size in shards.items()})
            # Of gradients without their padding: what this rank owns.
            owned = collections.Counter()
            for piece in recording.slices:
                if int(piece["rank"]) == rank:
                    owned[names[piece["param"]].rpartition(".")[0].rpartition(".")[0]] += 4 * int(piece["elems"])
            self.assertEqual(moved[1], {(group, size): STEPS for group, size in owned.items()})

    def test_without_offloading_nothing_is_copied(self):
        self.assertEqual(self.recording("accumulate=2").spans_of(0, "transfer_begin"), [])

    def test_model_states_are_on_the_host_as_the_expression_has_them(self):
        made, levels = memory_test.Memory().compare("fsdp2", "offload=1")
        for level in (step for of_rank in levels for step in of_rank):
            held = {(pool, category) for (pool, category), size in level.items() if size}
            states = {memory_test.PARAM_SHARD, memory_test.GRAD_SHARD, memory_test.MOMENTUM, memory_test.VARIANCE}
            self.assertEqual({category for pool, category in held if pool == 1 and category in states}, states)
            self.assertEqual({category for pool, category in held if pool == 0} & states, set())
        model = runs.figures(made)["memory_model"]
        self.assertEqual((model["bytes_per_rank"], model["unexplained_bytes"]), (0, 0), "gradients that are not reduced yet are there")
        (pool, host), = model["offloaded"].items()
        self.assertEqual(pool, "host")
        self.assertEqual(host["bytes_per_rank"], 16 * memory_test.PARAM_BYTES // 4 // 2)
        owned = collections.Counter()
        for piece in runs.read(made).slices:
            owned[piece["rank"]] += int(piece["elems"])
        self.assertEqual(host["measured_bytes_per_rank"], 16 * max(owned.values()), "whole rows: of five the first rank has three")


class Unreduced(Options):
    """set_requires_gradient_sync(False) but in the last micro-step of a step."""

    CASE = ("sync=0", "accumulate=3")

    def test_gradients_are_reduced_once_a_step(self):
        recording, micro = self.recording(*self.CASE), 3 * STEPS
        for rank in range(2):
            self.assertEqual(self.counts(recording, rank), (micro * (2 * BLOCKS + 1), STEPS * (BLOCKS + 1), micro * BLOCKS))
            flushed = collections.Counter(int(e["at_ns"]) > 0 for e in recording.of(rank, "bucket_flush"))
            self.assertEqual(flushed, {True: STEPS * (BLOCKS + 1)})
            last = [s for s in recording.spans_of(rank, "micro_step_begin") if int(s["a"]) == 2]
            for event in recording.of(rank, "bucket_flush"):
                self.assertTrue(any(int(s["begin_ns"]) <= int(event["at_ns"]) <= int(s["end_ns"]) for s in last))

    def test_it_is_said(self):
        for case, said in ((self.CASE, [True, True]), (("accumulate=2",), [False, False])):
            messages = self.recording(*case).table("messages")
            self.assertEqual([any("kept unreduced" in row["text"] for row in messages if row["rank"] == str(rank)) for rank in range(2)],
                             said)


class Explicit(Options):
    """set_modules_to_forward_prefetch and _backward_prefetch with all blocks that come: each but the first is gathered ahead in
    both passes, the root's backward prefetches the last one by itself, and no gather is made twice."""

    def test_prefetches_of_both_passes(self):
        recording = self.recording(f"ahead={BLOCKS}")
        for rank in range(2):
            gathers, reductions, prefetches = self.counts(recording, rank)
            self.assertEqual((gathers, reductions), (STEPS * (2 * BLOCKS + 1), STEPS * (BLOCKS + 1)))
            self.assertEqual(prefetches, STEPS * (2 * BLOCKS - 1))
            phases = {code: [(int(s["begin_ns"]), int(s["end_ns"])) for s in recording.spans_of(rank, "phase_begin") if int(s["code"]) == code]
                      for code in (0, 1)}
            where = collections.Counter(code for e in recording.of(rank, "prefetch_issued") for code, spans in phases.items()
                                        if any(begin <= int(e["at_ns"]) <= end for begin, end in spans))
            self.assertEqual(where, {0: STEPS * (BLOCKS - 1), 1: STEPS * BLOCKS})
            modules = {row["module"]: row["path"] for row in recording.modules}
            asked_by = collections.Counter(modules[e["b"]] for e in recording.of(rank, "prefetch_issued"))
            self.assertEqual(asked_by, {"blocks.0": STEPS * (BLOCKS - 1), "": STEPS, "blocks.2": STEPS * (BLOCKS - 1)},
                             "the first block of a pass asks for all others")
        said = {row["text"] for row in recording.table("messages")}
        self.assertTrue(any("in the forward are explicit" in text and "at blocks.0, blocks.1" in text for text in said), said)
        self.assertTrue(any("in the backward are explicit" in text and text.endswith("those at other modules are FSDP2's own")
                            for text in said), said)


class ByColumns(Options):
    """shard_placement_fn with the second dimension of matrices: slices are strided."""

    def test_slices_are_columns(self):
        recording = self.recording("dim=1")
        owned = collections.defaultdict(list)
        for piece in recording.slices:
            owned[int(piece["param"])].append(piece)
        for row in recording.params:
            shape = [int(size) for size in row["shape"].strip("[]").replace("x", ",").split(",")]
            pieces = owned[int(row["param"])]
            elements = collections.Counter()
            for piece in pieces:
                block, stride = int(piece["block_elems"]), int(piece["stride_elems"])
                first, count = int(piece["param_offset"]), int(piece["elems"])
                for at in range(count):
                    place = first + (at // block * stride + at % block if block else at)
                    elements[place] += 1
                    if len(shape) > 1:
                        columns = -(-shape[1] // 2)
                        self.assertEqual(place % shape[1] // columns, int(piece["rank"]), (row["name"], place))
            self.assertEqual(elements, {place: 1 for place in range(int(row["elems"]))}, row["name"])

    def test_gathers_are_as_many(self):
        self.assertEqual(self.counts(self.recording("dim=1")),
                         (STEPS * (2 * BLOCKS + 1), STEPS * (BLOCKS + 1), STEPS * BLOCKS))


# Modules that return the tensor of a module in them: a group's what a module in the group returned, and one around the groups,
# and the root, what a group returned.
SAME_TENSORS = """
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

class Around(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)

dist.init_process_group("gloo")
torch.manual_seed(7)
first, second = Around(nn.Linear(8, 8)), Around(nn.Linear(8, 8))
model = nn.Sequential(nn.Linear(8, 8), Around(nn.Sequential(first, second)))
for group in (first, second, model):
    fully_shard(group)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(STEPS):
    model(torch.randn(4, 8)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.barrier()
dist.destroy_process_group()
"""


class ModulesOfGroups(unittest.TestCase):
    def test_spans_are_nested_as_the_calls_are(self):
        script, made = folder() / "same_tensors.py", folder() / "same-tensors.zscope"
        script.write_text(f"STEPS = {STEPS}\n{SAME_TENSORS}", encoding="utf-8")
        said = runs.finish(runs.start(runs.attach(made) + runs.torchrun(script)))
        self.assertNotIn("is off", said)
        recording = runs.read(made)
        parent = {row["module"]: row["parent"] for row in recording.modules}
        self.assertEqual(len(parent), 8)
        for rank in range(2):
            spans = recording.spans_of(rank, "module_begin")
            self.assertEqual(collections.Counter((s["a"], s["code"]) for s in spans),
                             {(module, kind): STEPS for module in parent for kind in "01"})
            for span in spans:
                if parent[span["a"]] in parent:
                    outer = [o for o in spans if (o["a"], o["code"]) == (parent[span["a"]], span["code"])
                             and int(o["begin_ns"]) <= int(span["begin_ns"]) and int(span["end_ns"]) <= int(o["end_ns"])]
                    self.assertEqual(len(outer), 1, span)
            # A group waits for its parameters before its span begins, also where a module in it has had its gradient first.
            waits = recording.spans_of(rank, "fetch_wait_begin")
            self.assertGreater(len(waits), STEPS)
            for wait in waits:
                self.assertFalse(any(s["a"] == wait["a"] and int(s["begin_ns"]) < int(wait["begin_ns"]) < int(s["end_ns"]) for s in spans), wait)


if __name__ == "__main__":
    unittest.main()
