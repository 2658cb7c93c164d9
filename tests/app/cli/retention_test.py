#!/usr/bin/env python3
"""Recordings that keep a part of their run: what they keep is as in one that keeps everything, the rest is summed up, and they say so.

Usage: retention_test.py BIN_FOLDER SOURCE_ROOT [unittest arguments]
"""
import contextlib
import json
import pathlib
import re
import signal
import sqlite3
import subprocess
import tempfile
import threading
import time
import unittest.mock

from command_line import BIN, ENV, ROOT, CommandTest, main, read, said


class Retention(CommandTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, *arguments):
        process = subprocess.Popen([BIN / "shardscope", *map(str, arguments)], env=ENV, text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        return process

    @staticmethod
    def endpoint_of(process):
        return re.search(r"listening on (tcp://\S+\d)", process.stderr.readline()).group(1)

    def train(self, endpoint, steps):
        training = subprocess.run([BIN / "zero_train", "--config", ROOT / "samples/stage3.json", "--model", "mlp", "--data", "golden:mlp",
                                   "--steps", str(steps), "--publish", endpoint, "--quiet"], env=ENV, text=True, capture_output=True,
                                  timeout=240, check=False)
        self.assertEqual(training.returncode, 0, training.stderr)

    def rows(self, recording, query):
        with contextlib.closing(sqlite3.connect(recording)) as database:
            return database.execute(query).fetchall()

    def test_one_run_recorded_whole_and_in_part(self):
        """A node's collector keeps a part of what it passes on, the one above everything: the same events."""
        whole, part = self.folder / "whole.zscope", self.folder / "part.zscope"
        top = self.start("record", whole, "--listen", "tcp://127.0.0.1:0")
        node = self.start("collect", "--upstream", self.endpoint_of(top), "--record", part, "--listen", "tcp://127.0.0.1:0", "--max-age",
                          "300ms", "--moments", "1", "--moment-around", "50ms", "--moment-triggers", "rank_failed")
        self.train(self.endpoint_of(node), 3000)
        self.assertEqual(node.wait(60), 0)
        self.assertEqual(top.wait(60), 0)
        all_of, some = read("summary", whole), read("summary", part)
        self.assertIsNone(all_of["kept"])
        kept = some["kept"]
        self.assertEqual(kept["all_steps"], 3000)
        self.assertEqual(kept["steps"][-1]["last"], 2999)
        self.assertGreater(kept["not_kept_events"], 0)
        self.assertEqual(kept["events"] + kept["not_kept_events"], all_of["events"])
        self.assertEqual(some["problems"], [])
        self.assertLess(part.stat().st_size, whole.stat().st_size)
        # Of the whole run, exactly.
        for key in ("steps", "events", "loss", "grad_norm", "step_ms", "tokens_per_s", "dropped", "lost_messages", "trace"):
            self.assertEqual(some[key], all_of[key], key)
        self.assertEqual(some["ranks"][0]["memory"], all_of["ranks"][0]["memory"])
        for table in ("steps", "span_summary", "memory_peaks"):
            self.assertEqual(self.rows(part, f"SELECT * FROM {table}"), self.rows(whole, f"SELECT * FROM {table}"), table)
        # Of the steps kept: nothing unrecorded in them.
        self.assertEqual(some["ranks"][0]["time_ms"]["unrecorded"], 0)
        self.assertEqual(some["ranks"][0]["time_steps"], kept["whole_steps"])
        self.assertEqual(some["steps_lacking_events"], 0)
        info = read("info", part)
        self.assertFalse(info["complete"])
        self.assertEqual(info["limits"], {"max_age_ns": 300_000_000, "max_bytes": None})
        self.assertEqual(info["kept"], kept)
        self.assertIn("full detail of step", said("info", part))
        self.assertIn("they were not kept at full detail", said("summary", part))
        self.assertEqual(self.rows(part, "SELECT sum(events) FROM sums"), [(kept["not_kept_events"],)])
        spread = {one["what"]: one for one in some["distributions"] if one["module"] is None}
        self.assertEqual(spread["step"]["count"], 3000)
        self.assertAlmostEqual(spread["step"]["p50_ms"], some["step_ms"]["median"], delta=0.1 * some["step_ms"]["median"])
        self.assertIsNone(all_of["distributions"], "no limits, no distributions")
        self.assertTrue(some["distributions_whole"])

    def test_a_request_keeps_what_lies_around_it(self):
        recording = self.folder / "run.zscope"
        recorder = self.start("record", recording, "--listen", "tcp://127.0.0.1:0", "--max-size", "8MB", "--moment-triggers", "rank_failed",
                              "--moment-around", "200ms")
        endpoint = self.endpoint_of(recorder)
        training = subprocess.Popen([BIN / "zero_train", "--config", ROOT / "samples/stage3.json", "--model", "mlp", "--data", "golden:mlp",
                                     "--steps", "6000", "--publish", endpoint, "--quiet"], env=ENV, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL)
        self.addCleanup(training.kill)
        while not recording.with_name("run.zscope-wal").exists() or not self.rows(recording, "SELECT 1 FROM chunks LIMIT 1"):
            time.sleep(0.1)
        recorder.send_signal(signal.SIGUSR2)
        self.assertEqual(training.wait(120), 0)
        self.assertEqual(recorder.wait(60), 0)
        said_of_it = recorder.stderr.read()
        self.assertIn("keeping the events still held around request, as far as --max-size leaves room", said_of_it)
        kept = read("summary", recording)["kept"]
        self.assertLess(recording.stat().st_size, 8_000_000)
        if kept is None:  # a machine on which it all fitted
            self.assertEqual(self.rows(recording, "SELECT kind FROM moments"), [("request",)])
            return
        self.assertEqual([moment["kind"] for moment in kept["moments"]], ["request"])

    def training(self, endpoint, recording, steps, **optimizer):
        """One that is being recorded, without an end in this test."""
        config = self.folder / "ds.json"
        settings = json.loads((ROOT / "samples/stage3.json").read_text())
        settings["optimizer"]["params"].update(optimizer)
        config.write_text(json.dumps(settings))
        training = subprocess.Popen([BIN / "zero_train", "--config", config, "--model", "mlp", "--data", "golden:mlp", "--steps", str(steps),
                                     "--publish", endpoint, "--quiet"], env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(training.wait)
        self.addCleanup(training.kill)
        while not recording.with_name("run.zscope-wal").exists() or not self.rows(recording, "SELECT 1 FROM chunks LIMIT 1"):
            time.sleep(0.1)
        return training

    def end(self, training, recorder):
        training.kill()
        training.wait()
        recorder.send_signal(signal.SIGINT)
        recorder.wait(60)

    def test_a_viewer_asks_to_keep_a_moment(self):
        recording = self.folder / "run.zscope"
        said("keys", self.folder / "keys")
        recorder = self.start("record", recording, "--listen", "tcp://127.0.0.1:0", "--max-age", "300ms", "--moment-triggers", "rank_failed",
                              "--moment-around", "200ms", "--keys", self.folder / "keys")
        endpoint = self.endpoint_of(recorder)
        with unittest.mock.patch.dict(ENV, {"SHARDSCOPE_KEY": str(self.folder / "keys/publish.key")}):
            training = self.training(endpoint, recording, 1000000)
        control = ("--key", self.folder / "keys/control.key")
        kept = said("keep", endpoint, "--text", "the fan is loud", *control)
        self.assertRegex(kept, "^keeping the events still held around request: the fan is loud, requested by .")
        self.refused(("keep", endpoint, "--key", self.folder / "keys/view.key"), "its key may view the run, not control it")
        self.end(training, recorder)
        self.assertEqual([kind for kind, text in self.rows(recording, "SELECT kind, text FROM moments") if "the fan is loud" in text],
                         ["request"])
        self.assertTrue([line for line in read("info", recording)["control"] if "the fan is loud" in line["text"]])

    def test_a_finding_of_a_viewer_is_a_moment(self):
        recording = self.folder / "run.zscope"
        recorder = self.start("record", recording, "--listen", "tcp://127.0.0.1:0", "--max-age", "300ms", "--moment-triggers", "rank_failed",
                              "--moment-around", "200ms")
        endpoint = self.endpoint_of(recorder)
        training = self.training(endpoint, recording, 1000000, lr=1e6)  # its loss is infinite from the first steps on, however fast they go
        watch = subprocess.Popen([BIN / "shardscope", "watch", endpoint, "--interval", "1", "--trigger", "finding", "--keep"], env=ENV,
                                 text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(watch.stdout.close)
        self.addCleanup(watch.wait)
        self.addCleanup(watch.kill)
        late = threading.Timer(90, watch.kill)
        late.start()
        self.addCleanup(late.cancel)
        found = next((line for line in watch.stdout if "! finding: " in line), "")
        self.assertTrue(found)
        until = time.monotonic() + 30
        while time.monotonic() < until and not self.rows(recording, "SELECT 1 FROM moments"):
            time.sleep(0.2)
        self.end(training, recorder)
        moments = self.rows(recording, "SELECT kind, text, begin_ns < at_ns, at_ns < end_ns FROM moments")
        self.assertEqual({moment[0] for moment in moments}, {"finding"})
        self.assertIn(found.split("! finding: ")[1].strip(), [text.split(", requested by")[0] for _, text, _, _ in moments])
        self.assertEqual({moment[2:] for moment in moments}, {(1, 1)})

    def test_a_viewer_that_asks_in_vain_is_answered(self):
        recording = self.folder / "run.zscope"
        for limits, answer in (((), "everything is kept already"), (("--max-age", "10m", "--moments", "0"), "no moments are kept")):
            recorder = self.start("record", recording, "--listen", "tcp://127.0.0.1:0", "--overwrite", *limits)
            endpoint = self.endpoint_of(recorder)
            training = self.training(endpoint, recording, 1000000)
            if limits:
                self.refused(("keep", endpoint, "--text", "here"), "request (here, requested by", answer)
            else:
                self.assertRegex(said("keep", endpoint, "--text", "here"), f"^request \\(here, requested by .*{answer}")
            self.end(training, recorder)
        self.refused(("keep", endpoint, "--wait", "0.5"), "no collector answered within")
        self.refused(("keep",), "endpoint")
        self.refused(("keep", "nowhere"), "nowhere")

    def ask(self, *arguments):
        """What a recorder without ranks says of two requests."""
        recorder = self.start("record", self.folder / "run.zscope", "--listen", "tcp://127.0.0.1:0", *arguments)
        self.endpoint_of(recorder)
        answers = []
        for _ in range(2):
            recorder.send_signal(signal.SIGUSR2)
            answers.append(recorder.stderr.readline())
        recorder.send_signal(signal.SIGINT)
        recorder.wait(60)
        recorder.stderr.close()
        (self.folder / "run.zscope").unlink()
        return answers

    def test_a_request_that_has_nothing_to_do_is_answered(self):
        """And it does not end the recorder, as it would a program that does not know it."""
        for arguments, answer in (((), "everything is kept already"), (("--max-age", "10m", "--moments", "0"), "no moments are kept"),
                                  (("--max-age", "10m"), "no event has arrived yet")):
            with self.subTest(arguments=arguments):
                for said_of_it in self.ask(*arguments):
                    self.assertIn(f"SIGUSR2: {answer}", said_of_it)

    def test_sizes_with_binary_units(self):
        for size in ("1TiB", "1T", "16MiB"):
            self.assertEqual(len(self.ask("--max-size", size)), 2)

    def test_wrong_options(self):
        recording = self.folder / "run.zscope"
        self.refused(("record", recording, "--max-age", "soon"), "--max-age", "soon", "10m")
        self.refused(("record", recording, "--max-age", "0s"), "--max-age")
        self.refused(("record", recording, "--max-size", "1MB"), "--max-size", "8MB")
        self.refused(("record", recording, "--max-size", "2XB"), "--max-size", "2XB")
        self.refused(("record", recording, "--moments", "3"), "--moments", "--max-age")
        self.refused(("record", recording, "--moments", "10"), "--moments", "--max-age")
        self.refused(("record", recording, "--moment-around", "30s"), "--moment-around", "--max-age")
        self.refused(("run", "--config", ROOT / "samples/stage3.json", "--max-age", "10m"), "--record")
        self.assertFalse(recording.exists())


if __name__ == "__main__":
    main()
