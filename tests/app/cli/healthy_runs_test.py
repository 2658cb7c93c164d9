"""Runs that are really trained, of every stage, with no more ranks than cores: no finding warns of them. The others in which none
may are simulated (findings_test.py)."""
import os
import pathlib
import tempfile
import unittest

import command_line
from command_line import read

RANKS = min(2, len(os.sched_getaffinity(0)))


class HealthyRuns(command_line.CommandTest):
    def warnings(self, folder, stage, ranks, attempt):
        recording, _ = command_line.train(folder, f"{stage}-{ranks}-{attempt}", stage, ranks, steps=40)
        return [one for one in read("findings", recording) if one["severity"] != "info"]

    def test_no_finding_warns(self):
        with tempfile.TemporaryDirectory() as kept:
            for stage in (0, 1, 2, 3):
                for ranks in sorted({1, RANKS}):
                    with self.subTest(stage=stage, ranks=ranks):
                        # A machine that did something else for a moment did so once.
                        warned = self.warnings(pathlib.Path(kept), stage, ranks, 0)
                        if warned:
                            warned = self.warnings(pathlib.Path(kept), stage, ranks, 1)
                        self.assertEqual(warned, [])


if __name__ == "__main__":
    command_line.main()
