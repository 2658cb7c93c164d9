"""Causes that the machine of a real run provokes: events that are lost, a recording that is cut off, a core that is shared."""
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import unittest

import command_line
from command_line import ROOT, read

CORES = sorted(os.sched_getaffinity(0))


def findings(recording):
    """By id."""
    return {one["id"]: one for one in read("findings", recording)}


class Provoked(command_line.CommandTest):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = pathlib.Path(kept.name)

    def test_events_that_a_collector_does_not_take(self):
        """It is stopped while a rank emits more than its queue holds; where it is not stopped nothing is missing."""
        found, summary = self.stopped("stopped", 2, "--set", "shardscope.queue_bytes=65536")
        self.assertGreater(summary["dropped"], 0)
        self.assertIn(f"{summary['dropped']} events dropped", found["events_missing"]["evidence"])
        self.assertIn("give the collector a core of its own", found["events_missing"]["next_step"])
        found, summary = self.stopped("whole", 0)
        self.assertEqual(summary["dropped"], 0)
        self.assertNotIn("events_missing", found)

    def stopped(self, name, seconds, *more):
        """Findings and summary of a run whose collector is stopped for so long."""
        recording = self.folder / f"{name}.zscope"
        run = subprocess.Popen([command_line.BIN / "shardscope", "run", "--no-view", "--config", ROOT / "samples/stage3.json", "--ranks",
                                "1", "--model", "mlp", "--data", "golden:mlp", "--steps", "1500", "--record", recording, *more],
                               env=command_line.ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while not (recording.exists() and recording.stat().st_size > 0):
                self.assertIsNone(run.poll())
                time.sleep(0.01)
            run.send_signal(signal.SIGSTOP)
            time.sleep(seconds)
            run.send_signal(signal.SIGCONT)
            self.assertEqual(run.wait(timeout=120), 0)
        finally:
            run.kill()
            run.wait()
        return findings(recording), read("summary", recording)

    def test_a_recording_that_was_cut_off(self):
        recording, _ = command_line.train(self.folder, "whole", 2, 2)
        self.assertNotIn("recording_damaged", findings(recording))
        whole, cut = recording.read_bytes(), self.folder / "cut.zscope"
        cut.write_bytes(whole[:len(whole) * 2 // 3])
        problems = read("summary", cut)["problems"]
        self.assertTrue(problems)
        damaged = findings(cut)["recording_damaged"]
        self.assertEqual(damaged["severity"], "warning")
        self.assertIn(problems[0], damaged["evidence"])

    @unittest.skipIf(len(CORES) < 2, "needs a core for each of two ranks")
    def test_a_rank_that_shares_its_core(self):
        """With eight loops on the core of rank 1 of two; without them the rank is not late for its core. What else runs on this
        machine may take a part of it."""
        def waited_ms(straggler):
            found = re.search(r"Its threads waited for a processor for ([0-9.]+) ms of a step", straggler["evidence"])
            return float(found.group(1)) if found else 0

        shared, alone = self.pinned("shared", loops=8), self.pinned("alone", loops=0)
        self.assertIn("straggler", shared)
        self.assertEqual(shared["straggler"]["rank"], 1)
        self.assertGreater(waited_ms(shared["straggler"]), 0, shared["straggler"]["evidence"])
        self.assertIn("taskset", shared["straggler"]["next_step"])
        if "straggler" in alone and alone["straggler"]["rank"] == 1:
            self.assertLess(waited_ms(alone["straggler"]), 0.25 * waited_ms(shared["straggler"]), alone["straggler"]["evidence"])

    def pinned(self, name, loops):
        """Findings by id of a run whose rank R is on the R-th core, with so many loops on that of rank 1."""
        recording = self.folder / f"{name}.zscope"
        run = subprocess.Popen([command_line.BIN / "shardscope", "run", "--no-view", "--config", ROOT / "samples/stage2.json", "--ranks",
                                "2", "--model", "gpt-mini", "--steps", "60", "--record", recording], env=command_line.ENV,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        others = []
        try:
            pinned = {}
            while len(pinned) < 2:
                self.assertIsNone(run.poll(), "it ended before its ranks were found")
                for folder in command_line.processes_below(run.pid):
                    try:
                        if (folder / "comm").read_text() != "zero_train\n":
                            continue
                        rank = re.search(rb"OMPI_COMM_WORLD_RANK=(\d)", (folder / "environ").read_bytes())
                        # A thread that is begun later has the cores of the one that begins it.
                        for task in (folder / "task").iterdir() if rank else ():
                            os.sched_setaffinity(int(task.name), {CORES[int(rank[1])]})
                            pinned[int(rank[1])] = folder
                    except (FileNotFoundError, ProcessLookupError):
                        continue
            others = [subprocess.Popen(["taskset", "-c", str(CORES[1]), "sh", "-c", "while :; do :; done"]) for _ in range(loops)]
            self.assertEqual(run.wait(timeout=250), 0)
        finally:
            for process in (*others, run):
                process.kill()
                process.wait()
        return findings(recording)


if __name__ == "__main__":
    command_line.main()
