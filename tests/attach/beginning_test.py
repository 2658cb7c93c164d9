"""What ranks do before a model that is trained starts the run: their collectives are kept for it."""
import unittest

import runs
from pairs import folder

SCRIPT = runs.HERE / "scripts" / "beginning.py"
RANKS = 3
BROADCAST, ALL_REDUCE = 4, 3


def setUpModule():
    runs.build_package()
    folder()


def trained(name, *options):
    recording, plain, attached = (folder() / f"beginning-{name}{end}" for end in (".zscope", "-plain", "-attached"))
    runs.finish(runs.start(runs.torchrun(SCRIPT, plain, *options, ranks=RANKS)))
    output = runs.finish(runs.start(runs.attach(recording) + runs.torchrun(SCRIPT, attached, *options, ranks=RANKS)), expected=None)
    assert runs.results(plain, RANKS) == runs.results(attached, RANKS), output
    return recording, output


class Beginning(unittest.TestCase):
    def test_collectives_from_before_the_run_are_in_it_by_group_and_in_order(self):
        made, output = trained("trains", "trains")
        self.assertNotIn("no model was trained", output)
        recording, summary = runs.read(made), runs.figures(made)
        self.assertEqual((summary["dropped"], summary["unmatched_ends"]["count"], summary["steps"]), (0, 0, 2))
        for rank in range(RANKS):
            first = int(recording.spans_of(rank, "step_begin")[0]["begin_ns"])
            issued = recording.of(rank, "collective_submitted")
            before = [e for e in issued if int(e["at_ns"]) < first]
            ops = [int(e["code"]) for e in before if int(e["v1"]) == 32]
            self.assertEqual(ops[:4 if rank < 2 else 2], [BROADCAST, ALL_REDUCE, ALL_REDUCE, ALL_REDUCE] if rank < 2 else [BROADCAST, ALL_REDUCE])
            groups = [int(e["a"]) >> 24 for e in issued if int(e["a"]) >> 24]
            self.assertEqual(groups, [1, 2, 2] if rank < 2 else [], "the second group is the same one in the run")
            world = [int(e["a"]) for e in issued if not int(e["a"]) >> 24]
            self.assertEqual(world, list(range(len(world))), "one sequence from the beginning on")
            # DistributedDataParallel compares the ranks' shapes and broadcasts the model when it is made.
            self.assertGreater(len([e for e in before if int(e["code"]) == BROADCAST]), 1)
            self.assertEqual(len(recording.spans_of(rank, "collective_begin")), len(issued))

    def test_without_a_training_it_is_said_once(self):
        _, output = trained("alone")
        self.assertEqual(output.count("no model was trained"), 1, output)


if __name__ == "__main__":
    unittest.main()
