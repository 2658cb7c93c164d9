#!/usr/bin/env python3
"""`watch` beside a live run: its lines, its metrics, its triggers.

Usage: watch_test.py BIN_FOLDER SOURCE_ROOT [unittest arguments]
"""
import contextlib
import json
import pathlib
import re
import sqlite3
import subprocess
import tempfile
import time
import unittest
import urllib.request

from command_line import BIN, ENV, ROOT, CommandTest, main, read, said


class Watch(CommandTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, *arguments):
        process = subprocess.Popen([BIN / "shardscope", *map(str, arguments)], env=ENV, text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        return process

    def test_it_says_that_it_waits_and_which_runs_there_are(self):
        recorder = self.start("record", self.folder / "other.zscope", "--listen", "tcp://127.0.0.1:0")
        other = re.search(r"tcp://\S+\d", recorder.stderr.readline()).group()
        watch = self.start("watch", "tcp://127.0.0.1:9")
        lines = [watch.stderr.readline(), watch.stderr.readline()]
        waiting = next(line for line in lines if "waiting until one does" in line)
        self.assertIn("Ctrl-C", waiting)
        self.assertIn(f"{other} (shardscope record ", waiting)
        self.refused(("why", "tcp://127.0.0.1:9", "--wait", 0.5), "no collector answered within 0.5 s", other)
        self.refused(("keep", "tcp://127.0.0.1:9", "--wait", 0.5), "no collector answered within 0.5 s", other)

    def test_sizes_of_a_memory_limit(self):
        self.refused(("watch", "tcp://127.0.0.1:9", "--memory-limit", "24"), "--memory-limit: 24: write it as", "24GiB")
        watch = self.start("watch", "tcp://127.0.0.1:9", "--memory-limit", "24GiB")
        self.assertIn("tcp://127.0.0.1:9", watch.stderr.readline())

    def test_a_run_is_watched_to_its_end(self):
        recording = self.folder / "run.zscope"
        recorder = self.start("record", recording, "--listen", "tcp://127.0.0.1:0")
        endpoint = re.search(r"tcp://\S+\d", recorder.stderr.readline()).group()
        marks = self.folder / "marks"
        watch = self.start("watch", endpoint, "--json", "--interval", "0.3", "--metrics", self.folder / "run.prom", "--prometheus",
                           "127.0.0.1:0", "--trigger", "skipped_step,loss_not_finite,rank_failed", "--on-trigger",
                           f'echo "$SHARDSCOPE_TRIGGER $SHARDSCOPE_TRIGGER_STEP" >> {marks}', "--raise-detail", "params")
        first = watch.stdout.readline()  # it has connected: no trigger is of before
        # Loss scales from 2^32 on: the first steps overflow.
        config = self.folder / "fp16.json"
        config.write_text(json.dumps({"train_micro_batch_size_per_gpu": 1, "fp16": {"enabled": True, "initial_scale_power": 32},
                                      "zero_optimization": {"stage": 3},
                                      "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}}))
        training = subprocess.run([BIN / "zero_train", "--config", config, "--model", "mlp", "--data", "golden:mlp", "--steps", "400",
                                   "--publish", endpoint, "--quiet"], env=ENV, text=True, capture_output=True, timeout=120, check=False)
        self.assertEqual(training.returncode, 0, training.stderr)
        self.assertEqual(recorder.wait(60), 0)
        out, said = watch.communicate(timeout=60)
        self.assertEqual(watch.returncode, 0, said)
        lines = [json.loads(line) for line in (first + out).splitlines()]
        summary = read("summary", recording)
        self.assertEqual(sum(line["steps"] for line in lines), 400)
        self.assertEqual(lines[-1]["step"], 399)
        self.assertAlmostEqual(lines[-1]["loss"], summary["loss"][-1], delta=0)
        self.assertEqual(lines[-1]["events"], summary["events"])
        page = (self.folder / "run.prom").read_text()
        self.assertIn("\nshardscope_steps_total 400\n", page)
        self.assertTrue(page.endswith("# EOF\n"))
        skipped = [trigger["step"] for line in lines for trigger in line["triggers"] if trigger["kind"] == "skipped_step"]
        with contextlib.closing(sqlite3.connect(recording)) as database:
            rows = database.execute("SELECT step FROM steps WHERE skipped ORDER BY step").fetchall()
        self.assertEqual(skipped, [step for (step,) in rows])
        self.assertGreater(len(skipped), 0)
        self.assertEqual(marks.read_text().splitlines()[-1], f"skipped_step {skipped[-1]}")
        # Backward comes to the last layer first, and there they overflow.
        overflow, = (finding for finding in read("findings", recording) if finding["id"] == "overflow")
        self.assertRegex(overflow["evidence"], r"in the order of backward, was that of out\.\w+ \(module out\) on rank 0: \d+ element")
        self.assertLess(said.index("requesting detail steps"), said.index("requesting detail params"))

    def test_a_failed_rank_is_the_exit_code_whatever_is_filtered(self):
        recorder = self.start("record", self.folder / "run.zscope", "--listen", "tcp://127.0.0.1:0")
        endpoint = re.search(r"tcp://\S+\d", recorder.stderr.readline()).group()
        watch = self.start("watch", endpoint, "--interval", "0.2", "--trigger", "slow_step")
        training = subprocess.Popen([BIN / "zero_train", "--config", ROOT / "samples/stage3.json", "--model", "mlp", "--data", "golden:mlp",
                                     "--steps", "100000", "--publish", endpoint, "--quiet"], env=ENV, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL)
        self.addCleanup(training.kill)
        self.assertIn("step", watch.stdout.readline())
        for line in watch.stdout:
            if "(+" in line:
                break
        training.kill()
        training.wait()
        time.sleep(1)  # the connection is gone
        recorder.terminate()  # ends the run for its viewers
        out, said = watch.communicate(timeout=60)
        self.assertEqual(watch.returncode, 1, out + said)
        self.assertNotIn("rank_failed", out)

    def test_metrics_are_served(self):
        recorder = self.start("record", self.folder / "run.zscope", "--listen", "tcp://127.0.0.1:0")
        endpoint = re.search(r"tcp://\S+\d", recorder.stderr.readline()).group()
        watch = self.start("watch", endpoint, "--interval", "0.2", "--prometheus", "127.0.0.1:0")
        url = re.search(r"http://\S+", watch.stderr.readline()).group()
        for _ in range(100):
            with urllib.request.urlopen(url, timeout=20) as answer:
                content_type, page = answer.headers["Content-Type"], answer.read()
            if b"shardscope_events_total" in page:
                break
            time.sleep(0.1)
        self.assertIn(b"\nshardscope_events_total 0\n", page)
        self.assertTrue(content_type.startswith("application/openmetrics-text; version=1.0.0"), content_type)
        self.assertTrue(page.endswith(b"# EOF\n"))
        watch.terminate()
        self.assertEqual(watch.wait(20), 128 + 15)

    def test_one_that_lags_behind_can_be_ended(self):
        """Steps faster than they are looked at: at its end a minute of them was left, and no signal ended it meanwhile."""
        recorder = self.start("record", self.folder / "run.zscope", "--listen", "tcp://127.0.0.1:0")
        endpoint = re.search(r"tcp://\S+\d", recorder.stderr.readline()).group()
        watch = self.start("watch", endpoint, "--interval", "0.3")
        watch.stdout.readline()
        said("simulate", "--layers", "1", "--width", "64", "--heads", "1", "--context", "16", "--vocab", "100", "--ranks", "4", "--steps",
             "60000", "--detail", "phases", "--connect", endpoint)
        self.assertEqual(recorder.wait(60), 0)
        time.sleep(1)  # it knows of the end
        self.assertIsNone(watch.poll())
        watch.terminate()
        self.assertEqual(watch.wait(8), 128 + 15)

    def test_wrong_options(self):
        endpoint = "tcp://127.0.0.1:1"
        self.assertIn("HOST:PORT", self.refused(("watch", endpoint, "--prometheus", "here"), "here"))
        self.refused(("watch", endpoint, "--prometheus", "127.0.0.1:70000"), "127.0.0.1:70000")
        self.refused(("watch", endpoint, "--prometheus", "192.0.2.1:9464"), "192.0.2.1:9464")
        self.refused(("watch", "here"), "here")
        self.refused(("watch", endpoint, "--trigger", "slow"), "slow")
        self.refused(("watch", endpoint, "--interval", "0"), "--interval")
        self.refused(("watch", endpoint, "--interval", "inf"), "--interval")
        self.refused(("watch", endpoint, "--prometheus", ":9464"), ":9464")
        self.refused(("watch", endpoint, "--raise-steps", "3"), "--raise-detail")


if __name__ == "__main__":
    main()
