"""Smaller parts of frameworks: DeepSpeed 3 on one rank, what it releases at the end of a backward, parameters that come late, and
optimizers that divide their states beside DistributedDataParallel."""
import unittest

import runs
from pairs import folder

SCRIPT = runs.HERE / "scripts" / "details.py"
RELEASE = 4


def setUpModule():
    runs.build_package()
    folder()


def trained(kind, ranks):
    recording, plain, attached = (folder() / f"details-{kind}{end}" for end in (".zscope", "-plain", "-attached"))
    runs.finish(runs.start(runs.torchrun(SCRIPT, kind, plain, ranks=ranks)))
    output = runs.finish(runs.start(runs.attach(recording) + runs.torchrun(SCRIPT, kind, attached, ranks=ranks)))
    assert runs.results(plain, ranks) == runs.results(attached, ranks), output
    assert "is off" not in output and "not recorded" not in output, output
    return runs.read(recording), runs.figures(recording)


class DeepSpeed3(unittest.TestCase):
    def test_on_one_rank_nothing_is_gathered_but_waited_for(self):
        recording, _ = trained("one", 1)
        waits = recording.spans_of(0, "fetch_wait_begin")
        self.assertGreater(len(waits), 0)
        self.assertTrue(all(int(wait["end_ns"]) >= int(wait["begin_ns"]) and int(wait["v0"]) > 0 for wait in waits))

    def test_modules_without_a_backward_of_their_own_are_released_at_its_end_and_late_ones_are_described(self):
        recording, summary = trained("late", 2)
        modules = {row["path"]: row["module"] for row in recording.modules}
        self.assertIn("late", modules)
        names = {row["name"]: row["param"] for row in recording.params}
        self.assertIn("late.weight", names)
        slices = [row for row in recording.slices if row["param"] == names["late.weight"]]
        self.assertEqual(sorted((row["rank"], row["elems"]) for row in slices), [("0", "128"), ("1", "128")])
        for rank in range(2):
            changes = recording.of(rank, "param_status")
            self.assertIn(2, [int(e["code"]) & 7 for e in changes if e["a"] == names["late.weight"]], "it is gathered")
            first = [e for e in changes if e["a"] == names["first.weight"] and int(e["code"]) & 7 == 0]
            self.assertIn(RELEASE, {int(e["code"]) >> 4 for e in first})
        self.assertEqual(summary["unmatched_ends"]["count"], 0)


class ZeroRedundancy(unittest.TestCase):
    def test_it_is_stage_1_and_each_parameter_has_one_owner(self):
        recording, summary = trained("redundancy", 2)
        self.assertEqual(summary["run"]["stage"], 1)
        self.assertEqual(sorted(row["param"] for row in recording.slices), sorted(row["param"] for row in recording.params))
        elems = {rank: sum(int(row["elems"]) for row in recording.slices if int(row["rank"]) == rank) for rank in range(2)}
        self.assertTrue(all(elems.values()), elems)
        model = summary["memory_model"]
        self.assertIn("/", model["expression"])
        self.assertLess(abs(model["excess_pct"]), 10, model)


if __name__ == "__main__":
    unittest.main()
