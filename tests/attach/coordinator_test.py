"""The decisions of DeepSpeed's coordinator in an attached run are those that were recorded from DeepSpeed itself
(tests/golden/coordinator.json, which golden_check compares with our own planner, and coordinator_counters.json): every fetch,
prefetch, release, invalidation and flush of every micro-step, in order, with bytes, and DeepSpeed's eight counters."""
import functools
import unittest

import coordinator_rank
import runs
from decisions import Decisions, bytes_gathered, bytes_reduced, comparable
from pairs import folder

WORLDS = (1, 2, 3)


def setUpModule():
    folder()


@functools.cache
def decided(world):
    """[[iterations of each case] of each rank]; all cases are trained in one run."""
    path = folder() / f"coordinator{world}.zscope"
    runs.finish(runs.start(runs.attach(path) + runs.torchrun(runs.HERE / "coordinator_rank.py", ranks=world), deepspeed="0.19.6"))
    recording, cases = runs.read(path), coordinator_rank.cases_of(world)
    of_ranks = []
    for rank in range(world):
        left = iter(Decisions(recording, rank, [model for model, _ in cases]).iterations)
        of_ranks.append([[next(left) for _ in coordinator_rank.iterations_of(case)] for _, case in cases])
        if next(left, None) is not None:
            raise AssertionError("more micro-steps than the cases have")
    return of_ranks


class Coordinator(unittest.TestCase):
    def check(self, compare):
        """compare(world, model, the recording's, the golden file's) of every iteration of every case on every rank."""
        for world in WORLDS:
            for rank, of_cases in enumerate(decided(world)):
                for (model, case), iterations in zip(coordinator_rank.cases_of(world), of_cases, strict=True):
                    for index, (got, expected) in enumerate(zip(iterations, coordinator_rank.iterations_of(case), strict=True)):
                        with self.subTest(case=case["id"], world=world, rank=rank, iteration=index):
                            compare(world, model, got, expected)

    def test_every_case_is_trained(self):
        ids = [case["id"] for world in WORLDS for _, case in coordinator_rank.cases_of(world)]
        self.assertEqual(sorted(ids), sorted([*(f"T{n:02}" for n in (0, 1, 4, 12, 16, 20, 28)), "I0", *(f"C{n:02}" for n in range(12))]))

    def test_fetches_prefetches_and_releases(self):
        self.check(lambda world, model, got, expected: self.assertEqual(got["events"], comparable(expected["events"])))

    def test_what_is_whole_at_the_beginning(self):
        self.check(lambda world, model, got, expected:
                   self.assertEqual(got["available_at_start"], expected["available_at_start"]))

    def test_bytes_of_gathers(self):
        def compare(world, model, got, expected):
            if world > 1:  # DeepSpeed gathers from one rank without a collective
                self.assertEqual(got["gathered"], bytes_gathered(expected["events"], model, world))

        self.check(compare)

    def test_flushes_and_their_bytes(self):
        reduced = []

        def compare(world, model, got, expected):
            if "reduce_flushes" in expected:
                self.assertEqual(got["reduce_flushes"], expected["reduce_flushes"])
                self.assertEqual(got["reduced"], bytes_reduced(expected["reduce_flushes"], model, world))
                reduced.extend(got["reduced"])

        self.check(compare)
        self.assertGreater(len(reduced), 100)

    def test_the_eight_counters(self):
        names = set()

        def compare(world, model, got, expected):
            if "counters" in expected:
                self.assertEqual(got["counters"], expected["counters"])
                names.update(got["counters"])

        self.check(compare)
        self.assertEqual(len(names), 8)


if __name__ == "__main__":
    unittest.main()
