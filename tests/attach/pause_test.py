"""An attached run is paused, stepped and resumed as one of ours: at the same gate on every rank, and bit for bit the same
training after it.

    tests/attach/run pause_test
"""
import json
import subprocess
import unittest

import runs
from pairs import TRAIN, folder, plain

CONTROL = runs.BUILD / "bin" / "attach_control"
STEP, MICRO_STEP, PRE_FORWARD, POST_FORWARD, PRE_BACKWARD, POST_BACKWARD, BUCKET, OPTIMIZER = range(8)


def setUpModule():
    folder()
    if not CONTROL.exists():
        raise AssertionError(f"{CONTROL}: not built; ninja -C {runs.BUILD} attach_control")


class Paused(unittest.TestCase):
    def steered(self, framework, *commands):
        """Trains attached under these commands, as it does plain; the stops, [{gate, ranks}]."""
        steps = "steps=40"
        expected = plain((framework, steps))
        attached, recording = (folder() / f"paused-{framework}.{end}" for end in ("attached", "zscope"))
        endpoint = f"ipc://{folder()}/paused-{framework}.sock"
        training = runs.start(runs.attach(recording, "--listen", endpoint) +
                              runs.torchrun(TRAIN, framework, attached, steps, "sleep=0.05"))
        control = subprocess.run([CONTROL, endpoint, *commands], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 text=True, timeout=runs.DEADLINE_S, check=False)
        output = runs.finish(training)
        self.assertEqual(control.returncode, 0, control.stdout + output[-2000:])
        self.assertEqual(runs.results(attached), expected)
        lines = [json.loads(line) for line in control.stdout.splitlines()]
        self.stacks = [line["stacks"] for line in lines if "stacks" in line]
        stops = [line for line in lines if "stacks" not in line]
        for stop in stops:
            self.assertEqual([rank["gate"] for rank in stop["ranks"]], [stop["gate"]] * 2, stop)
            self.assertEqual(stop["ranks"][0], stop["ranks"][1], "ranks hold at one and the same place")
        for rank in range(2):
            self.assertEqual(len(runs.read(recording).spans_of(rank, "step_begin")), 40)
        return stops

    def every_kind_of_gate(self, framework, kinds, gates):
        """Pause, one gate at a time for more than a step, then module, micro-step and step, then on."""
        stops = self.steered(framework, "pause", "step", *["any"] * gates, "module", "micro_step", "step", "resume")
        walk = stops[1:2 + gates]
        self.assertEqual([stop["gate"] for stop in walk], list(range(walk[0]["gate"], walk[0]["gate"] + gates + 1)))
        self.assertEqual({stop["ranks"][0]["kind"] for stop in walk}, kinds)
        module, micro_step, step = (stop["ranks"][0]["kind"] for stop in stops[-3:])
        self.assertIn(module, (PRE_FORWARD, PRE_BACKWARD))
        self.assertEqual((micro_step, step), (MICRO_STEP, STEP))

    def test_stacks_of_a_running_and_of_a_held_run(self):
        """A rank that holds at a gate has released the GIL; one that trains is asked while it trains."""
        self.steered("fsdp2", "stacks", "pause", "stacks", "resume")
        running, held = self.stacks
        for answers in (running, held):
            self.assertEqual(len(answers), 2)
            for text in answers:
                self.assertRegex(text, r"^stacks: \d+ Python threads")
                self.assertIn("\nthread MainThread:\n", text)
                self.assertRegex(text, r"  main at \S*train\.py:\d+")
        for text in held:
            # The innermost call of the main thread is the gate's: in our package, or, of a hook in C++, which has no frame of
            # Python's, FSDP2's call of the method that is wrapped.
            first = text.split("thread MainThread:\n")[1].splitlines()[0]
            self.assertRegex(first, r"(shardscope|torch/distributed/fsdp/_fully_shard)/\w+\.py:\d+$")

    def test_deepspeed_3(self):
        self.every_kind_of_gate("zero3", set(range(8)), 80)

    def test_fsdp2(self):
        self.every_kind_of_gate("fsdp2", set(range(8)), 30)

    def test_ddp(self):
        # modules.py sees where a backward ends by its gradients: there is no gate.
        # Three steps: one has no known buckets (ddp_buckets.py).
        self.every_kind_of_gate("ddp", set(range(8)) - {POST_BACKWARD}, 200)


if __name__ == "__main__":
    unittest.main()
