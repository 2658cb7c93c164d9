"""Megatron-Core's distributed optimizer around a small GPT, on two ranks: the same training, and what its own arithmetic says of
buckets, gathers and shards.

    tests/attach/run megatron_test
"""
import collections
import unittest

import runs
from memory_test import levels_at_step_ends, named
from pairs import QUICK, as_double, folder, slow

SCRIPT = runs.HERE / "scripts" / "megatron_gpt.py"
STEPS, BUCKET = 3, 20000
OVERLAPPED = ("overlap=1",)
CASES = [OVERLAPPED] if QUICK else [OVERLAPPED, (), ("overlap=1", "dtype=bf16", "evaluate=1"), ("distributed=0",),
                                    ("distributed=0", "dtype=bf16"), ("dtype=fp16", "scale=3e5", "accumulate=1", "steps=4"),
                                    ("pipeline=2", "accumulate=3")]
FULL, EPILOGUE, GROUP_COMPLETE = 0, 2, 5
GATHER, REDUCE_SCATTER = 0, 1


def setUpModule():
    folder()


def value_of(case, name, otherwise):
    return next((type(otherwise)(each.split("=")[1]) for each in case if each.startswith(name + "=")), otherwise)


class Megatron(unittest.TestCase):
    made = {}

    def run_of(self, *case):
        """(results plain, results attached, recording's path, output) of a case; made once."""
        if case not in self.made:
            stem = folder() / f"megatron-{'-'.join(case).replace('=', '')}"
            runs.finish(runs.start(runs.torchrun(SCRIPT, f"{stem}.plain", *case), other="megatron-core"))
            output = runs.finish(runs.start(runs.attach(f"{stem}.zscope") + runs.torchrun(SCRIPT, f"{stem}.attached", *case),
                                            other="megatron-core"))
            self.made[case] = runs.results(f"{stem}.plain"), runs.results(f"{stem}.attached"), f"{stem}.zscope", output
        return self.made[case]

    def recording(self, *case):
        return runs.read(self.run_of(*case)[2])

    def test_the_same_training_whole_in_the_recording(self):
        for case in CASES:
            with self.subTest(case=case):
                plain, attached, made, output = self.run_of(*case)
                for one, other in zip(plain, attached, strict=True):
                    self.assertEqual({**one, "census": None}, {**other, "census": None})
                self.assertNotIn("is off", output)
                summary = runs.figures(made)
                self.assertEqual((summary["dropped"], summary["unmatched_ends"]["count"]), (0, 0))
                self.assertIn("Megatron-Core 0.16.1", summary["run"]["framework"])
                self.assertEqual([s for s in self.recording(*case).spans if s["open_until_ns"]], [])

    def test_steps_micro_steps_and_phases(self):
        for case in CASES:
            with self.subTest(case=case):
                steps, micro = value_of(case, "steps", STEPS), value_of(case, "accumulate", 2)
                skipped = self.run_of(*case)[0][0]["norms"].count("skipped")
                recording = self.recording(*case)
                for rank in range(2):
                    self.assertEqual(len(recording.spans_of(rank, "step_begin")), steps)
                    self.assertEqual(len(recording.spans_of(rank, "micro_step_begin")), steps * micro)
                    phases = collections.Counter(int(s["code"]) for s in recording.spans_of(rank, "phase_begin"))
                    self.assertEqual(phases, {0: steps * micro, 1: steps * micro, 3: steps})
                    self.assertEqual(len(recording.spans_of(rank, "optimizer_begin")), steps - skipped)

    def test_losses_and_norms_are_those_of_the_script(self):
        """A loss is what is trained with: divided by the number of micro-steps."""
        for case in CASES:
            with self.subTest(case=case):
                recording, micro = self.recording(*case), value_of(case, "accumulate", 2)
                for rank in range(2):
                    given = self.run_of(*case)[0][rank]
                    losses = [as_double(e["v0"]) for e in recording.of(rank, "loss")]
                    self.assertEqual(len(losses), len(given["losses"]))
                    for loss, exact in zip(losses, given["losses"], strict=True):
                        self.assertAlmostEqual(loss * micro, float.fromhex(exact), places=6)
                    norms = [as_double(e["v0"]) for e in recording.of(rank, "grad_norm")]
                    self.assertEqual(norms, [float.fromhex(x) for x in given["norms"] if x != "skipped"])

    @slow
    def test_skipped_steps_and_loss_scale(self):
        case = ("dtype=fp16", "scale=3e5", "accumulate=1", "steps=4")
        recording, norms = self.recording(*case), self.run_of(*case)[0][0]["norms"]
        self.assertEqual([int(e["code"]) for e in recording.of(0, "overflow")], [int(norm == "skipped") for norm in norms])
        self.assertEqual(norms[0], "skipped")
        self.assertNotEqual(norms[-1], "skipped")
        scales = [as_double(e["v0"]) for e in recording.of(0, "loss_scale")]
        expected = [3e5]
        for norm in norms[:-1]:
            expected.append(expected[-1] / 2 if norm == "skipped" else expected[-1])
        self.assertEqual(scales, expected)

    def test_modules_where_all_ranks_have_the_same(self):
        recording = self.recording(*OVERLAPPED)
        spans = recording.spans_of(0, "module_begin")
        layers = {m["module"] for m in recording.modules if m["type"] == "TransformerLayer"}
        self.assertEqual(len(layers), 2)
        for kind in (0, 1):
            count = collections.Counter(s["a"] for s in spans if int(s["code"]) == kind)
            self.assertEqual({count[layer] for layer in layers}, {STEPS * 2})

    @slow
    def test_stages_of_a_pipeline(self):
        recording = self.recording("pipeline=2", "accumulate=3")
        self.assertEqual((len(recording.modules), len(recording.params)), (1, 0))
        self.assertEqual(len(recording.of(0, "module_begin")), 0)
        kinds = {int(e["code"]) for e in recording.of(0, "gate")}
        self.assertEqual(kinds, {0, 1, 7}, "step, micro-step, optimizer")
        self.assertEqual((len(recording.of(0, "loss")), len(recording.of(1, "loss"))), (0, 9), "the last stage has the loss")
        why = {what for each in runs.figures(self.run_of("pipeline=2", "accumulate=3")[2])["run"]["not_recorded"]
               for what in each["what"]}
        self.assertLessEqual({"modules", "layout", "buckets"}, why)

    # ---- buckets, gathers, shards ---------------------------------------------------------------------------

    def buckets_of(self, recording, size):
        """[elements with padding] of each bucket, by Megatron-Core's rules: parameters from the last one on, each at a multiple of
        64, until a bucket has `size`; its end at a multiple of 128 and the ranks' number."""
        ends, start, first = [], 0, 0
        for param in reversed(recording.params):
            start = -(-start // 64) * 64 + int(param["elems"])
            if size and start - first >= size:
                start = first = -(-start // 128) * 128
                ends.append(first)
        if start > first:
            ends.append(-(-start // 128) * 128)
        return [end - begin for begin, end in zip([0, *ends], ends)]

    def collectives(self, recording, op):
        return [e for e in recording.of(0, "collective_submitted") if int(e["code"]) == op and e["b"] not in ("", "4294967295")]

    def test_reductions_and_gathers_overlapped(self):
        recording = self.recording(*OVERLAPPED)
        sizes = self.buckets_of(recording, BUCKET)
        self.assertGreater(len(sizes), 1)
        reduced, gathered = (self.collectives(recording, op) for op in (REDUCE_SCATTER, GATHER))
        self.assertEqual([int(e["v1"]) for e in reduced], [4 * size for size in sizes] * STEPS)
        # Each forward gathers in the order of the modules, from the last bucket on; the script at its end in that of the buckets.
        self.assertEqual([int(e["v1"]) for e in gathered], [4 * size for size in sizes[::-1] * STEPS + sizes])
        for kind, count in (("reduce_wait_begin", STEPS), ("fetch_wait_begin", STEPS + 1)):
            self.assertEqual(len(recording.spans_of(0, kind)), count * len(sizes), kind)
        for op, count in ((1, STEPS), (0, STEPS + 1)):
            done = [s for s in recording.spans_of(0, "collective_begin") if int(s["code"]) == op and s["b"] not in ("", "4294967295")]
            self.assertEqual(len(done), count * len(sizes))
        reasons = [int(e["code"]) for e in recording.of(0, "bucket_flush")]
        self.assertEqual(reasons, [EPILOGUE] * len(sizes) + [GROUP_COMPLETE] * (STEPS - 1) * len(sizes),
                         "in the first step Megatron-Core counts which gradients come")

    @slow
    def test_reductions_and_gathers_at_the_end(self):
        recording = self.recording()
        sizes = self.buckets_of(recording, 0)
        self.assertEqual(len(sizes), 1, "without overlap there is one bucket")
        for op in (REDUCE_SCATTER, GATHER):
            self.assertEqual([int(e["v1"]) for e in self.collectives(recording, op)], [4 * sizes[0]] * STEPS)
        for kind in ("reduce_wait_begin", "fetch_wait_begin"):
            self.assertEqual(len(recording.spans_of(0, kind)), STEPS, kind)
        self.assertEqual({int(e["code"]) for e in recording.of(0, "bucket_flush")}, {EPILOGUE})

    def test_every_gradient_is_in_a_bucket_once_a_step_and_in_its_collective(self):
        recording = self.recording(*OVERLAPPED)
        every = {p["param"]: STEPS for p in recording.params}
        self.assertEqual(collections.Counter(e["b"] for e in recording.of(0, "bucket_add")), every)
        parts = collections.Counter((e["code"], e["b"]) for e in recording.of(0, "collective_part"))
        self.assertEqual({param: count for (op, param), count in parts.items() if int(op) == REDUCE_SCATTER}, every)
        self.assertEqual({count for (op, _), count in parts.items() if int(op) == GATHER}, {STEPS + 1})

    def test_slices_are_every_element_once_and_half_of_each_bucket(self):
        recording = self.recording(*OVERLAPPED)
        owned, of_rank, taken = collections.Counter(), collections.Counter(), collections.defaultdict(set)
        for piece in recording.slices:
            elems = int(piece["elems"])
            owned[piece["param"]] += elems
            of_rank[piece["rank"]] += elems + int(piece["padding_elems"])
            taken[piece["param"]].update(range(int(piece["param_offset"]), int(piece["param_offset"]) + elems))
        elems = {p["param"]: int(p["elems"]) for p in recording.params}
        self.assertEqual(dict(owned), elems)
        self.assertEqual({param: len(offsets) for param, offsets in taken.items()}, elems)
        half = sum(self.buckets_of(recording, BUCKET)) // 2
        for rank in range(2):  # the gap before a parameter that begins at a multiple of 64 is the padding of the one before it
            self.assertEqual(of_rank[str(rank)], half)

    # ---- memory ---------------------------------------------------------------------------------------------

    @slow
    def test_memory_is_that_of_all_tensors(self):
        for case in (("overlap=1", "census=1"), ("dtype=bf16", "census=1"), ("distributed=0", "census=1", "dtype=bf16")):
            with self.subTest(case=case):
                _, attached, made, output = self.run_of(*case)
                self.assertNotIn("not counted any more", output)
                for rank in range(2):
                    for held, counted in zip(attached[rank]["census"], levels_at_step_ends(runs.read(made), rank), strict=True):
                        total = sum(counted.values())
                        self.assertLessEqual(total, held, named(counted))
                        # A tensor of the logits' size (16 x 2 x 64) stays from a forward on; the rest are flags, a mask, a loss.
                        logits = 16 * 2 * 64 * (2 if "dtype=bf16" in case else 4)
                        self.assertLessEqual(held - total, logits + 512, named(counted))

    # ---- trouble --------------------------------------------------------------------------------------------

    def attached_in_code(self, name, before, after):
        """(results, output, recording) of SCRIPT with overlap=1, attached by a call after `before`; `after` follows it."""
        script, out, made = (folder() / f"megatron-{name}{end}" for end in (".py", "", ".zscope"))
        script.write_text(f"""
import sys
sys.argv[0] = {str(SCRIPT)!r}
sys.path.insert(0, {str(runs.HERE)!r})
import cuda_on_cpu
cuda_on_cpu.install()
{before}
import shardscope
shardscope.attach(endpoint=sys.argv.pop(1))
exec(compile(open({str(SCRIPT)!r}).read(), {str(SCRIPT)!r}, "exec"))
{after}
""", encoding="utf-8")
        endpoint = f"ipc://{folder()}/megatron-{name}.sock"
        collector = runs.start([runs.SHARDSCOPE, "record", made, "--listen", endpoint])
        output = runs.finish(runs.start(runs.torchrun(script, endpoint, out, "overlap=1"), other="megatron-core"))
        runs.finish(collector)
        return runs.results(out), output, runs.read(made)

    @slow
    def test_a_renamed_symbol_turns_its_table_off_and_nothing_else(self):
        results, output, recording = self.attached_in_code("renamed", """
import megatron.core.distributed.param_and_grad_buffer as buffers
# As a later Megatron-Core might have it; before the framework is armed.
inner = buffers._ParamAndGradBucketGroup.start_grad_sync
buffers._ParamAndGradBucketGroup.start_grad_sync = lambda self, *force, **named: inner(self, *force, **named)
""", "")
        self.assertEqual(results, self.run_of(*OVERLAPPED)[0])
        self.assertIn("start_grad_sync takes (self, force, named), not (self, force_all_reduce, ...)", output)
        self.assertEqual((len(recording.of(0, "loss")), len(recording.of(0, "bucket_flush"))), (6, 0))

    @slow
    def test_nothing_of_a_run_is_left_after_detach(self):
        _, output, _ = self.attached_in_code("detached", "", """
from shardscope import param_groups
from shardscope.megatron import buckets, memory, optimizers
kept = buckets.groups, memory.models, memory.optimizers, optimizers.numbers, param_groups._grouped
print("kept before", [len(each) > 0 for each in kept])
shardscope.detach()
print("kept after", [len(each) for each in kept])
""")
        self.assertEqual(output.count("kept before [True, True, True, True, True]"), 2)
        self.assertEqual(output.count("kept after [0, 0, 0, 0, 0]"), 2)


if __name__ == "__main__":
    unittest.main()
