"""What rank 0 prints with wall_clock_breakdown, memory_breakdown, dump_state and log_level: the recording's own figures, and
training is the same without."""
import csv
import json
import pathlib
import re
import tempfile
import unittest

from command_line import CommandTest, ROOT, main, read, said, shardscope

GIB = 2**30
SMALL = ("--set", "zero_optimization.stage3_prefetch_bucket_size=20000", "--set", "gradient_accumulation_steps=2",
         "--set", "train_batch_size=auto")


class TrainingLog(CommandTest):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def run_with(self, *settings, detail="params", stage=3, steps=3, **more_of_run):
        self.recording = pathlib.Path(self.folder.name) / "run.zscope"
        more = [word for setting in settings for word in ("--set", setting)]
        result = shardscope("run", "--config", ROOT / f"samples/stage{stage}.json", "--ranks", 2, "--model", "mlp", "--data",
                            "golden:mlp", "--steps", steps, "--record", self.recording, "--overwrite", "--detail", detail, *SMALL, *more,
                            **more_of_run)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def rows(self, name):
        tables = pathlib.Path(self.folder.name) / "csv"
        if not tables.exists():
            said("export", self.recording, "--format", "csv", "-o", tables)
        with open(tables / f"{name}.csv", encoding="utf-8", newline="") as file:
            return [row for row in csv.DictReader(file) if row["rank"] == "0"]

    def test_times_and_counters_are_those_of_the_recording(self):
        lines = self.run_with("wall_clock_breakdown=true").stderr.splitlines()
        figures = {"forward": [], "backward": []}
        for line in lines:
            found = re.search(r"fwd_microstep: ([\d.]+) \| bwd_microstep: ([\d.]+) .*step_microstep", line)
            if found:
                figures["forward"].append(float(found[1]))
                figures["backward"].append(float(found[2]))
        for phase, printed in figures.items():
            recorded = [int(row["duration_ns"]) / 1e6 for row in self.rows("spans")
                        if row["kind"] == "phase_begin" and row["label"] == phase]
            self.assertEqual(len(printed), 6)
            for ours, theirs in zip(printed, recorded, strict=True):
                self.assertAlmostEqual(ours, theirs, delta=0.0051)  # as it is rounded
        self.assertEqual(sum("time (ms) | fwd: " in line for line in lines), 3)
        counted = {}
        for name, count, elems in re.findall(r"\[Rank 0\] (\w+): count = (\d+), numel = (\d+)", "\n".join(lines)):
            before = counted.setdefault(name, {"count": 0, "numel": 0})
            before["count"] += int(count)
            before["numel"] += int(elems)
        self.assertEqual(counted, read("summary", self.recording)["ranks"][0]["fetch_counters"]["total"])

    def test_memory_is_that_of_the_recording(self):
        lines = self.run_with("memory_breakdown=true").stderr.splitlines()
        printed = [(float(found[1]), float(found[2])) for found in
                   re.finditer(r"Engine \w+ \w+: MA ([\d.]+) GiB, Max_MA ([\d.]+) GiB", "\n".join(lines))]
        self.assertEqual(len(printed), 3 * (2 * 4 + 2))
        peak = max(int(row["pool_bytes_after"]) for row in self.rows("memory") if row["pool"] == "device") / GIB
        self.assertAlmostEqual(max(largest for _, largest in printed), peak, delta=0.00006)
        for now, largest in printed:
            self.assertLessEqual(now, largest)

    def test_decisions_are_those_of_the_recording(self):
        lines = self.run_with("log_level=debug").stderr.splitlines()
        changes = [row["status"] for row in self.rows("status")]
        for word, status in (("wait", "available"), ("release", "not available")):
            printed = sum(line.startswith(f"[Rank 0] -{word}: ") for line in lines)
            self.assertGreater(printed, 0)
            self.assertEqual(printed, sum(change.replace("_", " ").lower() == status for change in changes), word)

    def test_training_is_the_same_and_says_less_where_it_is_asked_to(self):
        plain = self.run_with()
        losses = read("summary", self.recording)["loss"]
        self.assertNotIn("[Rank 0]", plain.stderr)
        logged = self.run_with("wall_clock_breakdown=true", "memory_breakdown=true", "log_level=debug")
        self.assertEqual(read("summary", self.recording)["loss"], losses)
        self.assertIn("[Rank 0]", logged.stderr)
        self.assertIn("comms_logger: ignored", self.run_with("log_level=warning", "comms_logger.enabled=true").stderr)
        self.assertNotIn("comms_logger", self.run_with("log_level=error", "comms_logger.enabled=true").stderr)

    def test_the_configuration_is_printed_whole(self):
        path = pathlib.Path(self.folder.name) / "stderr.txt"
        with open(path, "ab") as log:
            self.run_with("dump_state=true", "log_level=error", stderr=log)
        # mpirun passes on 4 KiB at a time: a line of the collector may stand inside.
        text = re.sub(r"shardscope: [^\n]*\n", "", path.read_text(encoding="utf-8"))
        printed = json.JSONDecoder().raw_decode(text[text.index("configuration: ") + len("configuration: "):])[0]
        self.assertIs(printed["dump_state"], True)
        self.assertEqual(printed["zero_optimization"]["stage3_prefetch_bucket_size"], 20000)

    def test_what_is_not_emitted_is_not_printed_and_named(self):
        result = self.run_with("wall_clock_breakdown=true", "memory_breakdown=true", detail="phases")
        self.assertIn("memory_breakdown: not printed, shardscope.detail is phases; set it to params or more", result.stderr)
        self.assertIn("fwd_microstep", result.stderr)
        self.assertNotIn("Max_MA", result.stderr)


if __name__ == "__main__":
    main()
