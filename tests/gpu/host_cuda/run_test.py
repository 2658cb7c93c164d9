#!/usr/bin/env python3
"""A run on CUDA as a user makes it, with ranks that train over the CUDA runtime of host threads: what CUPTI's records become
on their way to the summary and the exports, against what the ranks tell themselves and against the same run on the CPU.

Usage: run_test.py BIN_FOLDER SOURCE_ROOT [unittest arguments]
"""
import collections
import pathlib
import sqlite3
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "app" / "cli"))
from command_line import ROOT, main, read, said  # noqa: E402

STEPS = 6
RANKS = 2


def run(folder, name, *more):
    recording = pathlib.Path(folder) / f"{name}.zscope"
    said("run", "--config", ROOT / "samples/stage3.json", "--ranks", RANKS, "--model", "gpt-mini", "--data", "golden:gpt",
         "--steps", STEPS, *more, "--record", recording)
    return recording, read("summary", recording)


def tables(recording, folder):
    file = pathlib.Path(folder) / "run.sqlite"
    if not file.exists():
        said("export", recording, "--format", "sqlite", "-o", file)
    return sqlite3.connect(file)


class HostCudaRun(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        _, cls.cpu = run(cls.folder, "cpu", "--device", "cpu")
        cls.recording, cls.cuda = run(cls.folder, "cuda", "--device", "cuda:0", "--detail", "kernels")

    def test_it_trains_and_moves_what_the_cpu_does(self):
        self.assertEqual(self.cuda["dropped"], 0)
        self.assertEqual(self.cuda["unmatched_ends"]["count"], 0)
        self.assertEqual(self.cuda["run"]["config"]["shardscope"]["detail"], "kernels")
        self.assertEqual(said("summary", self.recording).count("times of the GPU's streams are right to"), RANKS)
        for a, b in zip(self.cuda["loss"], self.cpu["loss"], strict=True):
            self.assertAlmostEqual(a, b, delta=2e-5 * abs(b))
        for figure in ("elements_per_step", "extras", "unexplained_elements_per_step"):
            self.assertEqual(self.cuda["comm"][figure], self.cpu["comm"][figure])

    def test_the_state_of_each_ranks_gpu_is_sampled(self):
        for rank in self.cuda["ranks"]:
            self.assertGreaterEqual(rank["gpu_state"]["samples"], 1)
            self.assertEqual(rank["gpu_state"]["sm_mhz"], 1410)
            self.assertEqual(rank["gpu_state"]["power_limited"], rank["gpu_state"]["samples"])
        for rank in self.cpu["ranks"]:
            self.assertIsNone(rank["gpu_state"])

    def test_every_kernel_and_copy_is_recorded_in_every_step(self):
        for rank in self.cuda["ranks"]:
            gpu = rank["gpu"]
            self.assertIsNotNone(gpu)
            self.assertEqual((gpu["records_dropped"], gpu["without_launch"]), (0, 0))
            self.assertEqual(gpu["steps"], STEPS - 1)  # all that are summed up
            for stream in gpu["streams"].values():
                total = stream["busy_ms"] + sum(stream["idle_ms"].values())
                self.assertAlmostEqual(total, rank["time_ms"]["total"], delta=1e-3)
                self.assertEqual(stream["idle_ms"]["unexplained"], 0)
        kernels = collections.Counter()
        with tables(self.recording, self.folder) as db:
            for device, name in db.execute("SELECT deviceId, value FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds ON "
                                           "shortName = id"):
                kernels[device, name] += 1
        # Each rank does the same, the same number of times in every step.
        names = {name for _, name in kernels}
        self.assertTrue({"adamw_step", "attention_forward", "linear_backward_weight"} <= names, names)
        for name in names:
            self.assertEqual(kernels[0, name], kernels[1, name], name)
            self.assertEqual(kernels[0, name] % STEPS, 0, name)


if __name__ == "__main__":
    main()
