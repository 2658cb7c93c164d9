"""Memory of attached runs: what is counted by category is what the process holds, by an own look at all of its tensors.

    tests/attach/run memory_test
"""
import collections
import unittest

import runs
from pairs import TRAIN, folder, slow

(PARAM_SHARD, PARAM_GATHERED, PARAM_SECONDARY, GRAD_FULL, GRAD_SHARD, MASTER_WEIGHT, MOMENTUM, VARIANCE, REDUCE_BUCKET,
 GATHER_BUFFER, SWAP_BUFFER, QUANTIZATION, ACTIVATION, INPUT, TEMPORARY, OTHER) = range(16)
ELEMS = 25957  # of tests/attach/train.py's model
PARAM_BYTES = 4 * ELEMS  # fp32
# Tensors that no category has: a norm, a flag of overflow, an empty buffer. Bytes.
UNCOUNTED = 256


def setUpModule():
    folder()


FROZEN_ENDS = """
from shardscope import _core
class Param:
    grad = None
params = [Param() for _ in range(5)]  # the first, the middle and the last are frozen
held = _core.HeldTensors(params, "grad")
patterns = [held.pattern(True)]
params[1].grad = params[3].grad = object()
patterns.append(held.pattern(True))
params[1].grad = None
patterns.append(held.pattern(True))
params[3].grad = None
patterns.append(held.pattern(True))
print(patterns == [None, bytes([0, 1, 0, 1, 0]), bytes([0, 0, 0, 1, 0]), None])
"""
# As DeepSpeed 3 has them: no gradient is there at any sample. After a while three parameters are looked at, until there is one, and
# all after sixteen times.
NEVER_THERE = """
from shardscope import _core
class Param:
    looked_at, value = 0, None
    @property
    def grad(self):
        Param.looked_at += 1
        return self.value
params = [Param() for _ in range(9)]
held = _core.HeldTensors(params, "grad")
counts = []
for look in range(100):
    Param.looked_at = 0
    assert held.pattern(True) is None
    counts.append(Param.looked_at)
held.pattern(False)
params[8].value = object()
at_an_end = held.pattern(True)
params[8].value = None
params[1].value = object()
print(counts == 64 * [9] + 2 * (16 * [3] + [9]) + 2 * [3] and at_an_end == bytes(8 * [0] + [1]) and held.pattern(False) == bytes([0, 1] + 7 * [0]))
"""
# Gradients that come and go together: after eight such looks three are looked at, and all after sixteen changes, which finds one
# that has stayed away.
TOGETHER = """
from shardscope import _core
class Param:
    looked_at, value = 0, None
    @property
    def grad(self):
        Param.looked_at += 1
        return self.value
params = [Param() for _ in range(9)]
held = _core.HeldTensors(params, "grad")
def look(there):
    for param, each in zip(params, there):
        param.value = object() if each else None
    Param.looked_at = 0
    return held.pattern(True), Param.looked_at
looks = [look(9 * [turn % 2 == 0]) for turn in range(64)]
assert [found for found, _ in looks] == 32 * [bytes(9 * [1]), None], looks
counts = [count for _, count in looks]
without = 3 * [True] + [False] + 5 * [True]
late = [(look(without)[0], look(9 * [False])[0])[0] for _ in range(17)]
print(counts[18:].count(3) >= 40, max(counts) == 12, bytes(without) in late, late[0] == bytes(9 * [1]), look(without)[0] == bytes(without))
"""
# The script frees the gradients of all but the first, the middle and the last parameter: those three stay as they are.
STAY = """
from shardscope import _core
class Param:
    grad = None
params = [Param() for _ in range(9)]
held = _core.HeldTensors(params, "grad")
def look(there):
    for param, each in zip(params, there):
        param.grad = object() if each else None
    return held.pattern(True)
few = [place in (0, 4, 8) for place in range(9)]
once = [look(there) for there in [9 * [True]] + 40 * [few]]
turns = [look(there) for there in 20 * [9 * [True], few]]
print(once[1] == bytes(9 * [1]), once.index(bytes(few)) <= 17, set(once[17:]) == {bytes(few)}, set(turns) == {bytes(9 * [1]), bytes(few)})
"""
# Slots of nine groups, emptied together by something without a hook; then all but one that is not looked at first.
ALIKE = """
from shardscope import _core
class Storage:
    def nbytes(self):
        return 8
class Tensor:
    looked_at = 0
    def untyped_storage(self):
        return Storage()
class Owner:
    grad = None
    def __getattribute__(self, name):
        Tensor.looked_at += name == "grad"
        return object.__getattribute__(self, name)
owners = [Owner() for _ in range(9)]
switch = _core.Switch()
slots = _core.Slots([_core.Slot(4, True, _core.HeldTensors([owner], "grad"), alike=True) for owner in owners], print, switch, print)
def look(there):
    for owner, each in zip(owners, there):
        owner.grad = Tensor() if each else None
    Tensor.looked_at = 0
    slots.refresh()
    return slots.with_fixed({(0, 4): 1, (1, 2): 5}), Tensor.looked_at
full, few = look(9 * [True]), look(9 * [True])
empty = look(9 * [False])
for _ in range(30):
    look(9 * [False])
late = [look([False] + [True] + 7 * [False])[0][0, 4] for _ in range(17)]
print(full[0] == {(0, 4): 73, (1, 2): 5}, few[1] < full[1] / 2, empty[0] == {(0, 4): 1, (1, 2): 5}, 9 in late)
"""
# Slots of three models. Of all groups together the first, the middle and the last are in two of them; the other one's are emptied.
MODELS = """
from shardscope import _core
class Storage:
    def nbytes(self):
        return 8
class Tensor:
    def untyped_storage(self):
        return Storage()
class Owner:
    grad = None
switch = _core.Switch()
models = [[Owner() for _ in range(groups)] for groups in (9, 4, 20)]
slots = _core.Slots([_core.Slot(4, True, _core.HeldTensors([owner], "grad"), alike=owners) for owners in models for owner in owners],
                    print, switch, print)
def look(*there):
    for owners, each in zip(models, there):
        for owner in owners:
            owner.grad = Tensor() if each else None
    slots.refresh()
    return slots.with_fixed({})[0, 4] // 8
print(look(True, True, True), [look(*(model != empty for model in range(3))) for empty in range(3)], look(True, True, True))
"""


