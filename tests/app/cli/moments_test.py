#!/usr/bin/env python3
"""What the recorder itself takes for unusual: the moments that it keeps, and the detail that it raises after them.

Usage: moments_test.py BIN_FOLDER SOURCE_ROOT [unittest arguments]
"""
import bisect
import contextlib
import csv
import json
import pathlib
import re
import signal
import sqlite3
import subprocess
import tempfile
import time

from command_line import BIN, ENV, ROOT, CommandTest, main, said

FP16 = {"train_micro_batch_size_per_gpu": 1, "fp16": {"enabled": True, "initial_scale_power": 32}, "zero_optimization": {"stage": 3},
        "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}}
DIVERGES = {"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3}, "optimizer": {"type": "AdamW", "params": {"lr": 1e6}}}


class Moments(CommandTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.recording = self.folder / "run.zscope"

    def rows(self, query):
        with contextlib.closing(sqlite3.connect(self.recording)) as database:
            return database.execute(query).fetchall()

    def record(self, *limits, around="1s"):
        """Moments are short, so that what is not kept comes soon."""
        self.recorder = subprocess.Popen([BIN / "shardscope", "record", self.recording, "--listen", "tcp://127.0.0.1:0", "--max-age", "3s",
                                          "--moment-around", around, *map(str, limits)], env=ENV, text=True, stdin=subprocess.DEVNULL,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(self.recorder.stderr.close)
        self.addCleanup(self.recorder.kill)
        return re.search(r"listening on (tcp://\S+\d)", self.recorder.stderr.readline()).group(1)

    def train(self, endpoint, settings):
        """Without an end in this test."""
        config = self.folder / "ds.json"
        config.write_text(json.dumps(settings))
        self.training = subprocess.Popen([BIN / "zero_train", "--config", config, "--model", "mlp", "--data", "golden:mlp", "--steps",
                                          "10000000", "--publish", endpoint, "--quiet"], env=ENV, stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL)
        self.addCleanup(self.training.wait)
        self.addCleanup(self.training.kill)

    def wait_for(self, query, seconds=90):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            with contextlib.suppress(sqlite3.OperationalError):  # no tables yet
                if self.rows(query):
                    return
            time.sleep(0.2)
        self.fail(f"nothing came of {query}")

    def end(self):
        self.training.kill()
        self.training.wait()
        self.recorder.send_signal(signal.SIGINT)
        self.recorder.wait(60)

    def kept_moment(self, kind):
        """Ends the run once detail from after the first moment has gone. Its step, of which every chunk is still there."""
        self.wait_for(f"SELECT 1 FROM moments WHERE kind = '{kind}'")
        self.wait_for("SELECT 1 FROM sums WHERE begin_ns > (SELECT end_ns FROM moments ORDER BY id LIMIT 1)")
        self.end()
        step, at_ns, end_ns = self.rows(f"SELECT step, at_ns, end_ns FROM moments WHERE kind = '{kind}' ORDER BY id LIMIT 1")[0]
        kept = self.rows(f"""SELECT count(*) FROM chunks WHERE begin_ns + clock_offset_ns < {end_ns}
                             AND end_ns + clock_offset_ns > {at_ns}""")[0][0]
        self.assertGreater(kept, 0, "the events around it are there")
        self.assertEqual(self.rows(f"SELECT 1 FROM sums WHERE begin_ns > {at_ns} AND end_ns < {end_ns}"), [], "all of it")
        return step

    def test_a_skipped_step(self):
        self.train(self.record("--moment-triggers", "skipped_step"), FP16)
        step = self.kept_moment("skipped_step")
        self.assertIn((step,), self.rows("SELECT step FROM steps WHERE skipped"))
        self.assertEqual({kind for kind, in self.rows("SELECT kind FROM moments")}, {"skipped_step"})

    def test_a_loss_that_is_not_finite(self):
        self.train(self.record("--moment-triggers", "loss_not_finite"), DIVERGES)
        step = self.kept_moment("loss_not_finite")
        before, here = (self.rows(f"SELECT loss FROM steps WHERE step = {number}")[0][0] for number in (step - 1, step))
        self.assertLess(abs(before), float("inf"))
        self.assertNotIn(here, (1.0, before))
        self.assertTrue(here is None or abs(here) == float("inf"), here)
        self.assertIn("divergence", [one["id"] for one in json.loads(said("findings", self.recording, "--json"))])

    def test_a_run_that_hangs(self):
        self.train(self.record("--moment-triggers", "stalled"), FP16)
        self.wait_for("SELECT 1 FROM chunks")
        time.sleep(2)
        self.training.send_signal(signal.SIGSTOP)
        try:
            self.wait_for("SELECT 1 FROM moments WHERE kind = 'stalled'")
        finally:
            self.training.send_signal(signal.SIGCONT)
        self.kept_moment("stalled")
        (text,), = self.rows("SELECT text FROM moments WHERE kind = 'stalled' ORDER BY id LIMIT 1")
        self.assertRegex(text, r"\d+ s")

    def test_memory_near_its_limit(self):
        self.train(self.record("--moment-triggers", "memory_limit", "--memory-limit", "2kB"), FP16)
        self.kept_moment("memory_limit")
        (rank, text), = self.rows("SELECT rank, text FROM moments WHERE kind = 'memory_limit'")
        self.assertEqual(rank, 0)
        self.assertRegex(text, r"rank 0 held .* of its device's 1.95 KiB")

    def test_memory_far_from_its_limit(self):
        self.train(self.record("--memory-limit", "24GiB"), FP16)
        self.wait_for("SELECT 1 FROM moments WHERE kind = 'skipped_step'")
        self.wait_for("SELECT 1 FROM sums")
        self.end()
        self.assertNotIn(("memory_limit",), self.rows("SELECT kind FROM moments"))

    def test_the_steps_after_a_moment_are_recorded_in_detail(self):
        """Without statuses of parameters before it; with them for so many steps and the ones under way when the recorder looks."""
        steps = 300
        healthy = {**DIVERGES, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}}
        self.train(self.record("--moment-triggers", "rank_failed", "--raise-detail", "params", "--raise-steps", steps, around="1h"), healthy)
        self.wait_for("SELECT 1 FROM messages WHERE text LIKE '%to steps by the recorder'")
        time.sleep(2)
        self.recorder.send_signal(signal.SIGUSR2)
        # The first is of the recorder's start.
        self.wait_for("SELECT 1 FROM messages WHERE text LIKE '%from params to steps by the recorder' LIMIT 1 OFFSET 1")
        time.sleep(2)
        self.end()
        tables = self.folder / "csv"
        said("export", self.recording, "--format", "csv", "-o", tables)

        def table(name):
            with open(tables / name, encoding="utf-8", newline="") as file:
                return list(csv.DictReader(file))

        statuses = sorted(int(row["at_ns"]) for row in table("events.csv") if row["kind"] == "param_status")
        ended = [(int(row["begin_ns"]), int(row["end_ns"])) for row in table("steps.csv") if row["end_ns"]]
        (at_ns,), = self.rows("SELECT at_ns - (SELECT value FROM meta WHERE key = 'origin_ns') FROM moments WHERE kind = 'request'")

        def in_detail(spans):
            return [bisect.bisect_left(statuses, end) > bisect.bisect_left(statuses, begin) for begin, end in spans]

        before = in_detail([span for span in ended if at_ns - 1e9 < span[0] and span[1] < at_ns])
        self.assertGreater(len(before), 0)
        self.assertNotIn(True, before)
        after = in_detail([span for span in ended if span[0] > at_ns])
        first, count = after.index(True), after.count(True)
        self.assertGreaterEqual(count, steps)
        self.assertEqual(after[first:first + count], [True] * count, "one after another")
        self.assertFalse(after[-1], "and lowered again")

    def test_wrong_options(self):
        file = self.folder / "none.zscope"
        self.refused(("record", file, "--max-age", "10m", "--moment-triggers", "memory_limit"), "--moment-triggers memory_limit needs",
                     "--memory-limit")
        self.refused(("record", file, "--memory-limit", "24GiB"), "--memory-limit needs --max-age or --max-size")
        self.refused(("record", file, "--raise-detail", "params"), "--raise-detail needs --max-age or --max-size")
        self.refused(("record", file, "--max-age", "10m", "--moments", "0", "--raise-detail", "params"), "--moments 0 keeps none")
        self.refused(("record", file, "--max-age", "10m", "--raise-steps", "3"), "--raise-detail")
        self.refused(("collect", "--upstream", "tcp://127.0.0.1:9", "--record", file, "--max-age", "10m", "--raise-detail", "params"),
                     "--raise-detail", "tcp://127.0.0.1:9")
        self.assertFalse(file.exists())


if __name__ == "__main__":
    main()
