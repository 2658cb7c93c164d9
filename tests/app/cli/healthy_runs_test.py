"""Runs that are really trained, of every stage, with no more ranks than cores: no finding warns of them. The others in which none
may are simulated (findings_test.py)."""
import pathlib
import tempfile
import unittest

import command_line
from command_line import read

RANKS = 2
# Enough computation that sending a small model's bytes is no part of a step worth a word.
MODEL, DATA = "mlp", "golden:mlp"


class HealthyRuns(command_line.CommandTest):
    def test_no_finding_warns(self):
        with tempfile.TemporaryDirectory() as kept:
            for stage in (0, 1, 2, 3):
                for ranks in (1, RANKS):
                    with self.subTest(stage=stage, ranks=ranks):
                        recording, _ = command_line.train(pathlib.Path(kept), f"{stage}-{ranks}", stage, ranks, steps=40)
                        findings = read("findings", recording)
                        self.assertEqual([one for one in findings if one["severity"] != "info"], [])


if __name__ == "__main__":
    command_line.main()
