#!/usr/bin/env python3
"""Recordings that go on in several files: opened as one they are as one in one file, whatever of them is there, and they say what is not.

Usage: rotation_test.py BIN_FOLDER SOURCE_ROOT [unittest arguments]
"""
import contextlib
import json
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time

from command_line import BIN, ENV, ROOT, CommandTest, main, read, said, shardscope

STEPS = 9000  # fill more than one part of the smallest --rotate-size


def start(*arguments):
    return subprocess.Popen([BIN / "shardscope", *map(str, arguments)], env=ENV, text=True, stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def endpoint_of(process):
    return re.search(r"listening on (tcp://\S+\d)", process.stderr.readline()).group(1)


def training(endpoint, steps):
    return subprocess.Popen([BIN / "zero_train", "--config", ROOT / "samples/stage3.json", "--model", "mlp", "--data", "golden:mlp",
                             "--steps", str(steps), "--publish", endpoint, "--quiet"], env=ENV, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)


def rows(recording, query):
    with contextlib.closing(sqlite3.connect(recording)) as database:
        return database.execute(query).fetchall()


def parts_of(recording):
    return sorted(recording.parent.glob(recording.stem + ".[0-9]*.zscope"))


class InAFolder(CommandTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)


class Rotation(InAFolder):
    @classmethod
    def setUpClass(cls):
        """One run: a node's collector records it in parts and passes it on to one that records it in one file."""
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.made = pathlib.Path(folder.name)
        whole = cls.made / "whole.zscope"
        (cls.made / "parts").mkdir()
        top = start("record", whole, "--listen", "tcp://127.0.0.1:0")
        node = start("collect", "--upstream", endpoint_of(top), "--record", cls.made / "parts/run.zscope", "--listen", "tcp://127.0.0.1:0",
                     "--rotate-size", "8MB")
        ranks = training(endpoint_of(node), STEPS)
        for process in (ranks, node, top):
            if process.wait(240) != 0:
                raise AssertionError(f"{process.args}: {process.stderr and process.stderr.read()}")
        for process in (node, top):
            process.stderr.close()
        cls.whole = whole

    def copy(self):
        """Of the recording in parts, for a test to change."""
        shutil.copytree(self.made / "parts", self.folder / "parts", symlinks=True)
        return self.folder / "parts/run.zscope"

    def same_sums(self, path):
        """Of the newest part, as the recorder wrote them and as readers of the files that are here find them."""
        info, whole = read("info", path), read("info", self.whole)
        # Around events that a busy machine dropped, two collectors cut spans at different chunks.
        for table in ("steps",) if whole["dropped"] else ("steps", "span_summary", "memory_peaks"):
            self.assertEqual(rows(path, f"SELECT * FROM {table}"), rows(self.whole, f"SELECT * FROM {table}"), table)
        for key in ("dropped", "shed", "lost_messages", "damaged_events", "absent_events"):
            self.assertEqual(info[key], whole[key], key)
        self.assertEqual(info["ranks"][0]["events"], whole["ranks"][0]["events"])
        return info

    def test_all_of_it_is_there(self):
        recording = self.made / "parts/run.zscope"
        files = parts_of(recording)
        self.assertGreaterEqual(len(files), 2)
        self.assertEqual([file.name for file in files], [f"run.{part:04}.zscope" for part in range(1, len(files) + 1)])
        self.assertEqual(str(recording.readlink()), files[-1].name)
        self.assertEqual(list(recording.parent.glob("*-wal")) + list(recording.parent.glob("*.new")), [])
        for file in files[:-1]:
            self.assertGreater(file.stat().st_size, 7_500_000)
            self.assertLess(file.stat().st_size, 12_000_000)
        for path in (recording, files[0]):
            info = read("info", path)
            self.assertEqual(info["complete"], read("info", self.whole)["complete"])
            self.assertEqual(info["problems"], [])
            self.assertIsNone(info["kept"])
            self.assertEqual([(part["file"], part["here"]) for part in info["parts"]], [(file.name, True) for file in files])
            self.assertEqual([part["ended"] for part in info["parts"]], ["size"] * (len(files) - 1) + ["end"])
            self.assertEqual(sum(part["events"] for part in info["parts"]), info["events"])
        self.same_sums(recording)
        self.assertIn(f"in {len(files)} files", said("info", recording))

    def test_its_summary_is_that_of_one_file(self):
        summary, whole = (json.loads(shardscope("summary", path, "--json", timeout=400).stdout)
                          for path in (self.made / "parts/run.zscope", self.whole))
        for rank in (*summary["ranks"], *whole["ranks"]):
            # What each of the two recorders found of the rank's clock.
            for key in ("clock_drift_bound_ppb", "clock_drift_ppb", "clock_offset_ns", "clock_residual_ns"):
                del rank[key]
        different = {key for key in whole if summary[key] != whole[key]}
        # Distributions and what is made of them are kept where files may be deleted.
        self.assertLessEqual(different, {"distributions", "distributions_whole", "rank_drifts"})

    def test_what_reads_a_recording_reads_all_parts(self):
        recording, whole = self.made / "parts/run.zscope", self.made / "whole.zscope"
        for name, path in (("parts", recording), ("whole", whole)):
            said("export", path, "--format", "csv", "-o", self.folder / name)
        for table in ("steps.csv", "spans.csv", "events.csv"):
            file = self.folder / "parts" / table
            if not file.exists():
                continue
            self.assertEqual(file.read_bytes(), (self.folder / "whole" / table).read_bytes(), table)
        said("report", recording, "-o", self.folder / "report.html")
        said("check", recording, "--baseline", whole)
        said("compare", whole, recording)

    def test_without_the_oldest(self):
        recording = self.copy()
        first, *_, last = parts_of(recording)
        events = rows(last, "SELECT events FROM parts WHERE part = 1")[0][0]
        first.unlink()
        info = self.same_sums(recording)
        self.assertEqual(info["kept"]["not_kept_events"], events)
        self.assertEqual(info["kept"]["all_steps"], STEPS)
        self.assertEqual(len(info["problems"]), 1)
        self.assertIn("part 1 of this recording is not here (deleted, or not copied)", info["problems"][0])
        self.assertIn("run.0001.zscope: not here", said("info", recording))

    def test_one_copied_alone(self):
        files = parts_of(self.made / "parts/run.zscope")
        for file in (files[0], files[-1]):
            copy = self.folder / file.name
            shutil.copy(file, copy)
            info = read("info", copy)
            self.assertEqual(len(info["problems"]), 1, info["problems"])
            if file == files[0]:
                self.assertIn("goes on in part 2 (run.0002.zscope), which is not here", info["problems"][0])
                self.assertFalse(info["complete"])
            else:
                self.assertIn("of this recording", info["problems"][0])
                self.same_sums(copy)
            copy.unlink()


class Recorders(InAFolder):
    def test_the_recorder_deletes_the_oldest(self):
        recording = self.folder / "run.zscope"
        recorder = start("record", recording, "--listen", "tcp://127.0.0.1:0", "--rotate-size", "8MB", "--max-files", "2")
        self.addCleanup(recorder.stderr.close)
        steps = 2 * STEPS
        ranks = training(endpoint_of(recorder), steps)
        self.assertEqual(ranks.wait(240), 0)
        self.assertEqual(recorder.wait(60), 0)
        self.assertEqual([file.name for file in parts_of(recording)], ["run.0002.zscope", "run.0003.zscope"])
        info = read("info", recording)
        self.assertEqual(info["problems"], [], "--max-files deleted them")
        self.assertEqual(info["kept"]["all_steps"], steps)
        self.assertGreater(info["kept"]["not_kept_events"], 0)
        self.assertEqual([part["here"] for part in info["parts"]], [False, True, True])
        self.refused(("record", recording, "--rotate-size", "8MB"), "exists", "--overwrite")
        recording.unlink()
        self.refused(("record", recording, "--rotate-size", "8MB"), "is there, a file of a recording of this name", "--overwrite")

    def test_a_recorder_that_is_killed(self):
        for at in ("run.0002.zscope.new", "run.0002.zscope"):
            with self.subTest(at=at):
                folder = self.folder / at
                folder.mkdir()
                recording = folder / "run.zscope"
                recorder = start("record", recording, "--listen", "tcp://127.0.0.1:0", "--rotate-size", "8MB")
                self.addCleanup(recorder.stderr.close)
                ranks = training(endpoint_of(recorder), 1000000)
                until = time.monotonic() + 120
                while not (folder / at).exists() and not (folder / "run.0002.zscope").exists() and time.monotonic() < until:
                    time.sleep(0.0005)
                recorder.send_signal(signal.SIGKILL)
                recorder.wait()
                ranks.kill()
                ranks.wait()
                info = read("info", recording)
                self.assertFalse(info["complete"])
                self.assertGreater(info["events"], 0)
                self.assertIsNone(info["kept"], "nothing was deleted")
                # A busy machine may have dropped events before the recorder received them.
                self.assertEqual(info["damaged_events"] + info["lost_messages"], 0)
                self.assertTrue(parts_of(recording))

    def test_each_file_keeps_its_newest_and_its_moments(self):
        recording = self.folder / "run.zscope"
        recorder = start("record", recording, "--listen", "tcp://127.0.0.1:0", "--rotate-age", "10s", "--max-age", "2s",
                         "--moment-around", "500ms", "--moment-triggers", "rank_failed")
        self.addCleanup(recorder.stderr.close)
        endpoint = endpoint_of(recorder)
        ranks = training(endpoint, 1000000)
        self.addCleanup(ranks.kill)
        time.sleep(4)
        self.assertIn("keeping", said("keep", endpoint, "--text", "the fan is loud"))
        until = time.monotonic() + 60
        while len(parts_of(recording)) < 2 and time.monotonic() < until:
            time.sleep(0.2)
        time.sleep(4)
        ranks.send_signal(signal.SIGINT)
        ranks.wait(60)
        self.assertEqual(recorder.wait(60), 0)
        info = read("info", recording)
        self.assertEqual(info["problems"], [])
        self.assertEqual([part["here"] for part in info["parts"]], [True, True])
        self.assertEqual(info["limits"]["max_age_ns"], 2_000_000_000)
        kept = info["kept"]
        self.assertGreater(kept["not_kept_events"], kept["events"])
        moments = [moment for moment in kept["moments"] if moment["kind"] == "request"]
        [text] = [moment["text"] for moment in moments]
        self.assertIn("the fan is loud", text)
        newest = parts_of(recording)[-1]
        [(begin_ns, end_ns)] = rows(newest, "SELECT begin_ns, end_ns FROM moments WHERE kind = 'request'")
        inside = rows(newest, f"SELECT step FROM sum_steps WHERE begin_ns > {begin_ns} AND end_ns < {end_ns}")
        self.assertTrue(inside)
        for (step,) in inside:
            self.assertTrue(any(stretch["first"] <= step <= stretch["last"] for stretch in kept["steps"]), (step, kept["steps"]))

    def test_wrong_options(self):
        recording = self.folder / "run.zscope"
        self.refused(("record", recording, "--rotate-size", "7MB"), "--rotate-size", "7MB is less than 8MB")
        self.refused(("record", recording, "--rotate-age", "9s"), "--rotate-age", "9s is less than 10s")
        self.refused(("record", recording, "--max-files", "3"), "--max-files needs --rotate-size or --rotate-age")
        self.refused(("record", recording, "--rotate-size", "8MB", "--max-files", "1"), "--max-files")
        self.refused(("record", recording, "--rotate-size", "1GB", "--max-size", "1GB"), "--rotate-size needs files that grow")
        for verb in (("run", "--config", ROOT / "samples/stage3.json"), ("attach",), ("collect", "--upstream", "tcp://127.0.0.1:1")):
            after = ("--", "true") if verb[0] == "attach" else ()
            self.refused((*verb, "--rotate-size", "8MB", *after), "--rotate-size requires --record")
        self.assertEqual(list(self.folder.iterdir()), [])
        (self.folder / "run.0001.zscope").write_text("a letter")
        self.assertNotEqual(shardscope("record", recording, "--rotate-size", "8MB", "--overwrite", timeout=30).returncode, 0)
        self.assertEqual((self.folder / "run.0001.zscope").read_text(), "a letter")


if __name__ == "__main__":
    main()
