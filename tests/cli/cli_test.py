#!/usr/bin/env python3
"""Runs the command line as a user does: real ranks, real recordings, wrong arguments.

Usage: cli_test.py BIN_FOLDER SOURCE_ROOT [unittest arguments]
"""
import json
import math
import os
import pathlib
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

BIN = pathlib.Path(sys.argv[1])
ROOT = pathlib.Path(sys.argv[2])
ENV = {**os.environ, "SHARDSCOPE_ROOT": str(ROOT)}
for name in ("DISPLAY", "WAYLAND_DISPLAY"):
    ENV.pop(name, None)


def shardscope(*arguments, timeout=120, cwd=None):
    return subprocess.run([BIN / "shardscope", *map(str, arguments)], env=ENV, cwd=cwd, timeout=timeout, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)


class Errors(unittest.TestCase):
    """What, value, what to do; exit code not zero; nothing on standard output."""

    def check(self, arguments, *words):
        result = shardscope(*arguments)
        self.assertNotEqual(result.returncode, 0, arguments)
        self.assertEqual(result.stdout, "")
        self.assertTrue(result.stderr.startswith("shardscope: "), result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)

    def test_no_verb(self):
        self.check([], "--help")

    def test_unknown_verb(self):
        self.check(["frobnicate"], "--help")

    def test_unknown_option(self):
        self.check(["run", "--frobnicate"], "run --help")

    def test_missing_configuration(self):
        self.check(["run", "--config", "/nowhere/ds.json"], "/nowhere/ds.json")

    def test_broken_json_names_line_and_column(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write('{\n  "zero_optimization": {"stage": 3,,}\n}\n')
            file.flush()
            self.check(["run", "--config", file.name], "line 2", "column 36")

    def test_unknown_key_names_the_nearest(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3, "overlap_com": True}}, file)
            file.flush()
            self.check(["run", "--config", file.name, "--ranks", "1", "--model", "mlp", "--data", "golden:mlp"],
                       "overlap_com", "overlap_comm")

    def test_messages_name_the_file_and_line_of_a_file_with_comments(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write('{ // one rank\n  "train_micro_batch_size_per_gpu": 1, /* small */ "zero_optimisation": {}\n}\n')
            file.flush()
            self.check(["run", "--config", file.name, "--ranks", "1", "--model", "mlp", "--data", "golden:mlp"],
                       f"{file.name}:2:52: zero_optimisation", "zero_optimization")

    def test_missing_data(self):
        self.check(["run", "--config", ROOT / "samples/stage0.json", "--data", "/nowhere/text"], "/nowhere/text")

    def test_unknown_model_lists_the_known(self):
        self.check(["run", "--config", ROOT / "samples/stage0.json", "--ranks", "1", "--model", "gpt9"], "gpt9", "gpt-mini")

    def test_missing_recording(self):
        for verb in ("info", "summary", "findings", "report"):
            self.check([verb, "/nowhere/run.zscope"], "/nowhere/run.zscope")

    def test_not_a_recording(self):
        with tempfile.NamedTemporaryFile(suffix=".zscope") as file:
            file.write(b"this is not a recording" * 100)
            file.flush()
            self.check(["summary", file.name], file.name)

    def test_occupied_port(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.check(["run", "--config", ROOT / "samples/stage0.json", "--listen", f"tcp://127.0.0.1:{port}"], str(port))

    def test_view_names_an_unknown_layout_and_takes_known_ones_in_any_case(self):
        self.check(["view", "a.zscope", "--screenshot", "a.png", "--layout", "tall"], "--layout", "tall")

    def test_view_without_display(self):
        with tempfile.TemporaryDirectory() as folder:
            self.check(["view", f"{folder}/none.zscope"], "display")
            self.check(["view", f"{folder}/none.zscope", "--screenshot", f"{folder}/a.png"], "none.zscope")


def train(folder, name, stage, ranks, *more, steps=6, model="mlp", data="golden:mlp"):
    recording = pathlib.Path(folder) / f"{name}.zscope"
    result = shardscope("run", "--config", ROOT / f"samples/stage{stage}.json", "--ranks", ranks, "--model", model, "--data",
                        data, "--steps", steps, "--record", recording, *more)
    assert result.returncode == 0, result.stderr
    summary = shardscope("summary", "--json", recording)
    assert summary.returncode == 0, summary.stderr
    return recording, json.loads(summary.stdout)


def ranks_of(launcher):
    """Process ids of the zero_train processes below `launcher`."""
    parents, ranks = {}, []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if os.readlink(folder / "exe").endswith("/zero_train"):
                ranks.append(int(folder.name))
        except OSError:
            continue  # gone meanwhile, or not ours

    def below(pid):
        while pid > 1:
            if pid == launcher:
                return True
            pid = parents.get(pid, 0)
        return False

    return [pid for pid in ranks if below(pid)]


class Training(unittest.TestCase):
    def test_stages_agree_and_match_the_closed_forms(self):
        elems = 100417  # the golden MLP; 100417 divides by nothing below 17
        reference = None
        with tempfile.TemporaryDirectory() as folder:
            for stage in (0, 1, 2, 3):
                _, s = train(folder, f"s{stage}", stage, 3, "--set", "zero_optimization.stage3_prefetch_bucket_size=0")
                self.assertEqual(s["run"]["world"], 3)
                self.assertEqual(s["run"]["stage"], stage)
                self.assertEqual(s["run"]["params"], elems)
                self.assertEqual(s["steps"], 6)
                self.assertEqual(s["dropped"], 0)
                reference = reference or s["loss"]
                self.assertEqual(s["loss"], reference, f"stage {stage}")
                # fp32 without a second master copy: parameters 4, gradients 4, momentum and variance 8 bytes.
                expected = {0: 16 * elems, 1: 8 * elems + 8 * elems / 3, 2: 4 * elems + 12 * elems / 3,
                            3: 16 * elems / 3}[stage]
                self.assertAlmostEqual(s["memory_model"]["bytes_per_rank"], expected, delta=1)
                # Above it: at most the gradients that the module being run is writing, and rounding to 256 bytes
                # per buffer (22 parameters, a few buffers each).
                excess = s["memory_model"]["measured_bytes_per_rank"] - expected
                self.assertGreaterEqual(excess, 0, (stage, s["memory_model"]))
                self.assertLessEqual(excess, 4 * (16384 + 256) + 22 * 4 * 256, (stage, s["memory_model"]))
                factor = 3 if stage == 3 else 2
                self.assertEqual(s["comm"]["expected_elements_per_step"], factor * elems)
                # Padding: at most world - 1 elements per parameter and collective.
                self.assertGreaterEqual(s["comm"]["elements_per_step"], factor * elems * 0.999)
                self.assertLess(s["comm"]["elements_per_step"], factor * elems + 22 * 3 * factor)
                for rank in s["ranks"]:
                    t = rank["time_ms"]
                    total = t["compute"] + t["exposed_comm"] + t["exposed_copy"] + t["idle"]
                    self.assertTrue(math.isclose(total, t["total"], rel_tol=1e-9), t)

    def test_reports_exports_and_queries(self):
        with tempfile.TemporaryDirectory() as folder:
            recording, _ = train(folder, "run", 3, 2)
            self.assertEqual(shardscope("info", recording).returncode, 0)
            info = json.loads(shardscope("info", "--json", recording).stdout)
            self.assertTrue(info["complete"])
            self.assertEqual(info["problems"], [])
            self.assertEqual([rank["exit_code"] for rank in info["ranks"]], [0, 0])
            json.loads(shardscope("findings", "--json", recording).stdout)
            page = pathlib.Path(folder) / "report.html"
            self.assertEqual(shardscope("report", recording, "-o", page).returncode, 0)
            text = page.read_text()
            for words in ("Verdict", "Where the time goes", "Partition map", "Memory of rank", "Communication"):
                self.assertIn(words, text)
            for outside in ("http://", "https://", "src="):
                self.assertNotIn(outside, text.replace("http://www.w3.org", ""))
            trace = pathlib.Path(folder) / "trace.json"
            self.assertEqual(shardscope("export", "--format", "chrome", "-o", trace, recording).returncode, 0)
            self.assertGreater(len(json.loads(trace.read_text())["traceEvents"]), 100)
            tables = {row[0] for row in sqlite3.connect(recording).execute("select name from sqlite_master")}
            self.assertTrue({"steps", "params", "modules", "ranks"} <= tables, tables)

    def test_ab_compares(self):
        with tempfile.TemporaryDirectory() as folder:
            result = shardscope("ab", "--config", ROOT / "samples/stage3.json", "--set-b", "zero_optimization.overlap_comm=false",
                                "--ranks", 2, "--model", "mlp", "--data", "golden:mlp", "--steps", 5, "--repeat", 2, "--json",
                                "--out", f"{folder}/ab")
            self.assertEqual(result.returncode, 0, result.stderr)
            comparison = json.loads(result.stdout)
            self.assertIn("zero_optimization.overlap_comm: true -> false", comparison["config_changes"])
            self.assertTrue(all(m["a"] is not None for m in comparison["metrics"] if m["metric"] == "step time"))

    def test_killed_rank_ends_the_run(self):
        with tempfile.TemporaryDirectory() as folder:
            recording = f"{folder}/run.zscope"
            run = subprocess.Popen([BIN / "shardscope", "run", "--config", ROOT / "samples/stage3.json", "--ranks", "3", "--model",
                                    "mlp", "--data", "golden:mlp", "--steps", "100000", "--record", recording], env=ENV, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            victim = None
            deadline = time.monotonic() + 30
            while victim is None and time.monotonic() < deadline:
                time.sleep(0.2)
                children = ranks_of(run.pid)
                if len(children) >= 3:
                    victim = children[-1]
            self.assertIsNotNone(victim)
            time.sleep(2)
            killed = time.monotonic()
            os.kill(victim, signal.SIGKILL)
            try:
                _, errors = run.communicate(timeout=15)
            finally:
                run.kill()
            self.assertLess(time.monotonic() - killed, 12)
            self.assertNotEqual(run.returncode, 0)
            self.assertIn("shardscope: ", errors)
            # What was recorded opens.
            summary = shardscope("summary", "--json", recording)
            self.assertEqual(summary.returncode, 0, summary.stderr)
            self.assertGreater(json.loads(summary.stdout)["steps"], 0)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
