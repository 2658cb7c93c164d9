"""Runs whose ranks pass different gates: a pause and a step hold them between steps, and say which rank passed which gate.

    tests/attach/run gates_test
"""
import json
import re
import subprocess
import unittest

import runs
from pairs import folder
from pause_test import CONTROL, MICRO_STEP, PRE_FORWARD, STEP, setUpModule  # noqa: F401, unittest calls the last

SCRIPT = runs.HERE / "scripts" / "differs.py"
STEPS = 60
NOTE = r"^ranks pass different gates: as gate \d+ rank {} passed {}, rank {} passed {}; the run is stopped between steps$"
# The first gate that differs, on either rank: (rank 0's, rank 1's).
SKIPPED = "before the forward of extras.1", "before the forward of blocks.2"
EVALUATED = "before the forward of Net", r"the optimizer of step \d+"


def names(note, passed):
    """Whether this note has what each rank passed; which of them comes first depends on whose events did."""
    return any(re.search(NOTE.format(first, passed[first], 1 - first, passed[1 - first]), note) for first in range(2))


class Differ(unittest.TestCase):
    def steered(self, framework, mode, *commands):
        """Trains attached under these commands, as it does plain; the stops. All ranks hold at one place."""
        name = f"gates-{framework}-{mode}"
        out, recording, endpoint = folder() / name, folder() / f"{name}.zscope", f"ipc://{folder()}/{name}.sock"
        runs.finish(runs.start(runs.torchrun(SCRIPT, framework, mode, f"{out}.plain")))
        training = runs.start(runs.attach(recording, "--listen", endpoint) + runs.torchrun(SCRIPT, framework, mode, f"{out}.attached"))
        control = subprocess.run([CONTROL, endpoint, *commands], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                 timeout=runs.DEADLINE_S, check=False)
        output = runs.finish(training)
        self.assertEqual(control.returncode, 0, control.stdout + output[-2000:])
        self.assertEqual(runs.results(f"{out}.attached"), runs.results(f"{out}.plain"))
        for rank in range(2):
            self.assertEqual(len(runs.read(recording).spans_of(rank, "step_begin")), STEPS)
        stops = [json.loads(line) for line in control.stdout.splitlines()]
        for stop in stops:
            self.assertEqual(*((rank["kind"], rank["id"]) for rank in stop["ranks"]), stop)
        return stops

    def held_between_steps(self, framework, mode, passed):
        stops = self.steered(framework, mode, "on", "pause", "micro_step", "module", "step", "step", "resume")
        self.assertEqual([stop["ranks"][0]["kind"] for stop in stops], [STEP, MICRO_STEP, PRE_FORWARD, STEP, STEP], stops)
        # From a gate between steps on they number alike: what comes before the first gate that differs is reached exactly.
        for stop in stops[1:3]:
            self.assertEqual(([rank["gate"] for rank in stop["ranks"]], stop["note"]), ([stop["gate"]] * 2, ""))
        for stop in (stops[0], *stops[3:]):
            self.assertTrue(names(stop["note"], passed), stop["note"])
        before, first, second = (stop["ranks"][0]["id"] for stop in (stops[0], *stops[3:]))
        self.assertEqual((first, second), (before + 1, before + 2), "one step each")

    def test_ddp_with_a_module_that_one_rank_skips(self):
        self.held_between_steps("ddp", "skips", SKIPPED)

    def test_deepspeed_2_with_a_module_that_one_rank_skips(self):
        self.held_between_steps("zero2", "skips", SKIPPED)

    def test_ddp_with_a_rank_that_evaluates_within_a_step(self):
        self.held_between_steps("ddp", "within", EVALUATED)

    def test_a_rank_that_evaluates_between_steps_passes_no_gates(self):
        for framework in ("ddp", "zero2"):
            with self.subTest(framework=framework):
                stops = self.steered(framework, "between", "pause", *["any"] * 20, "step", "resume")
                for stop in stops:
                    self.assertEqual(([rank["gate"] for rank in stop["ranks"]], stop["note"]), ([stop["gate"]] * 2, ""))


if __name__ == "__main__":
    unittest.main()
