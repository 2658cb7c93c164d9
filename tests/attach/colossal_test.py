"""Colossal-AI's LowLevelZeroOptimizer, stages 1 and 2, on two ranks: the same training, and what its own arithmetic says of buckets,
gathers and shards.

    tests/attach/run colossal_test
"""
import collections
import unittest

import runs
from memory_test import levels_at_step_ends, named
from pairs import BLOCKS, as_double, folder

SCRIPT = runs.HERE / "scripts" / "colossal_zero.py"
STEPS, BUCKET = 3, 5000
STAGE2 = ("stage=2", "accumulate=2", "census=1")
STAGE1 = ("stage=1", "groups=1", "census=1", "dtype=bf16")
SCALED = ("stage=1", "dtype=fp16", "scale=400000")
TWO = ("models=2",)
CASES = [STAGE2, STAGE1, SCALED]
FULL, EPILOGUE, GROUP_CHANGED = 0, 2, 4
GATHER, REDUCE_SCATTER, ALL_REDUCE = 0, 1, 3


def setUpModule():
    folder()


def micro_of(case):
    return 2 if "accumulate=2" in case else 1


class Colossal(unittest.TestCase):
    made = {}

    def run_of(self, case):
        """(results plain, results attached, recording's path, output) of a case; made once."""
        if case not in self.made:
            stem = folder() / f"colossal-{'-'.join(case).replace('=', '')}"
            runs.finish(runs.start(runs.torchrun(SCRIPT, f"{stem}.plain", *case), other="colossalai"))
            output = runs.finish(runs.start(runs.attach(f"{stem}.zscope") + runs.torchrun(SCRIPT, f"{stem}.attached", *case),
                                            other="colossalai"))
            self.made[case] = runs.results(f"{stem}.plain"), runs.results(f"{stem}.attached"), f"{stem}.zscope", output
        return self.made[case]

    def recording(self, case):
        return runs.read(self.run_of(case)[2])

    def test_the_same_training_whole_in_the_recording(self):
        for case in CASES:
            with self.subTest(case=case):
                plain, attached, made, output = self.run_of(case)
                for one, other in zip(plain, attached, strict=True):
                    self.assertEqual({**one, "census": None}, {**other, "census": None})
                self.assertNotIn("is off", output)
                summary = runs.figures(made)
                self.assertEqual((summary["dropped"], summary["unmatched_ends"]["count"]), (0, 0))
                self.assertEqual(summary["run"]["stage"], 2 if "stage=2" in case else 1)
                self.assertEqual([s for s in self.recording(case).spans if s["open_until_ns"]], [])

    def test_steps_phases_modules_losses_and_norms(self):
        for case in CASES:
            with self.subTest(case=case):
                recording, micro = self.recording(case), STEPS * micro_of(case)
                for rank in range(2):
                    given = self.run_of(case)[0][rank]
                    self.assertEqual(len(recording.spans_of(rank, "step_begin")), STEPS)
                    self.assertEqual(len(recording.spans_of(rank, "micro_step_begin")), micro)
                    phases = collections.Counter(int(s["code"]) for s in recording.spans_of(rank, "phase_begin"))
                    self.assertEqual(phases, {0: micro, 1: micro, 3: STEPS})
                    spans = collections.Counter(int(s["code"]) for s in recording.spans_of(rank, "module_begin"))
                    self.assertEqual(spans, {0: micro * (4 * BLOCKS + 3), 1: micro * (4 * BLOCKS + 3)})
                    losses = [as_double(e["v0"]) * micro_of(case) for e in recording.of(rank, "loss")]
                    self.assertEqual(losses, [float.fromhex(x) for x in given["losses"]])
                    # Colossal-AI's norm is that of scaled gradients.
                    scales = [scale for scale, skipped in zip(given["scales"], given["skipped"], strict=True) if not skipped]
                    exact = [float.fromhex(norm) / scale for norm, scale in zip(given["norms"], scales or [1.0] * STEPS, strict=True)]
                    self.assertGreater(min(exact), 0)
                    self.assertEqual([as_double(e["v0"]) for e in recording.of(rank, "grad_norm")], exact)

    def test_skipped_steps_and_loss_scale(self):
        given, recording = self.run_of(SCALED)[0], self.recording(SCALED)
        self.assertEqual((len(given[0]["skipped"]), given[0]["skipped"][0], given[0]["skipped"][-1]), (STEPS, True, False))
        for rank in range(2):
            self.assertEqual([bool(int(e["code"])) for e in recording.of(rank, "overflow")], given[rank]["skipped"])
            self.assertEqual([as_double(e["v0"]) for e in recording.of(rank, "loss_scale")], given[rank]["scales"])

    def test_a_second_model_is_entered_once(self):
        recording = self.recording(TWO)
        self.assertEqual(len(recording.spans_of(0, "step_begin")), 2 * STEPS)
        self.assertEqual(collections.Counter(s["a"] for s in recording.spans_of(0, "module_begin")),
                         {m["module"]: STEPS * 2 for m in recording.modules if m["type"] != "ModuleList"})

    def test_an_optimizer_of_parameters_that_no_module_has_is_given_up(self):
        out = folder() / "colossal-split"
        output = runs.finish(runs.start(runs.attach(f"{out}.zscope") + runs.torchrun(SCRIPT, out, "split=1"), other="colossalai"))
        self.assertEqual(output.count("no module that ran has all parameters of an optimizer"), 2, "once for each rank")
        self.assertEqual(len(runs.results(out)[0]["losses"]), STEPS)

    # ---- buckets, gathers, shards ---------------------------------------------------------------------------

    def test_buckets_of_stage_2(self):
        """Parameters from the last one on, padded to the ranks; one that does not fit has the bucket reduced first."""
        recording = self.recording(STAGE2)
        sizes = [0]
        for event in recording.of(0, "bucket_add")[:len(recording.params)]:
            elems = int(recording.params[int(event["b"])]["elems"])
            if sizes[-1] + elems > BUCKET:
                sizes.append(0)
            sizes[-1] += elems + elems % 2
        self.assertGreater(len(sizes), 2)
        reduced = [e for e in recording.of(0, "collective_submitted") if int(e["code"]) == REDUCE_SCATTER]
        self.assertEqual([int(e["v1"]) for e in reduced], [4 * size for size in sizes] * STEPS * 2)
        reasons = [int(e["code"]) for e in recording.of(0, "bucket_flush")]
        self.assertEqual(reasons, ([FULL] * (len(sizes) - 1) + [EPILOGUE]) * STEPS * 2)
        every = {p["param"]: STEPS * 2 for p in recording.params}
        self.assertEqual(collections.Counter(e["b"] for e in recording.of(0, "bucket_add")), every)
        parts = collections.Counter(e["b"] for e in recording.of(0, "collective_part") if int(e["code"]) == REDUCE_SCATTER)
        self.assertEqual(parts, every)

    def test_a_gradient_of_another_group_has_the_bucket_reduced(self):
        reasons = {int(e["code"]) for e in self.recording(STAGE1).of(0, "bucket_flush")}
        self.assertIn(GROUP_CHANGED, reasons)
        reduced = [e for e in self.recording(STAGE1).of(0, "collective_submitted")
                   if int(e["code"]) == ALL_REDUCE and e["b"] not in ("", "4294967295")]
        self.assertEqual(len(reduced), len(self.recording(STAGE1).of(0, "bucket_flush")))

    def test_every_updated_parameter_is_gathered_once_a_step(self):
        for case in (STAGE2, STAGE1):
            parts = collections.Counter(e["b"] for e in self.recording(case).of(0, "collective_part") if int(e["code"]) == GATHER)
            self.assertEqual(parts, {p["param"]: STEPS for p in self.recording(case).params})

    def test_slices_are_every_element_once(self):
        recording = self.recording(STAGE2)
        owned = collections.defaultdict(list)
        for piece in recording.slices:
            first = int(piece["param_offset"])
            owned[piece["param"]] += range(first, first + int(piece["elems"]))
        self.assertEqual({param: sorted(elems) for param, elems in owned.items()},
                         {p["param"]: list(range(int(p["elems"]))) for p in recording.params})

    def test_memory_is_that_of_all_tensors(self):
        for case in (STAGE2, STAGE1):
            with self.subTest(case=case):
                attached = self.run_of(case)[1]
                for rank in range(2):
                    for held, counted in zip(attached[rank]["census"], levels_at_step_ends(self.recording(case), rank), strict=True):
                        total = sum(counted.values())
                        self.assertLessEqual(total, held, named(counted))
                        self.assertLessEqual(held - total, 512, named(counted))


if __name__ == "__main__":
    unittest.main()
