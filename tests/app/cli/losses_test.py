#!/usr/bin/env python3
"""Events that a recording lacks are noted with every figure made from it: info, summary, compare, text and JSON.

Usage: losses_test.py BIN_FOLDER SOURCE_ROOT [unittest arguments]
"""
import contextlib
import json
import pathlib
import re
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest

from command_line import BIN, main, read, said


def line_of(text, name):
    return next(line for line in text.splitlines() if line.startswith(name + " "))


class Losses(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.whole = pathlib.Path(cls.folder.name) / "whole.zscope"
        subprocess.run([BIN / "make_synthetic_recording", cls.whole, "world=2", "steps=4"], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def changed(self, name, *statements):
        path = self.whole.with_name(name)
        path.write_bytes(self.whole.read_bytes())
        with contextlib.closing(sqlite3.connect(path)) as database, database:
            for statement in statements:
                self.assertGreater(database.execute(statement).rowcount, 0, statement)
        return path

    def test_nothing_is_missing_in_what_is_whole(self):
        summary = read("summary", self.whole)
        for key in ("dropped", "shed", "lost_messages", "damaged_events", "absent_events"):
            self.assertEqual(summary[key], 0, key)
        self.assertEqual(summary["problems"], [])
        self.assertIn("0 dropped, 0 messages lost", line_of(said("summary", self.whole), "events"))
        self.assertEqual(read("compare", self.whole, self.whole)["missing"], {"a": [], "b": []})
        self.assertNotIn("missing", said("compare", self.whole, self.whole))

    def test_what_was_dropped_or_lost_makes_it_incomplete(self):
        self.assertIs(read("info", self.whole)["complete"], True)
        self.assertEqual(line_of(said("info", self.whole), "state").split(None, 1)[1], "complete")
        lossy = self.whole.with_name("lossy.zscope")
        subprocess.run([BIN / "make_synthetic_recording", lossy, "world=2", "steps=40", "lossy=1"], check=True)
        info = read("info", lossy)
        self.assertGreater(info["dropped"], 0)
        self.assertGreater(info["lost_messages"], 0)
        self.assertEqual((info["problems"], info["complete"]), ([], False))
        self.assertEqual(line_of(said("info", lossy), "state").split(None, 1)[1], "ended properly; what is damaged or missing follows")

    def test_damaged_chunk(self):
        before = read("summary", self.whole)["events"]
        path = self.changed("damaged.zscope",
                            "UPDATE chunks SET bytes = substr(bytes, 1, 200) || x'00' || substr(bytes, 202) WHERE rank = 1")
        summary = read("summary", path)
        self.assertGreater(summary["damaged_events"], 0)
        self.assertEqual(summary["events"] + summary["damaged_events"], before)
        self.assertTrue(any("(rank 1, sequence 0)" in problem for problem in summary["problems"]), summary["problems"])
        damaged = f"{summary['damaged_events']} damaged"
        for verb in ("summary", "info"):
            text = said(verb, path)
            self.assertIn(damaged, line_of(text, "events"))
            self.assertIn("(rank 1, sequence 0)", line_of(text, "problem"))
        compared = read("compare", self.whole, path)
        self.assertEqual(compared["missing"]["a"], [])
        self.assertIn(damaged, compared["missing"]["b"][0])
        self.assertIn("Of B not everything is there", compared["verdict"])
        self.assertIn("missing in B", said("compare", self.whole, path))
        self.assertIn("missing in A", said("compare", path, self.whole))
        self.assertIn("(rank 1, sequence 0)", said("findings", path))
        self.assertTrue(any("(rank 1, sequence 0)" in each["evidence"] for each in read("findings", path)))

    def test_each_file_of_a_rank_and_each_resource_says_what_is_wrong_with_the_recording(self):
        path = self.changed("damaged.zscope",
                            "UPDATE chunks SET bytes = substr(bytes, 1, 200) || x'00' || substr(bytes, 202) WHERE rank = 1")
        folder = pathlib.Path(self.folder.name)
        said("export", "--format", "kineto", "-o", folder / "of_ranks", path)
        said("export", "--format", "kineto", "--ranks", "1", "-o", folder / "of_one", path)
        for file in ("of_ranks/rank_0.json", "of_ranks/rank_1.json", "of_one/rank_1.json"):
            names = [event["name"] for event in json.loads((folder / file).read_text())["traceEvents"]]
            self.assertTrue(any(name.startswith("recording: ") and "(rank 1, sequence 0)" in name for name in names), file)
        said("export", "--format", "otlp", "-o", folder / "spans.jsonl", path)
        for line in (folder / "spans.jsonl").read_text().splitlines():
            for resource in json.loads(line)["resourceSpans"]:
                problems = [a["value"]["stringValue"] for a in resource["resource"]["attributes"]
                            if a["key"] == "shardscope.recording_problems"]
                self.assertEqual(len(problems), 1)
                self.assertIn("(rank 1, sequence 0)", problems[0])

    def test_exports_tell_it_to_who_gets_nothing_else(self):
        path = self.changed("damaged.zscope",
                            "UPDATE chunks SET bytes = substr(bytes, 1, 200) || x'00' || substr(bytes, 202) WHERE rank = 1")
        events = f"{read('summary', path)['damaged_events']} events that the recording holds damaged"
        chunk = "(rank 1, sequence 0)"
        folder = pathlib.Path(self.folder.name)
        for form, name in (("chrome", "t.json"), ("perfetto", "t.pftrace"), ("sqlite", "t.sqlite"), ("csv", "t"), ("kineto", "k")):
            said("export", "--format", form, "-o", folder / name, path)
        said("report", path, "-o", folder / "t.html")
        trace = json.loads((folder / "t.json").read_text())["traceEvents"]
        kineto = [event for rank in (0, 1) for event in json.loads((folder / f"k/rank_{rank}.json").read_text())["traceEvents"]]
        perfetto = (folder / "t.pftrace").read_bytes()
        report = (folder / "t.html").read_text()
        with contextlib.closing(sqlite3.connect(folder / "t.sqlite")) as database:
            reasons = [row[0] for row in database.execute("SELECT reason FROM SHARDSCOPE_GAPS")]
            texts = [row[0] for row in database.execute("SELECT text FROM SHARDSCOPE_MESSAGES")]
        # The reason of a gap, what is wrong with the recording, and what ranks and collectors said.
        where = {("chrome", "gap"): [e["name"] for e in trace if e["cat"] == "gap"],
                 ("chrome", "problem"): [e["name"] for e in trace if e["cat"] == "message"],
                 # The problem holds the same words: only the text after the annotation's name is the gap's.
                 ("perfetto", "gap"): re.findall("reason.{1,4}[0-9]+ events that[ a-z]*", perfetto.decode("utf-8", "replace"),
                                                 re.DOTALL),
                 ("perfetto", "problem"): [perfetto.decode("utf-8", "replace")],
                 ("sqlite", "gap"): reasons, ("sqlite", "problem"): texts,
                 ("kineto", "gap"): [e["name"] for e in kineto if e["name"].startswith("missing: ")],
                 ("kineto", "problem"): [e["name"] for e in kineto if e["name"].startswith("recording: ")],
                 ("csv", "gap"): [(folder / "t/gaps.csv").read_text()],
                 ("csv", "problem"): [(folder / "t/messages.csv").read_text()],
                 ("report", "gap"): re.findall("<li>Rank 1: missing between [^<]*", report),
                 ("report", "problem"): re.findall("<li>Recording: [^<]*", report)}
        for (form, what), found in where.items():
            with self.subTest(form=form, what=what):
                self.assertTrue(any((events if what == "gap" else chunk) in text for text in found), found[:3])


class CollectorGone(unittest.TestCase):
    def test_a_rank_says_what_could_not_be_sent(self):
        root = pathlib.Path(__file__).resolve().parents[3]
        with tempfile.TemporaryDirectory() as folder:
            endpoint = f"ipc://{folder}/collector"
            recorder = subprocess.Popen([BIN / "shardscope", "record", pathlib.Path(folder) / "run.zscope", "--listen",
                                         endpoint], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            rank = subprocess.Popen([BIN / "zero_train", "--config", root / "samples/stage3.json", "--model", "gpt-mini",
                                     "--default-text", root, "--steps", "1000000", "--publish", endpoint],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            try:
                for _ in range(3):
                    rank.stdout.readline()
                recorder.kill()
                recorder.wait()
                time.sleep(1)
                rank.send_signal(signal.SIGUSR1)
                _, words = rank.communicate(timeout=60)
            finally:
                recorder.kill()
                rank.kill()
            self.assertRegex(words, "warning: the collector at ipc://.* did not confirm the end of this run: [0-9]+ events")


if __name__ == "__main__":
    main()
