"""Every verb on a recording of each framework: exit codes, the framework's own words, missing figures with their reasons; and a
picture of every panel, under xvfb.

    tests/attach/run verbs_test
"""
import importlib.metadata
import json
import shlex
import shutil
import sqlite3
import struct
import subprocess
import unittest

import runs
from pairs import TRAIN, Runs, folder, slow

# How a run of a case is called, and what one of these is called that it is not.
CASES = {("zero3",): "ZeRO-3", ("fsdp2",): "FSDP2", ("ddp", "accumulate=2"): "DDP"}
# What figures of the summary's text stand for a missing one.
MISSING = "—"
FORMATS = ("chrome", "perfetto", "kineto", "csv", "sqlite", "otlp")
PANELS = ("workspace", "overview", "timeline", "partition", "memory", "communication", "critical_path", "buckets", "stepper", "compare",
          "findings", "messages", "whatif", "find", "statistics", "flame", "lecture", "notes", "inspector", "trace_info", "connection",
          "options", "why")


def setUpModule():
    folder()


def verb(*arguments, code=0):
    """What it prints: standard output and standard error."""
    done = subprocess.run([*map(str, (runs.SHARDSCOPE, *arguments))], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=runs.DEADLINE_S, check=False)
    if done.returncode != code:
        raise AssertionError(f"{' '.join(map(str, arguments))}: ended with {done.returncode}, not {code}:\n{done.stdout[-2000:]}")
    return done.stdout


