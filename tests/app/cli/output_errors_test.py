#!/usr/bin/env python3
"""Where what is written has no place, no room, or would replace another file.

Usage: output_errors_test.py BIN_FOLDER SOURCE_ROOT [unittest arguments]
"""
import contextlib
import csv
import pathlib
import shutil
import sqlite3
import subprocess
import tempfile

from command_line import BIN, ENV, ROOT, OneLineErrors, main, said, shardscope


class OutputErrors(OneLineErrors):
    def test_what_is_written_from_a_recording_replaces_none(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            recording, other = folder / "run.zscope", folder / "other.zscope"
            said("simulate", "--model", "mlp", "--ranks", "2", "--steps", "2", "-o", recording)
            shutil.copy(recording, other)
            link = folder / "link.zscope"
            link.hardlink_to(recording)
            before = recording.read_bytes()
            for out in (recording, other, link):
                for form in ("chrome", "perfetto", "sqlite"):
                    self.refused(["export", recording, "--format", form, "-o", out], str(out), "is a recording", "another name")
                self.refused(["report", recording, "-o", out], str(out), "is a recording", "another name")
            for out in (recording, link):
                self.refused(["what-if", recording, "-o", out], str(out), "the recording that is read", "another name")
            self.assertEqual((before, before), (recording.read_bytes(), other.read_bytes()))
            # What was simulated can be again, a run that was made cannot.
            said("simulate", "--model", "mlp", "--ranks", "2", "--steps", "1", "-o", other)
            self.assertNotEqual(before, other.read_bytes())
            with contextlib.closing(sqlite3.connect(other)) as made, made:
                made.execute("UPDATE run SET simulated = 0")
            kept = other.read_bytes()
            for verb in (["simulate", "--model", "mlp", "--ranks", "2", "--steps", "2"], ["what-if", recording]):
                self.refused([*verb, "-o", other], str(other), "a run that was made", "another name")
            self.assertEqual(kept, other.read_bytes())
            # Its own output is replaced, and somebody else's file.
            for _ in range(2):
                said("export", recording, "--format", "sqlite", "-o", folder / "a.sqlite", "--overwrite")
                said("export", recording, "-o", folder / "a.sqlite", "--overwrite")

    def test_what_a_run_leaves_is_not_replaced_unasked(self):
        run = ["run", "--config", ROOT / "samples/stage0.json", "--ranks", "1", "--model", "mlp", "--steps", "1"]
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            recording, weights, log = folder / "a1.zscope", folder / "w.safetensors", folder / "cut.zscope-wal"
            said(*run, "--record", recording, "--save", weights)
            log.write_bytes(b"what a recorder that was killed had not folded in")
            before = recording.read_bytes(), weights.read_bytes()
            for option, path in (("--record", recording), ("--save", weights), ("--record", folder / "cut.zscope")):
                printed = self.refused([*run, option, path], f"{option} {path}", "another name", "--overwrite")
                self.assertIn("the log of a recording" if "cut" in path.name else "exists", printed)
            self.refused(["record", recording], str(recording), "exists", "--overwrite")
            self.refused(["collect", "--upstream", "tcp://127.0.0.1:1", "--record", recording], str(recording), "--overwrite")
            self.refused(["ab", *run[1:], "--set-b", "gradient_clipping=1", "--out", folder], f"--out {folder}", "a1.zscope",
                         "another folder", "--overwrite")
            self.refused(["consolidate", folder, recording], str(recording), "is a recording", "another name")
            self.refused(["view", recording, "--screenshot", recording], str(recording), "is a recording", "another name")
            direct = subprocess.run([BIN / "zero_train", "--model", "mlp", "--steps", "1", "--save", weights], env=ENV, text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertIn(f"--save {weights}: exists; choose another name or give --overwrite", direct.stderr)
            self.assertEqual(before, (recording.read_bytes(), weights.read_bytes()))
            self.assertEqual({path.name for path in folder.iterdir()}, {recording.name, weights.name, log.name})
            said(*run, "--record", recording, "--save", weights, "--seed", "5", "--overwrite")
            self.assertNotEqual(before[0], recording.read_bytes())
            self.assertNotEqual(before[1], weights.read_bytes())
            # A file that is no recording is not replaced, with or without the option.
            self.refused([*run, "--record", weights, "--overwrite"], str(weights), "not a recording")

    def test_there_is_a_place_for_what_is_written(self):
        run = ["run", "--config", ROOT / "samples/stage0.json", "--ranks", "1", "--model", "mlp", "--steps", "1"]
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            file = folder / "file"
            file.write_text("no folder")
            self.refused([*run, "--save", folder / "none" / "w"], f"--save {folder}/none/w", "no such folder", "make it")
            self.refused([*run, "--save", folder, "--overwrite"], f"--save {folder}", "is a folder", "name a file")
            self.refused(["run", "--config", folder], f"configuration {folder}", "is a folder; give a file")
            self.refused(["keys", file], str(file), "Not a directory", "choose a folder")
            recording, cut = folder / "run.zscope", folder / "cut.zscope"
            said("simulate", "--model", "mlp", "--ranks", "2", "--steps", "2", "-o", recording)
            whole = recording.read_bytes()
            cut.write_bytes(whole[:8000])
            self.refused(["info", cut], f"8000 of {len(whole)} bytes", "cut off", "a whole copy")
            # What failed leaves nothing to show.
            printed = shardscope("demo", "--headless", "--model", "nope", "--ranks", "1", "--out", folder / "demo")
            self.assertEqual((printed.returncode, printed.stdout), (2, ""))

    def test_the_demo_is_shown_twice(self):
        with tempfile.TemporaryDirectory() as name:
            for _ in range(2):
                printed = said("demo", "--headless", "--model", "mlp", "--ranks", "1", "--steps", "1", "--out", name)
                self.assertIn("demo.zscope", printed)

    def test_an_export_that_finds_no_room_names_its_file(self):
        with tempfile.TemporaryDirectory() as folder:
            recording = pathlib.Path(folder) / "run.zscope"
            said("simulate", "--model", "gpt-mini", "--ranks", "2", "--steps", "20", "-o", recording)
            for form in ("chrome", "perfetto"):
                self.refused(["export", recording, "--format", form, "-o", "/dev/full"], "/dev/full: not written",
                             "No space left")

    def test_ranks_and_steps_of_an_export(self):
        with tempfile.TemporaryDirectory() as folder:
            recording = pathlib.Path(folder) / "run.zscope"
            said("simulate", "--model", "mlp", "--ranks", "2", "--steps", "2", "-o", recording)
            kineto = ["export", recording, "--format", "kineto", "-o", pathlib.Path(folder) / "trace"]
            self.refused([*kineto, "--ranks", "0,5"], "--ranks 5", "no such rank")
            self.refused([*kineto, "--ranks", "1-0"], "--ranks 1-0", "0,4-7")
            self.refused([*kineto, "--steps", "one"], "--steps one", "10-20")
            self.refused(["export", recording, "--format", "kineto", "-o", recording], str(recording), "cannot make the folder")
            self.refused([*kineto, "--steps", "1000-2000"], "steps 1000-2000", "none of them", "0-1")
            said(*kineto, "--ranks", "1", "--steps", "0-1")
            self.assertEqual(["rank_1.json"], [file.name for file in (pathlib.Path(folder) / "trace").iterdir()])
            self.refused([*kineto, "--ranks", "0"], "trace: exists and is not empty", "--overwrite")
            self.refused([*kineto, "--ranks", "0", "--overwrite"], "trace: holds rank_1.json")

    def test_parts_of_an_export(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            recording = folder / "run.zscope"
            said("simulate", "--model", "mlp", "--ranks", "2", "--steps", "3", "-o", recording)
            self.refused(["export", recording, "--format", "kineto", "-o", folder / "no", "--detail", "phases"], "--format kineto", "--steps")
            for form in ("chrome", "perfetto", "csv", "sqlite", "kineto", "otlp"):
                export = ["export", recording, "--format", form, "-o", folder / "no"]
                self.refused([*export, "--ranks", "0,5"], "--ranks 5", "no such rank")
                self.refused([*export, "--steps", "7-9"], "steps 7-9", "none of them")
                self.refused([*export, "--from", "soon"], "--from soon", "1.25s")
                self.refused([*export, "--from", "2ms", "--to", "1ms"], "--from 2ms --to 1ms", "nothing lies between")
                self.refused([*export, "--to", "0ns"], ": --to 0ns: nothing lies before it")
                self.refused([*export, "--from", "1000s"], "--from 1000s", "the recording ends at")
                self.refused([*export, "--from", "0", "--steps", "1"], "--from", "--steps")
                self.refused([*export, "--detail", "more"], "--detail", "phases")
                self.assertFalse((folder / "no").exists())
            said("export", recording, "--format", "csv", "-o", folder / "part", "--ranks", "1", "--steps", "1")
            with open(folder / "part/spans.csv", newline="") as file:
                spans = list(csv.DictReader(file))
            self.assertEqual({span["rank"] for span in spans}, {"1"})
            self.assertIn("ProfilerStep#1", {span["label"] for span in spans})
            self.assertNotIn("ProfilerStep#0", {span["label"] for span in spans})
            self.assertNotIn("ProfilerStep#2", {span["label"] for span in spans})
            with open(folder / "part/steps.csv", newline="") as file:
                self.assertEqual([row["step"] for row in csv.DictReader(file)], ["1"])
            with open(folder / "part/messages.csv", newline="") as file:
                self.assertIn("--ranks 1 --steps 1", [row["text"] for row in csv.DictReader(file)][-1])
            self.refused(["export", recording, "--format", "csv", "-o", folder / "part", "--ranks", "7", "--overwrite"], "--ranks 7")
            said("export", recording, "--format", "csv", "-o", folder / "part", "--overwrite")
            self.refused(["export", recording, "--format", "csv", "-o", folder / "part", "--ranks", "1", "--overwrite"], "bandwidths.csv",
                         "another folder")

    def test_what_was_written_before_is_replaced_only_when_asked(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            recording = folder / "run.zscope"
            said("simulate", "--model", "mlp", "--ranks", "2", "--steps", "2", "-o", recording)
            mine = folder / "mine"
            for command in (["report", recording], *(["export", recording, "--format", form]
                                                     for form in ("chrome", "perfetto", "sqlite", "otlp"))):
                mine.write_text("mine")
                self.refused([*command, "-o", mine], f"-o {mine}: exists", "--overwrite")
                self.assertEqual(mine.read_text(), "mine")
            said("report", recording, "-o", mine, "--overwrite")
            self.assertIn("<html", mine.read_text())
            said("report", recording)
            self.refused(["report", recording], "run.html: exists", "--overwrite")
            tables = folder / "tables"
            tables.mkdir()  # an empty folder is no loss
            said("export", recording, "--format", "csv", "-o", tables)
            self.refused(["export", recording, "--format", "csv", "-o", tables], "tables: exists and is not empty", "--overwrite")
            said("export", recording, "--format", "csv", "-o", tables, "--overwrite")
            said("export", recording, "-o", "/dev/null")

    def test_a_full_disk_takes_nothing_in_silence(self):
        for arguments in (["--help"], ["estimate", "zero2", "--params", "1000000"]):
            with open("/dev/full", "w") as full:
                result = subprocess.run([BIN / "shardscope", *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual(result.returncode, 1, arguments)
            self.assertIn("standard output", result.stderr)


if __name__ == "__main__":
    main()
