#!/usr/bin/env python3
"""`watch` beside a live run: its lines, its metrics, its triggers.

Usage: watch_test.py BIN_FOLDER SOURCE_ROOT [unittest arguments]
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
import unittest
import urllib.request

from command_line import BIN, ENV, ROOT, CommandTest, main, read, said, shardscope


STEPS = 3000  # enough for what is asked of the ranks at a trigger to reach them


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
        training = subprocess.run([BIN / "zero_train", "--config", config, "--model", "mlp", "--data", "golden:mlp", "--steps", str(STEPS),
                                   "--publish", endpoint, "--quiet"], env=ENV, text=True, capture_output=True, timeout=240, check=False)
        self.assertEqual(training.returncode, 0, training.stderr)
        self.assertEqual(recorder.wait(60), 0)
        out, errors = watch.communicate(timeout=60)
        self.assertEqual(watch.returncode, 0, errors)
        lines = [json.loads(line) for line in (first + out).splitlines()]
        summary = read("summary", recording)
        self.assertEqual(sum(line["steps"] for line in lines), STEPS)
        self.assertEqual(lines[-1]["step"], STEPS - 1)
        self.assertAlmostEqual(lines[-1]["loss"], summary["loss"][-1], delta=0)
        self.assertEqual(lines[-1]["events"], summary["events"])
        page = (self.folder / "run.prom").read_text()
        self.assertIn(f"\nshardscope_steps_total {STEPS}\n", page)
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
        self.assertLess(errors.index("requesting detail steps"), errors.index("requesting detail params"))
        self.raised_steps_are_in_detail(recording)
        self.the_recording_plays_as_it_was_watched(recording, lines, skipped)

    def raised_steps_are_in_detail(self, recording):
        """Of the steps after a trigger."""
        with tempfile.TemporaryDirectory() as tables:
            export = ("export", recording, "--format", "csv", "-o", tables, "--overwrite")
            self.assertEqual(shardscope(*export).returncode, 0)

            def table(name):
                with open(pathlib.Path(tables) / name, encoding="utf-8", newline="") as file:
                    return list(csv.DictReader(file))
            statuses = sorted(int(row["at_ns"]) for row in table("events.csv") if row["kind"] == "param_status")
            spans = [(int(row["begin_ns"]), int(row["end_ns"])) for row in table("steps.csv") if row["end_ns"]]
            commands = [(int(row["at_ns"]), row["text"]) for row in table("messages.csv") if "control: detail" in row["text"]]
        raised_ns = next(at for at, text in commands if "to params" in text)
        # The run may end before it is lowered, or before the ranks know; moments_test.py looks at that.
        lowered_ns = next((at for at, text in commands if at > raised_ns and "from params to steps" in text), spans[-1][1] + 1)

        def in_detail(begin_ns, end_ns):
            """Of the steps in between, whether they have statuses of parameters."""
            return [bisect.bisect_left(statuses, end) > bisect.bisect_left(statuses, begin) for begin, end in spans
                    if begin > begin_ns and end < end_ns]
        self.assertGreaterEqual(in_detail(raised_ns, lowered_ns).count(True), 20, "--raise-steps")

    def the_recording_plays_as_it_was_watched(self, recording, live, skipped):
        played = [json.loads(line) for line in said("watch", recording, "--json", "--interval", "0.3").splitlines()]
        self.assertEqual(sum(line["steps"] for line in played), STEPS)
        self.assertGreater(len([line for line in played if line["steps"]]), 1)
        for key in ("step", "loss", "events", "device_peak", "ranks"):
            self.assertEqual(played[-1].get(key), live[-1].get(key), key)
        self.assertEqual([trigger["step"] for line in played for trigger in line["triggers"] if trigger["kind"] == "skipped_step"], skipped)
        text = said("watch", recording, "--interval", "0.3", "--trigger", "rank_failed")
        self.assertRegex(text, r"(?m)^0:\d\d:\d\d  step " + str(STEPS - 1) + " ")
        self.assertNotIn("!", text)
        self.refused(("watch", recording, "--keep"), "--keep needs a live run")

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

    def test_triggers_do_not_wait_for_the_next_line(self):
        """The interval is an hour, the run takes seconds and its recorder stays."""
        recorder = self.start("record", self.folder / "run.zscope", "--listen", "tcp://127.0.0.1:0", "--overwrite")
        endpoint = re.search(r"tcp://\S+\d", recorder.stderr.readline()).group()
        mark = self.folder / "mark"
        watch = self.start("watch", endpoint, "--interval", "3600", "--metrics", self.folder / "run.prom", "--trigger", "rank_failed",
                           "--on-trigger", f'echo "$SHARDSCOPE_TRIGGER $SHARDSCOPE_TRIGGER_RANK"; echo x > {mark}; exit 3')
        training = subprocess.Popen([BIN / "zero_train", "--config", ROOT / "samples/stage3.json", "--model", "mlp", "--data", "golden:mlp",
                                     "--steps", "100000", "--publish", endpoint, "--quiet"], env=ENV, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL)
        self.addCleanup(training.kill)

        def until(condition):
            end = time.monotonic() + 30
            while not condition():
                self.assertLess(time.monotonic(), end)
                time.sleep(0.1)

        def page():
            file = self.folder / "run.prom"
            return file.read_text() if file.exists() else ""
        until(lambda: "\nshardscope_step_seconds " in page())
        training.kill()
        training.wait()
        until(mark.exists)
        until(lambda: 'shardscope_ranks{state="failed"} 1' in page())
        self.assertIn('shardscope_triggers_total{kind="rank_failed"} 1', page())
        self.assertIn("\nshardscope_step_seconds ", page())
        recorder.terminate()
        out, said = watch.communicate(timeout=60)
        self.assertEqual(out.count("rank_failed: "), 1, out)
        self.assertEqual(len([line for line in out.splitlines() if "!" not in line]), 1, "one line, at the end")
        self.assertIn("rank_failed 0\n", said)
        self.assertIn("--on-trigger at rank_failed: the command ended with exit code 3", said)

    def test_one_that_lags_behind_can_be_ended(self):
        """It gets no processor during the run, and has all steps left at the end: a signal ends it meanwhile."""
        recorder = self.start("record", self.folder / "run.zscope", "--listen", "tcp://127.0.0.1:0")
        endpoint = re.search(r"tcp://\S+\d", recorder.stderr.readline()).group()
        watch = self.start("watch", endpoint, "--interval", "0.3")
        watch.stdout.readline()
        watch.send_signal(signal.SIGSTOP)
        said("simulate", "--layers", "1", "--width", "64", "--heads", "1", "--context", "16", "--vocab", "100", "--ranks", "4", "--steps",
             "60000", "--detail", "phases", "--connect", endpoint)
        watch.send_signal(signal.SIGCONT)
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
        self.refused(("watch", self.folder / "none.zscope"), "none.zscope")
        self.refused(("watch", endpoint, "--trigger", "slow"), "slow")
        self.refused(("watch", endpoint, "--trigger", "slow_step,memory_limit"), "--trigger memory_limit needs --memory-limit")
        self.refused(("watch", endpoint, "--interval", "0"), "--interval")
        self.refused(("watch", endpoint, "--interval", "1e-10"), "--interval")
        self.refused(("watch", endpoint, "--interval", "inf"), "--interval")
        self.refused(("watch", endpoint, "--prometheus", ":9464"), ":9464")
        self.refused(("watch", endpoint, "--raise-steps", "3"), "--raise-detail")


if __name__ == "__main__":
    main()
