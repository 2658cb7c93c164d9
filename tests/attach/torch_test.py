"""The core cases on another PyTorch than the environment's own: the same training, recorded as completely."""
import collections
import unittest

import runs
from pairs import BLOCKS, QUICK_CASES, Runs, folder, plain

TORCH = "2.14.1"


def setUpModule():
    folder()


class OtherTorch(Runs):
    def test_it_is_that_one(self):
        output = runs.finish(runs.start([runs.PYTHON, "-c", "import torch; print(torch.__version__)"], torch=TORCH))
        self.assertTrue(output.startswith(TORCH), output)

    def test_losses_norms_and_weights_are_bitwise_equal(self):
        for case in QUICK_CASES:
            with self.subTest(case=case):
                attached, _, output = self.attached(*case, torch=TORCH)
                self.assertEqual(plain(case, torch=TORCH), attached, output[-2000:])

    def test_no_symbol_differs_and_nothing_is_lost(self):
        for case in QUICK_CASES:
            with self.subTest(case=case):
                _, recording, output = self.attached(*case, torch=TORCH)
                self.assertNotIn("is off", output)
                self.assertNotIn("not recorded", output)
                summary = runs.figures(recording)
                self.assertEqual((summary["dropped"], summary["steps"], summary["unmatched_ends"]["count"]), (0, 3, 0))
                framework = {"ddp": "DistributedDataParallel", "fsdp2": "FSDP2"}.get(case[0], "DeepSpeed")
                self.assertIn(framework, summary["run"]["framework"])

    def test_closed_forms_of_fsdp2(self):
        events = runs.read(self.attached("fsdp2", torch=TORCH)[1])
        ops = collections.Counter(int(e["code"]) for e in events.of(0, "collective_submitted") if e["b"] not in ("", "4294967295"))
        self.assertEqual((ops[0], ops[1], len(events.of(0, "prefetch_issued"))), (3 * (2 * BLOCKS + 1), 3 * (BLOCKS + 1), 3 * BLOCKS))
        # Collectives end where torch says so: a gather's end is no bound on gloo.
        ends = [e for e in events.spans_of(0, "collective_begin") if int(e["code"]) == 0 and e["b"] not in ("", "4294967295")]
        self.assertEqual(len(ends), 3 * (2 * BLOCKS + 1))


class WithoutGroupHooks(Runs):
    """torch's functions wrapped in place of hooks of process groups, which came with 2.14."""

    def events(self, case, script):
        made, out = (folder() / f"{'_'.join(case)}.{script}.{end}" for end in ("zscope", "out"))
        output = runs.finish(runs.start(runs.attach(made) + runs.torchrun(runs.HERE / script, case[0], out, *case[1:])))
        self.assertNotIn("is off", output)
        return runs.read(made), runs.results(out)

    def test_the_same_collectives_are_recorded_in_the_same_order(self):
        # FSDP2 of PyTorch 2.15 issues its collectives elsewhere; that of 2.11 calls these functions.
        for case in (("zero2", "accumulate=2"), ("zero3",)):
            with self.subTest(case=case):
                hooked, trained = self.events(case, "train.py")
                wrapped, result = self.events(case, "without_group_hooks.py")
                self.assertEqual(result, trained)
                for rank in range(2):
                    # Operation, parameters, elements, bytes.
                    submitted = [[(e["code"], e["c"], e["v0"], e["v1"]) for e in each.of(rank, "collective_submitted")]
                                 for each in (hooked, wrapped)]
                    self.assertGreater(len(submitted[0]), 10)
                    self.assertEqual(*submitted)
                    spans = [len(each.spans_of(rank, "collective_begin")) for each in (hooked, wrapped)]
                    self.assertEqual(*spans)

    def test_where_ddp_reduces_in_cpp_communication_is_not_known(self):
        made = self.events(("ddp",), "without_group_hooks.py")[0].folder
        summary = runs.figures(str(made).removesuffix(".csv"))
        self.assertIsNone(summary["comm"]["elements_per_step"])
        lacks = summary["run"]["not_recorded"]
        self.assertTrue(any("collectives" in lack["what"] for lack in lacks), lacks)


if __name__ == "__main__":
    unittest.main()
