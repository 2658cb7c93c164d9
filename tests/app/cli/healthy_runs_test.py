"""Runs that are really trained, of every stage, with no more ranks than cores: no finding warns of them. The others in which none
may are simulated (findings_test.py)."""
import os
import pathlib
import tempfile

import command_line
from command_line import read

RANKS = min(2, len(os.sched_getaffinity(0)))
ACCUMULATED = ("--set", "gradient_accumulation_steps=2")
ATTEMPTS = 3  # a machine that does something else for a while makes ranks wait for one another


def by_a_busy_machine(finding):
    """What other processes on the machine do to a run, and nothing else does: it is named as theirs."""
    return finding["id"] == "single_stop" or finding["id"] == "straggler" and "waited for a processor" in finding["evidence"]


class HealthyRuns(command_line.CommandTest):
    def test_no_finding_warns(self):
        runs = [(stage, ranks, ()) for stage in (0, 1, 2, 3) for ranks in (1, RANKS)]
        runs += [(stage, RANKS, ACCUMULATED) for stage in (1, 3)]
        self.assertEqual(len(runs), 10)
        with tempfile.TemporaryDirectory() as kept:
            for number, (stage, ranks, more) in enumerate(runs):
                with self.subTest(stage=stage, ranks=ranks, more=more):
                    for attempt in range(ATTEMPTS):
                        recording, _ = command_line.train(pathlib.Path(kept), f"run-{number}-{attempt}", stage, ranks, *more,
                                                          steps=40)
                        warned = [one for one in read("findings", recording)
                                  if one["severity"] != "info" and not by_a_busy_machine(one)]
                        if not warned:
                            break
                    self.assertEqual(warned, [])


if __name__ == "__main__":
    command_line.main()
