"""Healthy trainings of real frameworks: no finding warns of them.

    tests/attach/run healthy_test
"""
import json
import subprocess
import unittest

import runs
from pairs import folder

SCRIPT = runs.HERE / "scripts" / "healthy.py"
ATTEMPTS = 3  # a machine that does something else for a while makes communication slow


def setUpModule():
    folder()


def is_of_the_machine(finding):
    """It says itself that the host held a rank up: once, or by what else runs on its processors."""
    return finding["id"] == "single_stop" or finding["id"] == "straggler" and "waited for a processor" in finding["evidence"]


class Healthy(unittest.TestCase):
    def warnings(self, framework, attempt):
        recording = folder() / f"healthy-{framework}-{attempt}.zscope"
        runs.finish(runs.start(runs.attach(recording) + runs.torchrun(SCRIPT, framework)))
        done = subprocess.run([runs.SHARDSCOPE, "findings", "--json", recording], capture_output=True, text=True, check=True)
        return [(one["id"], one["title"], one["evidence"]) for one in json.loads(done.stdout) if one["severity"] != "info"
                and not is_of_the_machine(one)]

    def no_finding_warns(self, framework):
        for attempt in range(ATTEMPTS):
            warned = self.warnings(framework, attempt)
            if not warned:
                return
        self.fail(f"{framework}: {warned}")

    def test_ddp(self):
        self.no_finding_warns("ddp")

    def test_fsdp2(self):
        self.no_finding_warns("fsdp2")

    def test_fsdp1(self):
        self.no_finding_warns("fsdp1")

    def test_deepspeed_0(self):
        self.no_finding_warns("zero0")

    def test_deepspeed_1(self):
        self.no_finding_warns("zero1")

    def test_deepspeed_2(self):
        self.no_finding_warns("zero2")

    def test_deepspeed_3(self):
        self.no_finding_warns("zero3")


if __name__ == "__main__":
    unittest.main()