# A device that there is not, of 80 GiB: its driver has 10 in use, 4 of them the allocator's. `wait` is what must not be done.
DEVICE_FIGURES = """
import sys
import torch
import torch.distributed as dist
from shardscope import _memory
GIB = 1 << 30
def wait(*_):
    raise AssertionError("the device was waited for")
torch.cuda.synchronize = wait
torch.cuda.is_current_stream_capturing = lambda: False
# The allocator's peak at each reading: 8 GiB of making the model, a backward of 5 GiB after a reset, one of 6, then nothing new.
peaks = [8, 8, 5] + 3 * [5] + 2 * [6]
torch.cuda.memory_stats_as_nested_dict = lambda: {"allocated_bytes": {"all": {"current": 3 * GIB,
    "peak": (peaks.pop(0) if len(peaks) > 1 else peaks[0]) * GIB}},
    "reserved_bytes": {"all": {"current": 4 * GIB}}, "inactive_split_bytes": {"all": {"current": 0}}, "num_alloc_retries": 0,
    "num_ooms": 0}
torch.cuda.memory_reserved = lambda: 4 * GIB
torch.cuda.mem_get_info = lambda: (70 * GIB, 80 * GIB)
watch = _memory.Memory.watch
_memory.Memory.watch = lambda self, model, source_of, device: watch(self, model, source_of, "cuda")
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=0, world_size=1)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    _memory.OUTSIDE_S = 0 if step < 3 else 1e9  # later steps come too soon after the third
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


class OutsideMemory(unittest.TestCase):
    GIB = 1 << 30

    def recorded(self, name, *command):
        made = folder() / f"outside-{name}.zscope"
        output = runs.finish(runs.start(runs.attach(made) + list(command)))
        self.assertNotIn("not counted any more", output)
        recording = runs.read(made)
        samples = recording.of(0, "outside_memory")
        steps = [(int(span["begin_ns"]), int(span["end_ns"])) for span in recording.spans_of(0, "step_begin")]
        for sample in samples:
            self.assertFalse(any(begin < int(sample["at_ns"]) < end for begin, end in steps), "between steps")
        text = runs.finish(runs.start([runs.SHARDSCOPE, "summary", made]))
        return [(int(sample["v0"]), int(sample["v1"])) for sample in samples], len(steps), runs.figures(made), text

    def test_of_a_device_it_is_what_the_driver_has_beyond_the_allocator(self):
        samples, _, figures, text = self.recorded("device", runs.PYTHON, "-c", DEVICE_FIGURES, folder() / "rendezvous")
        self.assertEqual(samples, [(6 * self.GIB, 10 * self.GIB)] * 3)
        outside = figures["ranks"][0]["outside_memory"]
        self.assertEqual((outside["most_bytes"], outside["in_use_bytes"]), (6 * self.GIB, 10 * self.GIB))
        self.assertIn("outside memory 6.00 GiB at most (rank 0, 10.0 GiB in use in all)", text)

    def test_the_allocator_s_own_peak_is_a_level_where_it_is_new(self):
        self.recorded("peak", runs.PYTHON, "-c", DEVICE_FIGURES, folder() / "rendezvous-peak")
        recording = runs.read(folder() / "outside-peak.zscope")
        levels = [int(event["v1"]) for event in recording.of(0, "memory_alloc", "memory_free")]
        self.assertEqual([round(level / self.GIB) for level in levels if level > 3.5 * self.GIB], [5, 6])
        self.assertEqual(max(levels), 6 * self.GIB)
        self.assertEqual(levels[-1], 3 * self.GIB)

    def test_on_a_cpu_it_is_the_rest_of_the_process(self):
        out = folder() / "outside.out"
        samples, steps, figures, text = self.recorded("cpu", *runs.torchrun(TRAIN, "ddp", out))
        self.assertEqual(len(samples), steps)
        self.assertTrue(all(50 << 20 < outside < in_use for outside, in_use in samples), samples)
        self.assertEqual(figures["ranks"][0]["outside_memory"]["most_bytes"], max(outside for outside, _ in samples))
        self.assertIn("of the process, what is in no category", text)


class QuickLooks(unittest.TestCase):
    def test_gradients_of_a_group_whose_ends_are_frozen_are_seen(self):
        done = runs.start([runs.PYTHON, "-c", FROZEN_ENDS])
        self.assertEqual(runs.finish(done).strip(), "True")

    def test_gradients_that_were_never_there_are_looked_for_in_three_places(self):
        done = runs.start([runs.PYTHON, "-c", NEVER_THERE])
        self.assertEqual(runs.finish(done).strip(), "True")

    def test_gradients_that_come_and_go_together_are_looked_for_in_three_places(self):
        done = runs.start([runs.PYTHON, "-c", TOGETHER])
        self.assertEqual(runs.finish(done).strip(), "True True True True True")

    def test_gradients_that_go_while_those_in_three_places_stay_are_seen(self):
        done = runs.start([runs.PYTHON, "-c", STAY])
        self.assertEqual(runs.finish(done).strip(), "True True True True")

    def test_groups_of_each_model_are_looked_at_in_three_places(self):
        done = runs.start([runs.PYTHON, "-c", MODELS])
        self.assertEqual(runs.finish(done).strip(), "33 [24, 29, 13] 33")

    def test_slots_that_are_alike_are_looked_at_in_three_places(self):
        done = runs.start([runs.PYTHON, "-c", ALIKE])
        self.assertEqual(runs.finish(done).strip(), "True True True True")


class Memory(unittest.TestCase):
    def recorded(self, framework, *options, ranks=2):
        """(what each rank's census gave after each step, the recording, the levels [rank][step] by (pool, category))."""
        name = "memory-" + "_".join((framework, *options)).replace("=", "")
        made, out = (folder() / f"{name}.{end}" for end in ("zscope", "out"))
        output = runs.finish(runs.start(runs.attach(made) + runs.torchrun(TRAIN, framework, out, "census=1", *options,
                                                                          ranks=ranks)))
        self.assertNotIn("not counted any more", output)
        self.assertNotIn("is off", output)
        census = [result["census"] for result in runs.results(out, ranks)]
        recording = runs.read(made)
        return census, made, [levels_at_step_ends(recording, rank) for rank in range(ranks)]

    def compare(self, framework, *options, slack=UNCOUNTED, ranks=2):
        census, made, levels = self.recorded(framework, *options, ranks=ranks)
        for rank in range(ranks):
            self.assertEqual(len(levels[rank]), len(census[rank]))
            for step, (held, counted) in enumerate(zip(census[rank], levels[rank], strict=True)):
                total = sum(counted.values())
                self.assertLessEqual(total, held, f"rank {rank}, step {step}: {named(counted)}")
                self.assertLessEqual(held - total, slack, f"rank {rank}, step {step}: {named(counted)}")
        return made, levels

    def test_fsdp2(self):
        made, levels = self.compare("fsdp2")
        for rank in range(2):
            last = levels[rank][-1]
            # Shards are padded to the same number of rows.
            self.assertAlmostEqual(last[0, PARAM_SHARD], PARAM_BYTES / 2, delta=600)
            for category in (GRAD_SHARD, MOMENTUM, VARIANCE):
                self.assertAlmostEqual(last[0, category], PARAM_BYTES / 2, delta=600)
            self.assertEqual(last.get((0, GRAD_FULL), 0), 0)
        self.assertGreater(peak(runs.read(made), 0, PARAM_GATHERED), 0)
        self.agrees_with_the_expression(made, "device", 16 * ELEMS / 2)

    def test_deepspeed_3(self):
        made, levels = self.compare("zero3")
        # Of fp32 weights DeepSpeed keeps a master copy as well, and its step has one more copy of the gradients.
        self.agrees_with_the_expression(made, "device", 20 * ELEMS / 2, copies=4 * ELEMS / 2)
        last = levels[0][-1]
        for category in (PARAM_SHARD, MOMENTUM, VARIANCE):
            self.assertAlmostEqual(last[0, category], PARAM_BYTES / 2, delta=600)
        self.assertGreater(peak(runs.read(made), 0, PARAM_GATHERED), last.get((0, PARAM_GATHERED), 0))

    @slow
    def test_deepspeed_2(self):
        made, levels = self.compare("zero2", "accumulate=2")
        # A rank has whole gradients of what it owns a part of: those of this micro-step, and those of the one before.
        model = runs.figures(made)["memory_model"]
        whole, own = self.owned(made, model["measured_rank"])
        cut, earlier = 4 * (whole - own), 4 * whole
        self.assertGreater(cut, 0, "the model has a parameter that is cut")
        self.is_explained(model, 4 * ELEMS + 16 * ELEMS / 2,
                          {"gradients of parameters cut between ranks": cut, "gradients of earlier micro-steps": earlier})
        last = levels[0][-1]
        self.assertEqual(last[0, PARAM_SHARD], last[0, PARAM_GATHERED])
        self.assertAlmostEqual(last[0, PARAM_SHARD] + last[0, PARAM_GATHERED], PARAM_BYTES, delta=600)
        for category in (MASTER_WEIGHT, MOMENTUM, VARIANCE):
            self.assertAlmostEqual(last[0, category], PARAM_BYTES / 2, delta=600)

    @slow
    def test_deepspeed_offloaded(self):
        for case in (("zero3", "dtype=bf16", "offload=1"), ("zero2", "dtype=bf16", "offload=1")):
            with self.subTest(case=case):
                made, levels = self.compare(*case)
                last = levels[0][-1]
                for category in (MASTER_WEIGHT, MOMENTUM, VARIANCE):
                    self.assertAlmostEqual(last[1, category], PARAM_BYTES / 2, delta=600)
                    self.assertEqual(last.get((0, category), 0), 0)
                # Of weights in bf16 the device has shards or all. The host has gradients in bf16, which the expression counts,
                # and in fp32: stage 3 beside those in bf16, stage 2 instead of them.
                self.agrees_with_the_expression(made, "device", 2 * ELEMS / 2 if case[0] == "zero3" else 2 * ELEMS)
                self.agrees_with_the_expression(made, "host", 14 * ELEMS / 2, copies=(4 if case[0] == "zero3" else 2) * ELEMS / 2)

    @slow
    def test_stages_0_and_1_and_bf16(self):
        expected = {"zero0": 16 * ELEMS, "zero1": 8 * ELEMS + 12 * ELEMS / 2}
        for case in (("zero0",), ("zero1",), ("zero3", "dtype=bf16"), ("fsdp2", "dtype=bf16"), ("fsdp1",)):
            with self.subTest(case=case):
                made, _ = self.compare(*case)
                if case[0] in expected:
                    self.is_explained(runs.figures(made)["memory_model"], expected[case[0]], {})

    @slow
    def test_deepspeed_2_of_one_micro_step(self):
        made, _ = self.compare("zero2")
        model = runs.figures(made)["memory_model"]
        whole, own = self.owned(made, model["measured_rank"])
        self.is_explained(model, 4 * ELEMS + 16 * ELEMS / 2, {"gradients of parameters cut between ranks": 4 * (whole - own)})

    @staticmethod
    def owned(made, rank):
        """(elements of the parameters of which the rank owns a part, elements of those parts)"""
        recording = runs.read(made)
        parts = collections.Counter()
        for piece in recording.slices:
            if int(piece["rank"]) == rank and int(piece["elems"]) > 0:
                parts[piece["param"]] += int(piece["elems"])
        return sum(int(p["elems"]) for p in recording.params if p["param"] in parts), sum(parts.values())

    def is_explained(self, model, expected, parts):
        """The expression is `expected` bytes by hand, and what was measured is that, padding, and `parts` by hand."""
        self.assertAlmostEqual(model["bytes_per_rank"], expected, delta=1)
        named = {part["cause"]: part["bytes"] for part in model["parts"] if part["cause"] != "padding"}
        self.assertEqual(set(named), set(parts), model)
        for cause, size in parts.items():
            self.assertAlmostEqual(named[cause], size, delta=UNCOUNTED, msg=cause)
        self.assertAlmostEqual(model["unexplained_bytes"], 0, delta=UNCOUNTED)

    def test_ddp(self):
        _, levels = self.compare("ddp")
        for category in (PARAM_SHARD, GRAD_FULL, REDUCE_BUCKET, MOMENTUM, VARIANCE):
            self.assertEqual(levels[0][-1][0, category], PARAM_BYTES)

    def agrees_with_the_expression(self, made, pool, expected, copies=0):
        """`summary` compares the peak of model states in a pool with ZeRO's expression, here `expected` bytes by hand. The pool has
        nothing beside but padding, gradients that are whole, and `copies` bytes that the framework makes of gradients."""
        model = runs.figures(made)["memory_model"]
        self.assertLessEqual(set(model["offloaded"]), {"host"}, "attaching does not tell pinned memory from other")
        memory = model if pool == "device" else model["offloaded"][pool]
        self.assertAlmostEqual(memory["bytes_per_rank"], expected, delta=1)
        beside = memory["measured_bytes_per_rank"] - memory["bytes_per_rank"] - copies
        self.assertGreaterEqual(beside, -1)
        self.assertLessEqual(beside, sum(part["bytes"] for part in memory["parts"]) + UNCOUNTED)

    def test_looks_after_the_first_steps_are_quick_and_the_same(self):
        census, _, levels = self.recorded("fsdp2", "steps=8")
        totals = [sum(counted.values()) for counted in levels[0]]
        self.assertEqual(len(set(totals[1:])), 1, totals)
        self.assertLessEqual(census[0][-1] - totals[-1], UNCOUNTED)


    def test_gathered_memory_is_that_of_the_statuses(self):
        """At every change of a parameter's status, in steps whose samples are quick too: what is whole or on its way."""
        made = self.recorded("zero3", "steps=8")[1]
        for rank in range(2):
            levels, changes = collections.defaultdict(int), 0
            for event in runs.read(made).of(rank, "param_status", "memory_alloc", "memory_free"):
                if event["kind"] == "param_status":
                    self.assertEqual(levels[PARAM_GATHERED] + levels[GATHER_BUFFER], 4 * int(event["v1"]), event)
                    changes += 1
                elif int(event["code"]) >> 4 == 0:
                    levels[int(event["code"]) & 15] += int(event["v0"]) * (1 if event["kind"] == "memory_alloc" else -1)
            self.assertGreater(changes, 100)


def named(levels):
    return ", ".join(f"{pool}/{category}: {size}" for (pool, category), size in sorted(levels.items()) if size)


def walk(recording, rank):
    """(event kind, levels) after each event of memory and at each end of a step."""
    levels = collections.defaultdict(int)
    ends = [{"kind": "step_end", "at_ns": span["end_ns"]} for span in recording.spans_of(rank, "step_begin")]
    for event in sorted(recording.of(rank, "memory_alloc", "memory_free") + ends, key=lambda each: int(each["at_ns"])):
        if event["kind"] != "step_end":
            code = int(event["code"])
            change = int(event["v0"]) * (1 if event["kind"] == "memory_alloc" else -1)
            levels[code >> 4, code & 15] += change
            total = sum(size for (pool, _), size in levels.items() if pool == code >> 4)
            assert total == int(event["v1"]), "the pool's total is the sum of its categories"
        yield event["kind"], levels


def levels_at_step_ends(recording, rank):
    return [dict(levels) for kind, levels in walk(recording, rank) if kind == "step_end"]


def peak(recording, rank, category):
    return max((levels.get((0, category), 0) for _, levels in walk(recording, rank)), default=0)


if __name__ == "__main__":
    unittest.main()
