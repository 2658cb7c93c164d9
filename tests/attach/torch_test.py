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
                self.assertEqual((summary["dropped"], summary["steps"], summary.get("unbegun", [])), (0, 3, []))
                framework = {"ddp": "DistributedDataParallel", "fsdp2": "FSDP2"}.get(case[0], "DeepSpeed")
                self.assertIn(framework, summary["run"]["framework"])

    def test_closed_forms_of_fsdp2(self):
        events = runs.read(self.attached("fsdp2", torch=TORCH)[1])
        ops = collections.Counter(int(e["code"]) for e in events.of(0, "collective_submitted") if e["b"] not in ("", "4294967295"))
        self.assertEqual((ops[0], ops[1], len(events.of(0, "prefetch_issued"))), (3 * (2 * BLOCKS + 1), 3 * (BLOCKS + 1), 3 * BLOCKS))
        # Collectives end where torch says so: a gather's end is no bound on gloo.
        ends = [e for e in events.spans_of(0, "collective_begin") if int(e["code"]) == 0 and e["b"] not in ("", "4294967295")]
        self.assertEqual(len(ends), 3 * (2 * BLOCKS + 1))


if __name__ == "__main__":
    unittest.main()
