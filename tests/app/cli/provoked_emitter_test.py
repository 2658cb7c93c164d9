"""Causes within the emitting program, produced through the C interface (tests/instrumentation/c_api/provoked_run.c), and
the same program without them."""
import pathlib
import subprocess
import tempfile
import time
import unittest

import command_line
from command_line import BIN, ENV, read

MIB = 1 << 20
STEPS = 6


class Emitter(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = pathlib.Path(kept.name)

    def played(self, *cause):
        """Its findings by id, and its summary."""
        name = "-".join(cause)
        recording, endpoint = self.folder / f"{name}.zscope", f"ipc://{self.folder}/{name}.sock"
        collector = subprocess.Popen([BIN / "shardscope", "record", recording, "--listen", endpoint], env=ENV,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            self.assertIn("listening on", collector.stderr.readline())
            subprocess.run([BIN / "provoked_run", endpoint, *cause], env=ENV, check=True, timeout=60)
            collector.communicate(timeout=60)
        finally:
            collector.kill()
            collector.communicate()
        summary = read("summary", recording)
        self.assertEqual((summary["steps"], summary["dropped"], summary["lost_messages"]), (STEPS, 0, 0))
        return {one["id"]: one for one in read("findings", recording)}, summary

    def test_ends_whose_begins_are_never_emitted(self):
        found, summary = self.played("ends")
        self.assertEqual(summary["unmatched_ends"]["count"], STEPS)
        self.assertEqual(summary["unmatched_ends"]["explained"], 0)
        self.assertIn("unmatched_ends", found)
        self.assertIn("module", found["unmatched_ends"]["evidence"])
        self.assertIn(str(STEPS), found["unmatched_ends"]["evidence"])
        whole, after = self.played("ends", "without")
        self.assertEqual(after["unmatched_ends"]["count"], 0)
        self.assertNotIn("unmatched_ends", whole)

    def test_an_allocator_whose_blocks_are_pinned(self):
        """Each step's activations are larger than any free piece, and what is kept of them pins their block. With blocks that grow
        nothing is lost; what is cached for the next step, most of it in pieces, fits that."""
        found, _ = self.played("fragments")
        # When the last step has its activations, of each step before all but 0.5 MiB is free and too small.
        pinned = sum(32 + 4 * step - 0.5 for step in range(STEPS - 1)) * MIB
        self.assertIn("fragmentation", found)
        self.assertEqual(found["fragmentation"]["cost_bytes"], pinned)
        self.assertIn("expandable_segments", found["fragmentation"]["next_step"])
        self.assertNotIn("fragmentation", self.played("fragments", "without")[0])

    def test_a_gpu_that_waits_for_launches(self):
        """Kernels of 20 us, one launched every 39 us: the GPU waits 14 us of each 39 for the launch and 5 for its latency."""
        found, summary = self.played("host")
        self.assertIn("host_bound", found)
        bound = found["host_bound"]
        self.assertAlmostEqual(bound["cost_ms"], 199 * 0.014, delta=0.25)
        self.assertEqual(bound["changes"], [])
        self.assertAlmostEqual(summary["step_ms"]["median"], 8, delta=0.01)
        # All launched ahead, as a graph does: the step is as long as its kernels.
        ahead, after = self.played("host", "without")
        self.assertNotIn("host_bound", ahead)
        self.assertAlmostEqual(after["step_ms"]["median"], 200 * 0.02, delta=0.1)

    def test_a_rank_that_ended_and_is_waited_for(self):
        """Visible while the other rank is in its all-reduce; once both have ended there is nothing to see."""
        for cause in ((), ("without",)):
            recording, endpoint = self.folder / f"pair{len(cause)}.zscope", f"ipc://{self.folder}/pair{len(cause)}.sock"
            collector = subprocess.Popen([BIN / "shardscope", "record", recording, "--listen", endpoint], env=ENV,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            ranks = []
            try:
                self.assertIn("listening on", collector.stderr.readline())
                ranks = [subprocess.Popen([BIN / "provoked_run", endpoint, f"returns{rank}", *cause], env=ENV, stdin=subprocess.PIPE)
                         for rank in range(2)]
                self.assertEqual(ranks[1].wait(timeout=60), 0)
                if not cause:
                    found, deadline = {}, time.monotonic() + 60
                    while "hang" not in found:  # its last events may still be on their way
                        self.assertLess(time.monotonic(), deadline, found)
                        found = {one["id"]: one for one in read("findings", endpoint)}
                    self.assertEqual((found["hang"]["severity"], found["hang"]["rank"]), ("error", 1))
                    self.assertIn("Rank 0 waits in all-reduce #6", found["hang"]["evidence"])
                    self.assertIsNone(ranks[0].poll())
                ranks[0].stdin.close()
                self.assertEqual(ranks[0].wait(timeout=60), 0)
                collector.communicate(timeout=60)
            finally:
                for process in (*ranks, collector):
                    process.kill()
                    process.communicate()
        self.assertNotIn("hang", {one["id"] for one in read("findings", recording)})


if __name__ == "__main__":
    command_line.main()
