"""Ranks that are no copies of one another: stages of a pipeline, parts of tensors. What a recording cannot hold of them has its
reason; steps, micro-steps, collectives and memory are recorded."""
import functools
import unittest

import runs
from pairs import folder

SCRIPT = runs.HERE / "scripts" / "parallel.py"
STEPS, MICRO = 3, 4


def setUpModule():
    runs.build_package()
    folder()


@functools.cache
def trained(kind):
    """(results of the plain run, of the attached one, its output, its recording)."""
    recording = folder() / f"parallel-{kind}.zscope"
    plain, attached = folder() / f"parallel-{kind}-plain", folder() / f"parallel-{kind}-attached"
    runs.finish(runs.start(runs.torchrun(SCRIPT, kind, plain)))
    output = runs.finish(runs.start(runs.attach(recording) + runs.torchrun(SCRIPT, kind, attached)))
    return runs.results(plain), runs.results(attached), output, recording


class Parallel(unittest.TestCase):
    def whole(self, kind):
        plain, attached, output, recording = trained(kind)
        self.assertEqual(plain, attached)
        self.assertNotIn("this part is not recorded", output)
        self.assertNotIn("the hook of", output)
        summary = runs.figures(recording)
        self.assertEqual((summary["steps"], summary["dropped"], summary["unmatched_ends"]["count"]), (STEPS, 0, 0))
        lacks = {what: each["why"] for each in summary["run"]["not_recorded"] for what in each["what"]}
        return runs.read(recording), lacks

    def check_micro_steps(self, recording):
        for rank in range(2):
            self.assertEqual([s["end_ns"] != "" for s in recording.spans_of(rank, "step_begin")], [True] * STEPS)
            self.assertEqual([int(s["a"]) for s in recording.spans_of(rank, "micro_step_begin")], list(range(MICRO)) * STEPS)
            steps = [(int(s["begin_ns"]), int(s["end_ns"])) for s in recording.spans_of(rank, "step_begin")]
            for code, count in ((0, MICRO), (1, MICRO), (3, 1)):  # forward, backward, optimizer
                phases = [int(s["begin_ns"]) for s in recording.spans_of(rank, "phase_begin") if int(s["code"]) == code]
                self.assertEqual([sum(begin <= at <= end for at in phases) for begin, end in steps], [count] * STEPS, (rank, code))

    def test_stages_of_deepspeed(self):
        recording, lacks = self.whole("deepspeed")
        self.check_micro_steps(recording)
        for what in ("modules", "layout", "buckets", "collective_parts"):
            self.assertIn("stages of a pipeline", lacks[what])
        self.assertEqual((recording.params, recording.slices), ([], []))
        self.assertEqual([len(recording.of(rank, "loss")) for rank in range(2)], [0, STEPS * MICRO], "the last stage has it")
        for rank in range(2):
            self.assertEqual(len(recording.of(rank, "learning_rate")), STEPS)
            self.assertEqual(recording.of(rank, "bucket_flush"), [])

    def test_stages_of_torch(self):
        recording, lacks = self.whole("torch")
        self.check_micro_steps(recording)
        for what in ("modules", "layout", "param_status", "prefetches", "buckets"):
            self.assertIn("stages of a pipeline", lacks[what])
        self.assertEqual((recording.params, recording.slices), ([], []))

    def test_parts_of_tensors(self):
        recording, lacks = self.whole("tensor")
        self.assertIn("tensor parallelism", lacks["layout"])
        self.assertNotIn("modules", lacks)
        self.assertEqual(len(recording.params), 4)
        self.assertEqual(recording.slices, [])
        self.assertGreater(len(recording.of(0, "param_status")), 0)


if __name__ == "__main__":
    unittest.main()
