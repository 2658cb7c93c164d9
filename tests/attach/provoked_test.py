"""Causes that a real training provokes, named by `findings`, and gone where the cause is removed as the finding says.

    tests/attach/run provoked_test
"""
import json
import re
import subprocess
import unittest

import runs
from pairs import TRAIN, folder, slow


def setUpModule():
    folder()


def findings(recording):
    """By id."""
    done = subprocess.run([runs.SHARDSCOPE, "findings", "--json", recording], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert all(one["at_ns"] > 0 or one["until_ns"] > 0 for one in found), found  # a click opens a time
    return {one["id"]: one for one in found}


class SlowLoader(unittest.TestCase):
    """A DataLoader that takes 50 ms for a batch, many times what the step computes."""
    STEPS, SLEEP_S = 12, 0.05

    def trained(self, *options):
        recording = folder() / ("loader-" + "-".join(options).replace("=", "") + ".zscope")
        runs.finish(runs.start(runs.attach(recording) + runs.torchrun(TRAIN, "ddp", recording.with_suffix(".out"),
                                                                      f"steps={self.STEPS}", f"sleep={self.SLEEP_S}", *options)))
        return findings(recording), runs.figures(recording)

    def test_a_loader_in_the_training_process_starves_it_and_workers_feed_it(self):
        found, summary = self.trained("loaders=0")
        self.assertIn("data_starvation", found)
        starved = found["data_starvation"]
        self.assertEqual(starved["severity"], "warning")
        self.assertEqual(starved["changes"], [])
        self.assertIn("num_workers", starved["next_step"])
        # Each rank waits for its own batch in every step; what it waits for is the sleep and little more.
        self.assertGreaterEqual(starved["cost_ms"], 0.98e3 * self.SLEEP_S)
        self.assertLess(starved["cost_ms"], summary["step_ms"]["median"])
        self.assertNotIn("straggler", found)
        # Each of eight workers sleeps for itself.
        fed, after = self.trained("loaders=8")
        self.assertLess(after["step_ms"]["median"], summary["step_ms"]["median"])
        cost = fed["data_starvation"]["cost_ms"] if "data_starvation" in fed else 0
        self.assertLess(cost, 0.5 * starved["cost_ms"])


class Evaluates(unittest.TestCase):
    """A loop that evaluates between its steps, on its training data too, and stops with a batch in hand."""
    STEPS = 4

    def test_a_step_holds_one_batch_and_no_evaluation(self):
        path = folder() / "evaluates.zscope"
        runs.finish(runs.start(runs.attach(path) + runs.torchrun(runs.HERE / "scripts" / "evaluates.py")))
        self.assertEqual(runs.figures(path)["steps"], self.STEPS)
        recording = runs.read(path)
        for rank in range(2):
            spans = recording.spans_of(rank, "step_begin")
            self.assertEqual([span["end_ns"] == "" for span in spans], [False] * self.STEPS + [True], "the batch in hand")
            steps = [(int(span["begin_ns"]), int(span["end_ns"])) for span in spans[:self.STEPS]]
            waits = [int(s["begin_ns"]) for s in recording.spans_of(rank, "data_wait_begin")]
            within = [sum(begin <= wait < end for wait in waits) for begin, end in steps]
            # The first step begins with its forward; an evaluation before the next step is between two steps.
            self.assertEqual(within, [0, 1, 1, 1])
            self.assertGreater(len(waits), self.STEPS + 1)


@slow
class SideBranch(unittest.TestCase):
    """Of FSDP2, whose groups are prefetched in the order of the forward, back from its end: one that no backward comes to is
    gathered all the same."""

    def trained(self, *options):
        recording = folder() / ("side-" + "-".join(options) + ".zscope")
        runs.finish(runs.start(runs.attach(recording) + runs.torchrun(runs.HERE / "scripts" / "side_branch.py", *options)))
        return findings(recording), runs.figures(recording)

    def test_a_group_without_a_backward_is_gathered_in_vain_and_not_where_the_next_ones_are_named(self):
        found, before = self.trained()
        self.assertIn("unused_prefetch", found)
        self.assertNotIn("trace_invalidated", found)
        self.assertEqual(before["prefetch"]["unused"], 2 * before["steps"])
        self.assert_ends_whole(folder() / "side-.zscope")
        self.assertIn("set_modules_to_backward_prefetch", found["unused_prefetch"]["next_step"])
        after_found, after = self.trained("named")
        self.assertNotIn("unused_prefetch", after_found)
        gathered = lambda summary: next(op["bytes"] for op in summary["comm"]["ops"] if op["op"] == "all_gather")  # noqa: E731
        saved = gathered(before) - gathered(after)
        self.assertEqual(saved, found["unused_prefetch"]["cost_bytes"] * before["steps_measured"])


    def assert_ends_whole(self, path):
        """What was gathered in vain is given back with its backward: in no step does more stay than in the one before."""
        recording = runs.read(path)
        for rank in range(2):
            changes = recording.of(rank, "param_status")
            at_end = {}
            for step in recording.spans_of(rank, "step_begin"):
                last = {e["a"]: e for e in changes if int(e["at_ns"]) <= int(step["end_ns"])}
                at_end[step["a"]] = {param: (int(e["code"]) & 7, int(e["v1"])) for param, e in last.items()}
            first = next(iter(at_end.values()))
            self.assertNotIn(1, [status for status, _ in first.values()], "none is in flight")
            for step, statuses in at_end.items():
                self.assertEqual(statuses, first, step)


@slow
class LateGroups(unittest.TestCase):
    """Of FSDP2, which prefetches one group ahead: a large group behind one that computes little comes too late."""

    def trained(self, *options):
        recording = folder() / ("late-" + "-".join(options) + ".zscope")
        runs.finish(runs.start(runs.attach(recording) + runs.torchrun(runs.HERE / "scripts" / "late_groups.py", *options)))
        return findings(recording), runs.figures(recording)

    def test_large_groups_come_late_and_not_where_groups_further_ahead_are_named(self):
        found, before = self.trained()
        self.assertIn("late_prefetch", found, found)
        self.assertNotIn("exposed_communication", found)
        late = found["late_prefetch"]
        self.assertIn("Longest waits for parameters", late["evidence"], "the groups that come late")
        self.assertTrue(late["changes"] or "none makes a step" in late["gain_basis"], late)
        after_found, after = self.trained("ahead")
        self.assertNotIn("late_prefetch", after_found)
        self.assertLess(after["prefetch"]["late"], before["prefetch"]["late"])


def advised(case, *options):
    recording = folder() / ("-".join((case, *options)) + ".zscope")
    runs.finish(runs.start(runs.attach(recording) + runs.torchrun(runs.HERE / "scripts" / "advised.py", case, *options)))
    return findings(recording), runs.figures(recording)


def bytes_of(summary, op):
    return sum(one["bytes"] for one in summary["comm"]["ops"] if one["op"] == op)


def peak_of(summary):
    return max(rank["memory"]["device"]["peak_bytes"] for rank in summary["ranks"])


def says_what_to_expect(test, finding):
    """The predicted step, or why none is predicted: a machine that is busy with other work may be beyond the model's limit."""
    basis = finding["gain_basis"]
    if basis.startswith("not predicted: "):
        test.assertIn("within which a replay is taken for the run", basis)
        return
    test.assertRegex(basis, r"^what-if: [0-9.]+ ms become [0-9.]+ ms")
    test.assertRegex(basis, r"replayed as recorded a step is [+-][0-9.]+ % off")


@slow
class Accumulates(unittest.TestCase):
    """Four micro-steps that each reduce, and what the finding says about them: a quarter of the bytes, which is its cost. Bytes and
    memory are counted; times are the machine's, which does other work too."""

    def followed(self, case, op, all_reduces, key):
        found, before = advised(case)
        self.assertIn("accumulated_reductions", found)
        self.assertEqual(found["accumulated_reductions"]["changes"], [{"key": key, "value": "true"}])
        says_what_to_expect(self, found["accumulated_reductions"])
        cost = found["accumulated_reductions"]["cost_bytes"]
        after_found, after = advised(case, "followed")
        self.assertNotIn("accumulated_reductions", after_found)
        saved = bytes_of(before, op) / before["steps_measured"] - bytes_of(after, op) / after["steps_measured"]
        self.assertEqual(saved * (2 if all_reduces else 1), cost)
        self.assertEqual(4 * bytes_of(after, op) / after["steps_measured"], bytes_of(before, op) / before["steps_measured"])
        return found["accumulated_reductions"], peak_of(after) - peak_of(before)

    def test_ddp_without_synchronization_until_the_last(self):
        found, more = self.followed("accumulate_ddp", "all_reduce", True,
                                    "DistributedDataParallel.reduce_in_last_micro_step_only")
        self.assertIn("no_sync()", found["next_step"])
        self.assertIn("it takes no more memory", found["next_step"])
        self.assertLessEqual(more, 0)

    def test_fsdp2_without_synchronization_until_the_last(self):
        found, more = self.followed("accumulate_fsdp2", "reduce_scatter", False, "fully_shard.reduce_in_last_micro_step_only")
        self.assertIn("set_requires_gradient_sync(False)", found["next_step"])
        number, unit = re.search(r"up to ([0-9.]+) (.iB) more", found["next_step"]).groups()
        self.assertLessEqual(more, 1.01 * float(number) * {"KiB": 1 << 10, "MiB": 1 << 20}[unit])


@slow
class Diverges(unittest.TestCase):
    def test_a_loss_that_becomes_nan(self):
        """Of bf16 and f32 no step is skipped, and FSDP2 looks at no gradient: the loss alone says it."""
        found, summary = advised("diverge_fsdp2")
        self.assertIn("divergence", found)
        self.assertIn("not finite", found["divergence"]["evidence"])
        self.assertIn("learning rate", found["divergence"]["next_step"])
        after_found, after = advised("diverge_fsdp2", "followed")
        self.assertNotIn("divergence", after_found)
        self.assertLess(after["loss"][-1], after["loss"][0])


@slow
class HeldAfterUse(unittest.TestCase):
    def test_fsdp2_groups_that_are_not_resharded(self):
        found, before = advised("held_fsdp2")
        self.assertIn("held_after_use", found)
        self.assertIn("reshard_after_forward=True", found["held_after_use"]["next_step"])
        self.assertIn({"key": "fully_shard.reshard_after_forward", "value": "true"}, found["held_after_use"]["changes"])
        self.assertRegex(found["held_after_use"]["gain_basis"], "^not predicted: ")
        after_found, after = advised("held_fsdp2", "followed")
        self.assertNotIn("held_after_use", after_found)
        # What it names is gone from the peak, which then lies elsewhere.
        self.assertLess(peak_of(after), peak_of(before))
        self.assertLessEqual(peak_of(before) - peak_of(after), found["held_after_use"]["cost_bytes"])
        # One more gather of each layer in the backward.
        self.assertGreater(bytes_of(after, "all_gather"), bytes_of(before, "all_gather"))


if __name__ == "__main__":
    unittest.main()
