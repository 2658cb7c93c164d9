#!/usr/bin/env python3
"""A run on CUDA as a user makes it, with ranks that train over the CUDA runtime of host threads: what CUPTI's records become
on their way to the summary, against what the ranks tell themselves and against the same run on the CPU.

Usage: run_test.py BIN_FOLDER SOURCE_ROOT [unittest arguments]
"""
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "cli"))
from command_line import ROOT, main, read, said  # noqa: E402

STEPS = 6


def run(folder, name, *more):
    recording = pathlib.Path(folder) / f"{name}.zscope"
    said("run", "--config", ROOT / "samples/stage3.json", "--ranks", 2, "--model", "mlp", "--data", "golden:mlp", "--steps",
         STEPS, *more, "--record", recording)
    return recording, read("summary", recording)


def spans(recording, folder):
    """Slices of the Perfetto export by thread's name and rank."""
    out = pathlib.Path(folder) / "trace.json"
    said("export", recording, "--format", "perfetto-json", "-o", out)
    return json.loads(out.read_text())


class HostCudaRun(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.cpu_recording, cls.cpu = run(cls.folder.name, "cpu", "--device", "cpu")
        cls.recording, cls.cuda = run(cls.folder.name, "cuda", "--device", "cuda:0", "--detail", "kernels")

    def test_the_run_is_the_same_as_on_the_cpu(self):
        self.assertEqual(self.cuda["loss"], self.cpu["loss"])
        self.assertEqual(self.cuda["dropped"], 0)

    def test_every_rank_has_its_gpu(self):
        for rank in self.cuda["ranks"]:
            gpu = rank["gpu"]
            self.assertIsNotNone(gpu, rank["rank"])
            self.assertEqual((gpu["records_dropped"], gpu["not_placed"], gpu["without_launch"]), (0, 0, 0))
            print(json.dumps(gpu, indent=1))


if __name__ == "__main__":
    main()
