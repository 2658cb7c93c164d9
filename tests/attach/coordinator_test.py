"""The decisions of DeepSpeed's coordinator in an attached run are those that were recorded from DeepSpeed itself
(tests/golden/coordinator.json, which golden_check compares with our own planner, and coordinator_counters.json): every fetch,
prefetch, release, invalidation and flush of every micro-step, in order, with bytes, and DeepSpeed's eight counters."""
import unittest

import coordinator_rank
from decisions import GoldenCases, bytes_reduced, comparable, gathers
from pairs import folder


def setUpModule():
    folder()


class Coordinator(GoldenCases):
    def test_every_case_is_trained(self):
        ids = {case["id"] for world in self.WORLDS for _, case in coordinator_rank.cases_of(world)}
        self.assertEqual(ids, {*(f"T{n:02}" for n in (0, 1, 4, 12, 16, 20, 28)), "I0", *(f"C{n:02}" for n in range(12)), "P00", "P08"})

    def test_fetches_prefetches_and_releases(self):
        self.check(lambda world, model, case, index, got, expected: self.assertEqual(got["events"], comparable(expected["events"])))

    def test_what_is_whole_at_the_beginning(self):
        self.check(lambda world, model, case, index, got, expected:
                   self.assertEqual(got["available_at_start"], expected["available_at_start"]))

    def test_gathers_and_their_bytes(self):
        def compare(world, model, case, index, got, expected):
            if world > 1:  # DeepSpeed gathers from one rank without a collective
                made = [[size, sorted(params)] for size, params in got["gathers"].values()]
                self.assertEqual(made, gathers(expected["events"], model, world))

        self.check(compare)

    def test_flushes_and_their_bytes(self):
        reduced = []

        def compare(world, model, case, index, got, expected):
            if "reduce_flushes" in expected:
                self.assertEqual(got["reduce_flushes"], expected["reduce_flushes"])
                self.assertEqual(got["reduced"], bytes_reduced(expected["reduce_flushes"], model, world))
                reduced.extend(got["reduced"])

        self.check(compare)
        self.assertGreater(len(reduced), 100)

    def test_the_eight_counters(self):
        names = set()

        def compare(world, model, case, index, got, expected):
            if "counters" in expected:
                self.assertEqual(got["counters"], expected["counters"])
                names.update(got["counters"])

        self.check(compare)
        self.assertEqual(len(names), 8)


if __name__ == "__main__":
    unittest.main()
