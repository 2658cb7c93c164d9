#!/usr/bin/env python3
"""golden_check says no to files that were altered, and why.

Usage: golden_damaged_test.py GOLDEN_CHECK FOLDER_OF_GOLDEN_FILES
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK, GOLDEN = sys.argv[1], pathlib.Path(sys.argv[2])


def unknown_kind(file):
    file["cases"][0]["kind"] = "zero4"


def other_bytes(file):
    file["cases"][0]["rows"][0]["gpu_bytes"] += 1


def no_runs(file):
    file["traces"], file["invalidation"] = [], []


def other_shape(file):
    next(iter(file["models"].values()))["params"][0]["shape"][0] += 1


def other_steps(file):
    file["cases"][0]["steps"] += 1


def other_scale(file):
    file["cases"][0]["scale_after"][-1] *= 2


class Damaged(unittest.TestCase):
    def check(self, name, alter, word):
        file = json.loads((GOLDEN / f"{name}.json").read_text())
        for altered in (False, True):
            if altered:
                alter(file)
            with tempfile.NamedTemporaryFile("w", suffix=".json") as copy:
                json.dump(file, copy)
                copy.flush()
                result = subprocess.run([CHECK, copy.name], text=True, capture_output=True, timeout=300)
            self.assertEqual(result.returncode != 0, altered, result.stdout[-2000:])
            if altered:
                self.assertIn(word, "".join(line for line in result.stdout.splitlines() if not line.startswith("  agree")))

    def test_estimator(self):
        self.check("estimator", unknown_kind, "zero4")
        self.check("estimator", other_bytes, "gpu_bytes")

    def test_coordinator(self):
        self.check("coordinator", no_runs, "nothing was compared")

    def test_stage12(self):
        self.check("stage12", other_shape, "its shape holds")

    def test_loss_scale(self):
        self.check("loss_scale", other_steps, "steps is")
        self.check("loss_scale", other_scale, "scale_after")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=1)