class Verbs(Runs):
    def each(self):
        for case, name in CASES.items():
            yield case, name, self.attached(*case)[1]

    def assert_named(self, text, name):
        """It names the framework, and no other way of splitting."""
        self.assertIn(name, text)
        for other in set(CASES.values()) - {name}:
            self.assertNotIn(other, text)

    def test_what_is_printed_of_a_run_has_its_frameworks_name(self):
        for case, name, recording in self.each():
            with self.subTest(case=case):
                for words in (("info",), ("summary",)):
                    self.assert_named(verb(*words, recording), name)
                for words in (("findings",), ("why",), ("findings", "--json"), ("summary", "--json")):
                    text = verb(*words, recording)
                    for other in set(CASES.values()) - {name}:
                        self.assertNotIn(other, text, words)

    def test_the_report(self):
        for case, name, recording in self.each():
            with self.subTest(case=case):
                page = folder() / f"{case[0]}.html"
                verb("report", recording, "-o", page, "--overwrite")
                text = page.read_text(encoding="utf-8")
                self.assertIn(f"{name}, 2 ranks", text)
                self.assertIn(f"{name} on 2 ranks</h1>", text)
                self.assert_named(text, name)

    def test_missing_figures_have_reasons(self):
        reasons = {"zero3": [], "fsdp2": ["FSDP2 has none", "it keeps no trace"], "ddp": ["DDP has none", "parameters stay whole"]}
        version = tuple(map(int, importlib.metadata.version("torch").split(".")[:2]))
        if version < (2, 14):
            reasons["ddp"].append("DistributedDataParallel issues its collectives in C++")
        for case, _, recording in self.each():
            with self.subTest(case=case):
                text = verb("summary", recording)
                for reason in ["a PyTorch script does not say how many tokens a batch has", "this run has no GPU", *reasons[case[0]]]:
                    self.assertIn(reason, text)
                figures = runs.figures(recording)
                self.assertIsNone(figures["tokens_per_s"])
                self.assertTrue(all(lack["why"] for lack in figures["run"]["not_recorded"]))
                waits = [rank["fetch_wait_ms"] for rank in figures["ranks"]]
                self.assertEqual([wait is None for wait in waits], [case[0] == "ddp"] * 2)

    def test_the_critical_path(self):
        for case, _, recording in self.each():
            with self.subTest(case=case):
                path = next(line for line in verb("summary", recording).splitlines() if line.startswith("critical path"))
                for part in ("forward", "backward"):
                    self.assertIn(part, path)

    def test_what_if_reduces_as_ddp_does(self):
        """Under its own settings as the run did; with buckets of any size each gradient once."""
        recording = self.attached("ddp", "accumulate=2", "steps=12")[1]
        self.assertIn("has no such setting", verb("what-if", recording, "--set", "zero_optimization.stage=2", code=2))
        answer = json.loads(verb("what-if", recording, "--json", "--set", "DistributedDataParallel.bucket_cap_mb=0.02"))
        reduced = next(row for row in answer["comparison"]["metrics"] if row["metric"] == "reduced buckets")
        self.assertEqual(reduced["a"], self.flushes_of_last_step(recording))
        self.assertGreater(reduced["b"], reduced["a"])

    def test_what_if_decides_as_fsdp2_does(self):
        """Under its own settings as the run did; without resharding as the run without it did, with its gathers and memory."""
        base, other = (self.attached("fsdp2", "steps=12", *more)[1] for more in ((), ("reshard=0",)))
        self.assertIn("FSDP2 has no such setting", verb("what-if", base, "--set", "zero_optimization.stage=2", code=2))
        answer = json.loads(verb("what-if", base, "--json", "--set", "fully_shard.reshard_after_forward=false"))
        own = json.loads(verb("what-if", other, "--json"))
        rows = {row["metric"]: row for row in answer["comparison"]["metrics"]}
        for row in own["comparison"]["metrics"]:
            if row["metric"] in ("gathers", "gathered elements", "reduced buckets", "most gathered at a time", "peak of model states"):
                self.assertEqual(rows[row["metric"]]["b"], row["a"], row["metric"])
        self.assertGreater(rows["gathers"]["a"], rows["gathers"]["b"])

    def test_what_if_decides_as_deepspeed_does(self):
        """Under its own settings as the run did, under another bucket size as the run with that size did. Times are no part of it:
        of steps this short a replay may be further off than what is answered, and then says so instead."""
        base, other = (self.attached("zero3", "steps=12", *more)[1] for more in ((), ("bucket=9000",)))
        text = verb("what-if", base, "--set", "bf16.enabled=true", code=2)
        self.assertIn("how fast another data type computes", text)
        self.assertIn("--search: not for an attached run", verb("what-if", base, "--search", code=2))
        answer = json.loads(verb("what-if", base, "--json", "--set", "zero_optimization.reduce_bucket_size=9000"))
        flushes = {name: self.flushes_of_last_step(recording) for name, recording in (("a", base), ("b", other))}
        reduced = next(row for row in answer["comparison"]["metrics"] if row["metric"] == "reduced buckets")
        self.assertEqual({name: reduced[name] for name in "ab"}, flushes)
        self.assertGreater(flushes["a"], flushes["b"])

    def flushes_of_last_step(self, recording):
        steps = runs.read(recording).spans_of(0, "step_begin")
        return sum(int(steps[-1]["begin_ns"]) <= int(event["at_ns"]) <= int(steps[-1]["end_ns"]) and int(event["v0"]) > 0
                   for event in runs.read(recording).of(0, "bucket_flush"))

    def test_comparing_and_checking(self):
        recordings = {case[0]: recording for case, _, recording in self.each()}
        same = json.loads(verb("compare", recordings["fsdp2"], recordings["fsdp2"], "--json"))
        self.assertEqual(same["config_changes"], [])
        lines = {line[:22].strip(): line for line in verb("compare", recordings["fsdp2"], recordings["ddp"]).splitlines()}
        self.assertEqual(lines["fetch wait"].split()[-4:-1], [MISSING] * 3)
        self.assertIn(f" {MISSING} ", lines["bucket flushes"])
        # From three steps, of which one is warm-up, nothing can be concluded.
        self.assertIn("2 measured steps that both runs have; 8 are needed", verb("check", recordings["ddp"], "--baseline", recordings["ddp"], code=3))

    def test_every_format(self):
        for case, _, recording in self.each():
            for name in FORMATS:
                with self.subTest(case=case, format=name):
                    made = folder() / f"{case[0]}.{name}"
                    verb("export", recording, "--format", name, "-o", made, "--overwrite")
                    getattr(self, f"check_{name}")(made, case)

    def check_chrome(self, made, case):
        names = {event.get("name", "") for event in json.loads(made.read_text(encoding="utf-8"))["traceEvents"]}
        self.assertTrue({"forward", "backward"} <= names, names)
        self.assertIn("nccl:all_gather", names)  # as tools for PyTorch's traces know it; DDP makes one when it is made

    def check_kineto(self, made, case):
        for rank in range(2):
            events = json.loads((made / f"rank_{rank}.json").read_text(encoding="utf-8"))["traceEvents"]
            self.assertGreater(sum(event.get("ph") == "X" for event in events), 20)

    def check_perfetto(self, made, case):
        self.assertIn(b"backward", made.read_bytes())

    def check_csv(self, made, case):
        self.assertGreater(len((made / "events.csv").read_text(encoding="utf-8").splitlines()), 500)

    def check_sqlite(self, made, case):
        with sqlite3.connect(made) as database:
            spans, collectives, statuses = (database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                                            for table in ("NVTX_EVENTS", "SHARDSCOPE_COLLECTIVES", "SHARDSCOPE_PARAM_STATUS"))
        self.assertGreater(spans, 50)
        self.assertGreater(collectives, 10)
        self.assertEqual(statuses > 0, case[0] != "ddp")

    def check_otlp(self, made, case):
        self.assertIn("resourceSpans", made.read_text(encoding="utf-8"))

    @slow
    def test_ab_of_two_training_commands(self):
        out = folder() / "ab"
        a, b = (" ".join(shlex.quote(str(word)) for word in runs.torchrun(TRAIN, "fsdp2", folder() / f"ab-{side}", *more))
                for side, more in (("a", ()), ("b", ("reshard=0",))))
        done = runs.finish(runs.start([runs.SHARDSCOPE, "ab", "--command-a", a, "--command-b", b, "--repeat", 1, "--out", out, "--json"]))
        compared = json.loads(done[done.index("\n{") if "\n{" in done else done.index("{"):])
        self.assertIn("metrics", compared)
        self.assertEqual(len(list(out.glob("*.zscope"))), 2)
        for recording in out.glob("*.zscope"):
            self.assertEqual(runs.figures(recording)["steps"], 3)


class Panels(Runs):
    def picture(self, recording, panel):
        """Bytes of its PNG, whose size is checked."""
        path = folder() / f"{recording.stem}-{panel}.png"
        done = subprocess.run(["xvfb-run", "-a", runs.SHARDSCOPE, "view", recording, "--screenshot", path, "--panel", panel,
                               "--size", "900x600"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        data = path.read_bytes()
        self.assertEqual(struct.unpack(">II", data[16:24]), (900, 600))
        return data

    @slow
    @unittest.skipIf(shutil.which("xvfb-run") is None, "xvfb-run is not installed")
    def test_every_panel_of_every_framework(self):
        for case in CASES:
            pictures = {}
            for panel in PANELS:
                with self.subTest(case=case, panel=panel):
                    pictures[panel] = self.picture(self.attached(*case)[1], panel)
                    self.assertGreater(len(pictures[panel]), 3000, "an empty picture")
            self.assertGreater(len(set(pictures.values())), len(PANELS) - 3, "panels look alike")


if __name__ == "__main__":
    unittest.main()
