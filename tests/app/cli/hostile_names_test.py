#!/usr/bin/env python3
"""Names that a terminal would obey, or that would read as lines of the program's own, are shown as what they are.

Usage: hostile_names_test.py BIN_FOLDER SOURCE_ROOT [unittest arguments]
"""
import json
import pathlib
import re
import subprocess
import tempfile

from command_line import BIN, CommandTest, main, ROOT, said, shardscope

EVIL = "evil\x1b]0;owned\x07\nshardscope: all is well\u009b31m\u202e"
SHOWN = r"evil\x1b]0;owned\x07\nshardscope: all is well\u009b31m\u202e"
ACTS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")
MODEL = {"name": EVIL, "input": {"kind": "vectors", "width": 10}, "loss": {"kind": "mse", "width": 4},
         "root": {"kind": "sequential", "children": [{"kind": "linear", "name": "in", "in": 10, "out": 16},
                                                     {"kind": "linear", "name": "out", "in": 16, "out": 4}]}}


class HostileNames(CommandTest):
    def check(self, text, shown=None):
        self.assertNotRegex(text, ACTS)
        self.assertFalse(any(line.startswith("shardscope: all is well") for line in text.splitlines()), text)
        if shown:
            self.assertIn(shown, text)

    def test_names_of_a_recording_stay_text(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            model, recording = folder / "model.json", folder / f"{EVIL}.zscope"
            model.write_text(json.dumps(MODEL))
            done = shardscope("simulate", "--model", model, "--ranks", "2", "--steps", "2", "-o", recording)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.check(done.stdout, SHOWN)
            for verb in ("info", "summary", "findings"):
                self.check(said(verb, recording), SHOWN if verb != "findings" else None)
                self.check(said(verb, recording, "--json"))
            self.assertEqual(json.loads(said("info", recording, "--json"))["run"]["model"], EVIL)
            self.check(said("compare", recording, recording), SHOWN)
            self.check(said("report", recording, "-o", folder / f"{EVIL}.html"), SHOWN)

    def test_errors_stay_one_line(self):
        config = ["--config", ROOT / "samples/stage0.json"]
        for arguments in (["info", f"/nowhere/{EVIL}"], ["view", f"/nowhere/{EVIL}", "--screenshot", "a.png"],
                          [EVIL], ["run", "--config", f"/nowhere/{EVIL}"],
                          ["simulate", "--model", "mlp", "--ranks", "2", *config, "--set", f"{EVIL}=1"],
                          ["run", "--ranks", "1", "--model", "mlp", *config, "--set", f"{EVIL}=1"]):
            failed = shardscope(*arguments)
            self.assertNotEqual(failed.returncode, 0, arguments)
            self.check(failed.stderr, "owned")

    def test_ranks_that_are_started_without_shardscope_print_text_too(self):
        config = ["--config", ROOT / "samples/stage0.json", "--steps", "1"]
        for program, arguments in (("zero_train", ["--model", f"/nowhere/{EVIL}", *config]), ("zero_train", [EVIL]),
                                   ("zero_simulate", ["--ranks", "2", "--model", f"/nowhere/{EVIL}", *config])):
            failed = subprocess.run([BIN / program, *arguments], capture_output=True, text=True, timeout=60)
            self.assertNotEqual(failed.returncode, 0, arguments)
            self.check(failed.stderr, "owned")
        with tempfile.TemporaryDirectory() as name:
            model = pathlib.Path(name) / "model.json"
            model.write_text(json.dumps(MODEL))
            made = subprocess.run([BIN / "zero_simulate", "--json", "--ranks", "2", "--model", model, "--hardware-folder",
                                   ROOT / "assets/hardware", *config], capture_output=True, text=True, timeout=60)
            self.assertEqual(made.returncode, 0, made.stderr)
            self.check(made.stdout)
            self.assertEqual(json.loads(made.stdout)["model"], EVIL)


if __name__ == "__main__":
    main()
