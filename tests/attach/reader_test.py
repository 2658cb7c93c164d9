"""shardscope.open: what Python reads of a recording is what the command line prints and exports."""
import json
import os
import shutil
import struct
import subprocess
import sys
import unittest
from unittest import mock

import runs
from pairs import Runs, folder

CASES = [("zero3",), ("fsdp2",), ("ddp", "accumulate=2")]


def setUpModule():
    folder()
    sys.path.insert(0, str(runs.PACKAGE))
    global shardscope
    import shardscope


def number(text, like):
    """A cell of a CSV file as the value that the reader has in its place."""
    if text == "":
        return "" if like == "" else None
    if isinstance(like, bool):
        return text == "1"
    return type(like)(text) if isinstance(like, (int, float)) else text


class Reading(Runs):
    def opened(self, *case):
        path = self.attached(*case)[1]
        return shardscope.open(path), path

    def assert_rows(self, rows, cells, but=()):
        """Rows of the reader are those of the CSV file, column by column of those that both have."""
        rows = list(rows)
        self.assertEqual(len(rows), len(cells))
        self.assertGreater(len(rows), 0)
        shared = [name for name in rows[0] if name in cells[0] and name not in but]
        self.assertGreater(len(shared), 3)
        for row, cell in zip(rows, cells):
            for name in shared:
                value = number(cell[name], row[name])
                if isinstance(row[name], str) and value and value.startswith("'"):
                    value = value[1:]
                self.assertEqual(row[name], value, (name, row, cell))

    def test_figures_are_those_of_the_command_line(self):
        for case in CASES:
            with self.subTest(case=case):
                run, path = self.opened(*case)
                self.assertEqual(run.summary(), runs.figures(path))
                printed = subprocess.run([runs.SHARDSCOPE, "findings", "--json", "--plays", "0", path], capture_output=True, text=True, check=True)
                self.assertEqual(run.findings(), json.loads(printed.stdout))

    def test_what_the_command_is_asked(self):
        """In Python what the command line prints, of runs of this runtime, which what-if can play."""
        made = folder() / "commands"
        made.mkdir(exist_ok=True)
        config = made / "config.json"
        config.write_text(json.dumps({"train_micro_batch_size_per_gpu": 4, "zero_optimization":
                                      {"stage": 2, "overlap_comm": False, "reduce_bucket_size": 100_000}}))
        hardware = made / "machine.json"
        rates = json.loads((runs.ROOT / "assets/hardware/a100.json").read_text())
        hardware.write_text(json.dumps({**rates, "f32_tflops": 0.2, "processors": 0, "overlap_slowdown": 0,
                                        "inside": {"gb_per_s": 1, "latency_us": 20}}))
        paths = [made / "a.zscope", made / "b.zscope"]
        for path, more in zip(paths, ((), ("--straggler", "1:1.5"))):
            subprocess.run([runs.SHARDSCOPE, "simulate", "--model", "gpt-mini", "--config", config, "--hardware", hardware, "--ranks", "2",
                            "--steps", "12", "--jitter", "0.02", "-o", path, *more], check=True, stdout=subprocess.DEVNULL)

        def printed(*arguments):
            done = subprocess.run([runs.SHARDSCOPE, *map(str, arguments), "--json"], capture_output=True, text=True, check=False)
            return done.returncode, json.loads(done.stdout)

        with mock.patch.dict(os.environ, {"PATH": f"{runs.SHARDSCOPE.parent}:{os.environ['PATH']}"}):
            first, second = map(shardscope.open, paths)
            gains = first.findings(gains=True)
            self.assertEqual(gains, printed("findings", paths[0])[1])
            self.assertTrue(any(one["gain_ms"] for one in gains), gains)
            self.assertFalse(any(one["gain_ms"] for one in first.findings()))
            self.assertEqual(first.why(), printed("why", paths[0])[1])
            self.assertEqual(first.compare(second, by="rank"), printed("compare", *paths, "--by", "rank")[1])
            code, outcomes = printed("check", paths[1], "--baseline", paths[0], "--fail-over", "step_ms=5%")
            self.assertEqual(code, 1)
            self.assertEqual(second.check(paths[0], {"step_ms": "5%"}), outcomes)
            with self.assertRaisesRegex(shardscope.recording.CommandError, "speed"):
                second.check(first, {"speed": "5%"})
        with mock.patch.dict(os.environ, {"PATH": str(made)}):
            with self.assertRaisesRegex(shardscope.recording.CommandError, "PATH"):
                first.why()

    def test_tables_are_those_of_the_export(self):
        for case in CASES:
            with self.subTest(case=case):
                run, path = self.opened(*case)
                exported = runs.read(path)
                self.assert_rows(run.spans().rows(), exported.spans)
                self.assert_rows(run.events().rows(), exported.events)
                self.assert_rows(run.steps.rows(), exported.table("steps"))
                self.assert_rows(run.parameters.rows(), exported.params, but=("module",))
                self.assert_rows(run.modules.rows(), exported.modules)
                self.assert_rows(run.ranks.rows(), exported.table("ranks"))
                self.assert_rows(run.memory.rows(), exported.table("memory"))
                if case[0] != "ddp":
                    self.assert_rows(run.slices.rows(), exported.slices)
        self.assert_rows(run.messages.rows(), exported.table("messages"))

    def test_filters_choose_what_they_say(self):
        run, path = self.opened("zero3")
        spans = runs.read(path).spans
        steps = {(s["rank"], s["a"]): (int(s["begin_ns"]), int(s["end_ns"])) for s in spans if s["kind"] == "step_begin"}

        def expect(want, **chosen):
            cells = [s for s in spans if want(s)]
            self.assertGreater(len(cells), 0)
            self.assertLess(len(cells), len(spans))
            rows = list(run.spans(**chosen).rows())
            self.assertEqual([(str(r["rank"]), r["stream"], r["kind"], str(r["begin_ns"])) for r in rows],
                             [(s["rank"], s["stream"], s["kind"], s["begin_ns"]) for s in cells])

        def in_step(s, *numbers):
            return any(begin <= int(s["begin_ns"]) < end for begin, end in (steps[s["rank"], n] for n in numbers))

        expect(lambda s: s["rank"] == "1", rank=1)
        expect(lambda s: s["kind"] in ("fetch_wait_begin", "module_begin"), kind=["fetch_wait", "module_begin"])
        expect(lambda s: in_step(s, "1"), step=1)
        expect(lambda s: in_step(s, "0", "2") and s["kind"] == "module_begin", step=[2, 0], kind="module")
        begin, end = steps["0", "1"]
        expect(lambda s: begin <= int(s["begin_ns"]) < end, begin_ns=begin, end_ns=end)

    def test_one_kind_has_its_fields_by_name(self):
        run, path = self.opened("zero3")
        exported = runs.read(path)
        losses = list(run.events(kind="loss").rows())
        self.assertEqual([r["value"] for r in losses], [struct.unpack("<d", struct.pack("<q", int(e["v0"])))[0]
                                                        for rank in range(2) for e in exported.of(rank, "loss")])
        statuses, cells = list(run.events("param_status").rows()), exported.table("status")
        self.assert_rows(statuses, cells)
        self.assertEqual({r["cause"] for r in statuses}, {s["cause"] for s in cells})
        waits = list(run.spans("fetch_wait").rows())
        self.assertEqual([w["bytes"] for w in waits], [int(s["v0"]) for s in exported.spans if s["kind"] == "fetch_wait_begin"])
        self.assertIn(list(run.events("bucket_flush").rows())[0]["reason"], ("full", "epilogue"))

    def test_arrow_takes_it_without_a_copy_by_us(self):
        import pyarrow
        run, _ = self.opened("zero3")
        for table in (run.spans(), run.events(), run.spans("module", rank=0), run.steps, run.parameters, run.messages, run.gaps):
            taken = pyarrow.table(table)
            taken.validate(full=True)
            self.assertEqual(taken.column_names, table.columns)
            self.assertEqual(taken.to_pylist(), list(table.rows()))
        # A stream continues after its recording is closed; opening a table then is an error.
        stream = pyarrow.RecordBatchReader.from_stream(run.spans())
        table = run.steps
        run.close()
        self.assertEqual(stream.read_all().num_rows, len(runs.read(self.attached("zero3")[1]).spans))
        with self.assertRaisesRegex(RuntimeError, "closed"):
            list(table.rows())

    def test_frames(self):
        import pandas
        run, _ = self.opened("fsdp2")
        for table in (run.spans(), run.events("param_status"), run.steps, run.parameters, run.gaps):
            frame = table.to_pandas()
            self.assertEqual(list(frame.columns), table.columns)
            plain = [{k: None if pandas.isna(v) else v for k, v in row.items()} for row in frame.to_dict("records")]
            self.assertEqual(plain, list(table.rows()))
        frame = run.spans("module").to_pandas()
        self.assertEqual(str(frame["stream"].dtype), "category")
        self.assertEqual(str(frame["begin_ns"].dtype), "int64")
        arrays = run.spans().to_numpy()
        self.assertEqual(arrays["begin_ns"].tolist(), [r["begin_ns"] for r in run.spans().rows()])
        self.assertEqual(arrays["b"].tolist(), [r["b"] for r in run.spans().rows()])

    def test_without_numpy_pandas_and_pyarrow(self):
        path = self.attached("zero3")[1]
        code = ("import sys\nfor name in ('numpy', 'pandas', 'pyarrow'): sys.modules[name] = None\n"
                f"sys.path.insert(0, {str(runs.PACKAGE)!r})\nimport shardscope\nrun = shardscope.open({str(path)!r})\n"
                "print(len(list(run.spans().rows())), run.summary()['steps'])\n")
        output = runs.finish(runs.start([runs.PYTHON, "-I", "-c", code]))
        self.assertEqual(output.split(), [str(len(runs.read(path).spans)), "3"])

    def test_what_is_wrong_says_what_to_do(self):
        run, path = self.opened("zero3")
        for chosen, said in (({"kind": "fetch"}, "kind fetch: unknown; docs/events.md"), ({"kind": "loss"}, "kind loss: an event"),
                             ({"rank": 7}, "rank 7: not in the recording, which has 2 ranks"),
                             ({"step": 99}, "step 99: not in the recording, which has steps 0 to 2"), ({"rank": []}, "rank \\[\\]"),
                             ({"rank": -1}, "rank -1")):
            with self.subTest(chosen=chosen), self.assertRaisesRegex(ValueError, said):
                run.spans(**chosen)
        with self.assertRaisesRegex(ValueError, "kind module: a span"):
            run.events("module")
        with self.assertRaisesRegex(AttributeError, "recording has the tables"):
            run.nothing
        with self.assertRaisesRegex(ValueError, "takes no filter"):
            run.steps.filter(rank=0)
        from shardscope.recording import RecordingError
        for name, text in (("absent.zscope", "absent.zscope"), ("text.zscope", "text.zscope")):
            file = folder() / name
            if name == "text.zscope":
                file.write_text("not a recording\n" * 100, encoding="utf-8")
            with self.assertRaisesRegex(RecordingError, text) as raised:
                shardscope.open(file)
            printed = subprocess.run([runs.SHARDSCOPE, "summary", file], capture_output=True, text=True, check=False)
            self.assertIn(str(raised.exception), printed.stderr)

    def test_damage_is_said(self):
        path = self.attached("zero3")[1]
        damaged = folder() / "damaged.zscope"
        shutil.copy(path, damaged)
        with open(damaged, "r+b") as file:
            size = file.seek(0, 2)
            for place in range(size // 3, size, size // 9):
                file.seek(place)
                file.write(b"\xff" * 64)
        printed = subprocess.run([runs.SHARDSCOPE, "summary", "--json", damaged], capture_output=True, text=True, check=False)
        from shardscope.recording import RecordingError
        if printed.returncode != 0:
            with self.assertRaises(RecordingError) as raised:
                shardscope.open(damaged)
            self.assertIn(str(raised.exception), printed.stderr)
            return
        with self.assertWarns(UserWarning):
            run = shardscope.open(damaged)
        self.assertEqual(run.summary(), json.loads(printed.stdout))
        self.assertFalse(run.info["complete"])


class Counters(unittest.TestCase):
    """shardscope.counter() of a script, plain and attached."""

    def test_are_rows_with_unit_and_time(self):
        script, made = runs.HERE / "scripts" / "counts.py", folder() / "counts.zscope"
        runs.finish(runs.start(runs.torchrun(script)))
        runs.finish(runs.start(runs.attach(made) + runs.torchrun(script)))
        rows = [row for row in shardscope.open(made).counters.rows() if row["of_the_program"]]
        self.assertEqual({row["name"] for row in rows}, {"reward", "sent"}, "what was counted before the model was made is not recorded")
        for rank in range(2):
            reward = [row for row in rows if row["rank"] == rank and row["name"] == "reward"]
            self.assertEqual([(row["value"], row["unit"], row["end_ns"]) for row in reward], [(0.5 * step, "points", None) for step in range(4)])
            sent = [row for row in rows if row["rank"] == rank and row["name"] == "sent"]
            self.assertEqual([row["unit"] for row in sent], ["B/s"] * 3)
            for row in sent:
                self.assertAlmostEqual(row["value"] * (row["end_ns"] - row["begin_ns"]) * 1e-9, 1000, places=6)


if __name__ == "__main__":
    unittest.main()
