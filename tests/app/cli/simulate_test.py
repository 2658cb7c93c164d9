#!/usr/bin/env python3
"""`shardscope simulate` as a user runs it: what it makes is a recording like any other, marked as simulated wherever
it is shown.

Usage: simulate_test.py BIN_FOLDER SOURCE_ROOT [unittest arguments]
"""
import contextlib
import csv
import json
import pathlib
import resource
import sqlite3
import subprocess
import tempfile
import time

from command_line import BIN, ENV, ROOT, CommandTest, main, read, shardscope

STAGE3 = ROOT / "samples/stage3.json"


class Simulate(CommandTest):
    def made(self, *arguments):
        result = shardscope("simulate", "--json", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_is_marked_wherever_it_is_shown(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            recording = folder / "run.zscope"
            made = self.made("--model", "gpt-mini", "--ranks", 4, "--config", STAGE3, "--steps", 4, "-o", recording)
            self.assertTrue(made["simulated"])
            self.assertEqual((made["world"], made["stage"], len(made["step_ms"]), made["dropped"]), (4, 3, 4, 0))
            info = read("info", recording)
            self.assertTrue(info["run"]["simulated"])
            self.assertTrue(info["complete"])
            self.assertEqual(info["events"], made["events"])
            self.assertIn("simulated", shardscope("info", recording).stdout)
            self.assertIn("simulated", shardscope("summary", recording).stdout)
            summary = read("summary", recording)
            self.assertTrue(summary["run"]["simulated"])
            self.assertEqual([loss for loss in summary["loss"] if loss is not None], [])  # missing, not zero
            # The ranks compare the trace that the first step recorded at the start of the second, which takes longer.
            self.assertAlmostEqual(summary["step_ms"]["median"], made["step_ms"][3], delta=0.001)
            with sqlite3.connect(recording) as tables:
                self.assertEqual(tables.execute("select simulated, world from run").fetchone(), (1, 4))
                self.assertEqual(tables.execute("select count(distinct rank) from slices").fetchone(), (4,))
            for form, file, words in (("chrome", "trace.json", '"simulated":true'), ("perfetto", "p", "(simulated)")):
                self.assertEqual(shardscope("export", "--format", form, "-o", folder / file, recording).returncode, 0)
                self.assertIn(words.encode(), (folder / file).read_bytes())
            self.assertEqual(shardscope("export", "--format", "sqlite", "-o", folder / "t.sqlite", recording).returncode, 0)
            with contextlib.closing(sqlite3.connect(folder / "t.sqlite")) as tables:
                self.assertEqual(tables.execute("select value from TARGET_INFO_SYSTEM_ENV where name = 'Simulated'").fetchall(),
                                 [("true",)])
            trace = json.loads((folder / "trace.json").read_text())["traceEvents"]
            names = [e["args"]["name"] for e in trace if e["name"] == "process_name"]
            self.assertEqual([name for name in names if "(simulated)" not in name], [])
            self.assertEqual(len(names), 4)
            self.assertIn("simulated", shardscope("findings", recording).stdout)
            self.assertTrue(all(finding["simulated"] for finding in
                                json.loads(shardscope("findings", "--json", recording).stdout)))
            self.assertEqual(shardscope("export", "--format", "csv", "-o", folder / "csv", recording).returncode, 0)
            with open(folder / "csv/ranks.csv", encoding="utf-8") as file:
                self.assertEqual([row["simulated"] for row in csv.DictReader(file)], ["1"] * 4)
            self.assertEqual(shardscope("report", recording, "-o", folder / "report.html").returncode, 0)
            report = (folder / "report.html").read_text()
            self.assertRegex(report, "<title>[^<]*simulated")
            self.assertRegex(report, "<p class=lead>[^<]*simulated")
            compared = shardscope("compare", recording, recording).stdout
            self.assertIn("Both runs are simulated", compared)
            self.assertRegex(compared, r"A \(simulated\) +B \(simulated\)")
            self.assertEqual(read("compare", recording, recording)["simulated"], {"a": True, "b": True})

    def test_what_a_free_link_gives_is_what_the_path_says(self):
        """The gain without transfer, of a run on a link, against the same run on a link that takes no time."""
        hardware = json.loads((ROOT / "assets/hardware/a100.json").read_text())
        free = json.loads(json.dumps(hardware))
        for where in ("inside", "between"):
            hardware[where]["gb_per_s"] /= 10
            free[where] = {"gb_per_s": 1e9, "latency_us": 1e-6}
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            summary = {}
            for name, described in (("link", hardware), ("free", free)):
                (folder / f"{name}.json").write_text(json.dumps(described))
                self.made("--layers", 4, "--width", 768, "--heads", 12, "--context", 512, "--ranks", 4, "--steps", 3,
                          "--hardware", folder / f"{name}.json", "-o", folder / f"{name}.zscope")
                summary[name] = read("summary", folder / f"{name}.zscope")
            path = summary["link"]["critical_path"]
            gained = summary["link"]["step_ms"]["median"] - summary["free"]["step_ms"]["median"]
            self.assertGreater(gained, 0.2 * summary["link"]["step_ms"]["median"])
            self.assertAlmostEqual(path["gain_ms_per_step"]["transfer"], gained, delta=0.01 * gained)
            self.assertLess(summary["free"]["critical_path"]["gain_ms_per_step"].get("transfer", 0), 0.01 * gained)
            for part, gain in path["gain_ms_per_step"].items():
                self.assertLessEqual(gain, path["ms_per_step"][part])

    def test_several_are_compared_with_the_first(self):
        with tempfile.TemporaryDirectory() as folder:
            recordings = []
            for name, more in (("a", ()), ("b", ("--set", "zero_optimization.overlap_comm=false")), ("c", ())):
                recordings.append(pathlib.Path(folder) / f"{name}.zscope")
                self.made("--model", "gpt-mini", "--ranks", 2, "--config", STAGE3, "--steps", 12, "-o", recordings[-1], *more)
            sweep = read("compare", *recordings)
            self.assertEqual([run["name"] for run in sweep["runs"]], [str(path) for path in recordings])
            self.assertEqual([run["measured_steps"] for run in sweep["runs"]], [11] * 3)
            self.assertAlmostEqual(sweep["confidence"], 0.975)
            self.assertEqual(sweep["settings"], [{"key": "zero_optimization.overlap_comm", "values": [True, False, True]}])
            steps = next(figure for figure in sweep["figures"] if figure["metric"] == "step_ms")["values"]
            self.assertEqual([value["differs"] for value in steps], [None, True, False])
            self.assertGreater(steps[1]["low_pct"], 0)
            self.assertEqual(steps[2]["change_pct"], 0)
            # The same as two are compared alone, of which medians are taken alike.
            alone = next(figure for figure in read("compare", *recordings[:2])["metrics"] if figure["metric"] == "step time")
            self.assertAlmostEqual(steps[1]["value"], alone["b"], places=6)
            text = shardscope("compare", *recordings).stdout
            self.assertRegex(text, r"Slower than A: B by [0-9.]+ % \(\+.*%\)\. No significant difference to A in step time: C\.")
            self.assertRegex(text, r"\nstep time, ms\n  A +[0-9.]+\n  B +[0-9.]+ +\+[0-9.]+ % +\+.* to \+.* %  worse\n  C ")
            self.assertIn("Simulated: A, B and C.", text)
            self.assertIn("zero_optimization.overlap_comm\n    A  true\n    B  false\n    C  true\n", text)

    def test_what_model_states_take_beyond_their_expression_has_a_name(self):
        shape = ("--layers", 2, "--width", 192, "--heads", 4, "--vocab", 257, "--context", 64)
        with tempfile.TemporaryDirectory() as folder:
            recording = pathlib.Path(folder) / "run.zscope"
            for ranks in (3, 7):
                for stage in (0, 1, 2, 3):
                    for kind in ("bf16", "fp32"):
                        with self.subTest(stage=stage, ranks=ranks, kind=kind):
                            config = pathlib.Path(folder) / "ds.json"
                            config.write_text(json.dumps({
                                "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1,
                                "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
                                "bf16": {"enabled": kind == "bf16"}, "zero_optimization": {"stage": stage}}))
                            self.made(*shape, "--ranks", ranks, "--config", config, "--steps", 2, "-o", recording)
                            model = read("summary", recording)["memory_model"]
                            self.assertEqual(model["unexplained_bytes"], 0, model)
                            parts = {part["cause"]: part["bytes"] for part in model["parts"]}
                            self.assertEqual(model["measured_bytes_per_rank"] - model["bytes_per_rank"],
                                             sum(parts.values()), model)
                            self.assertEqual("whole gradients" in parts, stage >= 2, model)

    def test_what_a_coarse_detail_does_not_record_is_not_shown_as_zero(self):
        with tempfile.TemporaryDirectory() as folder:
            recording, page = pathlib.Path(folder) / "run.zscope", pathlib.Path(folder) / "run.html"
            parts = ("compute", "exposed_comm", "exposed_copy", "idle")
            for detail, known in (("steps", set()), ("phases", {"trace"}), ("modules", {"trace", "time"}),
                                  ("params", {"trace", "time", "copies", "prefetch"})):
                with self.subTest(detail=detail):
                    self.made("--model", "gpt-mini", "--ranks", 2, "--config", STAGE3, "--steps", 3, "--detail", detail, "-o",
                              recording)
                    found = read("summary", recording)
                    self.assertEqual(found["trace"] is not None, "trace" in known)
                    self.assertEqual(found["prefetch"] is not None, "prefetch" in known)
                    self.assertEqual(found["comm"]["elements_per_step"] is not None, "time" in known)
                    for rank in found["ranks"]:
                        recorded = {part for part in parts if rank["time_ms"][part] is not None}
                        wanted = set(parts) if "copies" in known else set(parts) - {"exposed_copy"} if "time" in known else set()
                        self.assertEqual(recorded, wanted)
                        self.assertEqual(rank["time_steps"], 2 if "time" in known else 0)
                        self.assertEqual(rank["fetch_wait_ms"] is not None, "time" in known)
                        self.assertGreater(rank["time_ms"]["total"], 0)
                    self.assertEqual(shardscope("report", recording, "-o", page, "--overwrite").returncode, 0)
                    self.assertEqual("What was computed is not known" in page.read_text(), "time" not in known)
                    self.assertEqual("Prefetches: not known" in page.read_text(), "prefetch" not in known)
                    text = shardscope("summary", recording).stdout
                    self.assertEqual("what was computed in 2 of the 2 measured steps is not known" in text, "time" not in known)
                    if "time" not in known:
                        self.refused(["what-if", recording], "has no record of what was computed", "detail modules")

    def test_a_straggler_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            recording = pathlib.Path(folder) / "run.zscope"
            shape = ("--layers", 2, "--width", 1024, "--heads", 8, "--vocab", 512, "--context", 512, "--ranks", 4)
            even = self.made(*shape, "--config", STAGE3, "--steps", 3)
            slow = self.made(*shape, "--config", STAGE3, "--steps", 3, "--straggler", "2:1.5", "-o", recording)
            self.assertEqual(slow["model"], "gpt:layers=2,width=1024,heads=8,context=512,vocabulary=512")
            self.assertGreater(slow["step_ms"][2], 1.2 * even["step_ms"][2])
            ranks = read("summary", recording)["ranks"]
            computing = [rank["time_ms"]["compute"] for rank in ranks]
            self.assertEqual(max(range(4), key=lambda rank: computing[rank]), 2)

    def test_evaluations_lie_between_steps_and_have_no_loss(self):
        with tempfile.TemporaryDirectory() as folder:
            recording = pathlib.Path(folder) / "run.zscope"
            options = ("--model", "gpt-mini", "--ranks", 4, "--config", STAGE3, "--steps", 5)
            plain = self.made(*options)
            made = self.made(*options, "--set", "shardscope.eval_interval=2", "--set", "shardscope.eval_batches=3", "-o", recording)
            self.assertEqual(plain["evaluation_ms"], [])
            self.assertEqual(len(made["evaluation_ms"]), 2)
            summary = read("summary", recording)
            for rank in summary["ranks"]:
                self.assertEqual(rank["evaluations"]["count"], 2)
                self.assertLess(rank["evaluations"]["ms"], sum(made["evaluation_ms"]) + 0.001)
            self.assertEqual(summary["eval_loss"], [None] * 5)
            self.assertEqual(summary["eval_trace"], {"record": 4, "complete": 20})
            # The steps are those of a run without.
            for with_it, without in zip(made["step_ms"], plain["step_ms"], strict=True):
                self.assertAlmostEqual(with_it, without, delta=0.001)

    def test_many_ranks_over_a_live_collector(self):
        with tempfile.TemporaryDirectory() as folder:
            recording = pathlib.Path(folder) / "run.zscope"
            endpoint = f"ipc://{folder}/collector"  # no other process can take it, unlike a free port
            recorder = subprocess.Popen([BIN / "shardscope", "record", recording, "--listen", endpoint], env=ENV,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            try:
                made = self.made("--model", "gpt-mini", "--ranks", 96, "--config", STAGE3, "--steps", 2, "--detail",
                                 "modules", "--connect", endpoint)
                recorder.wait(timeout=60)
            finally:
                if recorder.poll() is None:
                    recorder.kill()
                recorder.stderr.close()
            info = read("info", recording)
            self.assertEqual(info["events"], made["events"])
            self.assertEqual([rank["rank"] for rank in info["ranks"]], list(range(96)))
            self.assertEqual({(rank["dropped"], rank["lost_messages"]) for rank in info["ranks"]}, {(0, 0)})
            self.assertEqual(len({rank["host"] for rank in info["ranks"]}), 12)  # nodes of eight
            self.assertEqual(info["run"]["parameters"], 52)  # one rank sent the lists for all

    def test_ranks_of_several_processes_publish_live_to_the_collectors_of_their_nodes(self):
        """As where thousands of ranks need more open files than a process may have: here 8 ranks' for each."""
        with tempfile.TemporaryDirectory() as folder:
            recording = pathlib.Path(folder) / "run.zscope"
            top, nodes = f"ipc://{folder}/top", [f"ipc://{folder}/node{n}" for n in range(2)]
            quiet = {"env": ENV, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            collectors = [subprocess.Popen([BIN / "shardscope", "record", recording, "--listen", top], **quiet)]
            collectors += [subprocess.Popen([BIN / "shardscope", "collect", "--upstream", top, "--listen", node], **quiet)
                           for node in nodes]

            def few_files():
                resource.setrlimit(resource.RLIMIT_NOFILE, (256 + 8 * 8, 256 + 8 * 8))

            try:
                began = time.monotonic()
                made = subprocess.run([BIN / "shardscope", "simulate", "--json", "--model", "gpt-mini", "--ranks", "32", "--config",
                                       STAGE3, "--steps", "3", "--detail", "modules", "--live", "--connect", nodes[0], "--connect",
                                       nodes[1]], env=ENV, capture_output=True, text=True, timeout=120, preexec_fn=few_files)
                took = time.monotonic() - began
                self.assertEqual(made.returncode, 0, made.stderr)
                for collector in collectors:
                    self.assertEqual(collector.wait(timeout=60), 0)
            finally:
                for collector in collectors:
                    if collector.poll() is None:
                        collector.kill()
                        collector.wait()
            made = json.loads(made.stdout)
            self.assertGreater(took, sum(made["step_ms"]) / 1e3, "a live run takes the time that it simulates")
            info = read("info", recording)
            self.assertEqual(info["events"], made["events"])
            self.assertEqual([rank["rank"] for rank in info["ranks"]], list(range(32)))
            self.assertEqual({(rank["dropped"], rank["lost_messages"]) for rank in info["ranks"]}, {(0, 0)})
            self.assertEqual(info["run"]["parameters"], 52)

    def test_the_end_of_one_of_the_collectors_is_named(self):
        """Also where a process of its own sends to it."""
        with tempfile.TemporaryDirectory() as folder:
            ends = [f"ipc://{folder}/node{n}" for n in range(2)]
            recorders = [subprocess.Popen([BIN / "shardscope", "record", pathlib.Path(folder) / f"{n}.zscope", "--listen", end], env=ENV,
                                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for n, end in enumerate(ends)]

            def few_files():
                resource.setrlimit(resource.RLIMIT_NOFILE, (256 + 8 * 8, 256 + 8 * 8))

            player = subprocess.Popen([BIN / "shardscope", "simulate", "--model", "gpt-mini", "--ranks", "16", "--config", STAGE3,
                                       "--steps", "1000000", "--connect", ends[0], "--connect", ends[1]], env=ENV,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=few_files)
            try:
                self.assertIn("step 1 of", player.stdout.readline())
                recorders[1].kill()
                _, said = player.communicate(timeout=90)
            finally:
                for process in (*recorders, player):
                    process.kill()
                    process.wait()
            self.assertEqual(player.returncode, 1)
            self.assertRegex(said, f"the collector at {ends[1]} has not answered for 10 s; the run is not whole there")


    def test_a_collector_that_is_gone_ends_it(self):
        with tempfile.TemporaryDirectory() as folder:
            endpoint = f"ipc://{folder}/collector"
            recorder = subprocess.Popen([BIN / "shardscope", "record", pathlib.Path(folder) / "run.zscope", "--listen",
                                         endpoint], env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            player = subprocess.Popen([BIN / "shardscope", "simulate", "--model", "gpt-mini", "--ranks", "4", "--config",
                                       str(STAGE3), "--steps", "1000000", "--connect", endpoint], env=ENV,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            try:
                self.assertIn("step 1 of", player.stdout.readline())
                recorder.kill()
                recorder.wait()
                _, said = player.communicate(timeout=90)
            finally:
                recorder.kill()
                player.kill()
            self.assertEqual(player.returncode, 1)
            self.assertRegex(said, "the collector at ipc://.* has not answered for 10 s; the run is not whole there")


class Errors(CommandTest):
    def check(self, options, *words):
        output = self.refused(["simulate", *options], *words)
        self.assertEqual(output.count("\n"), 1, output)

    def test_wrong_input_is_named(self):
        self.check(["--hardware", "z9"], "--hardware z9", "h100")
        self.check(["--hardware", "/nowhere/h.json"], "/nowhere/h.json")
        self.check(["--model", "gpt9"], "gpt9", "gpt3-6.7b")
        self.check(["--model", "/nowhere/m.json"], "/nowhere/m.json", "no such file")
        self.check(["--model", "gpt2", "--layers", "3"], "--layers", "--model")
        self.check(["--layers", "3", "--width", "10", "--heads", "3"], "heads")
        self.check(["--ranks", "0"], "--ranks", "0 is not a number above 0")
        self.check(["--ranks", "12", "--model", "mlp"], "12 ranks do not fill nodes of 8")
        self.check(["--config", "/nowhere/ds.json"], "/nowhere/ds.json")
        self.check(["--model", "mlp", "--straggler", "9:2"], "--straggler 9:2", "0 to 7")
        self.check(["--model", "mlp", "--straggler", "1:fast"], "RANK:FACTOR")
        self.check(["--model", "mlp", "--slow-link", "9:2"], "--slow-link 9:2", "0 to 7")
        self.check(["--model", "mlp", "--slow-link", "1"], "--slow-link 1: write RANK:FACTOR")
        self.check(["--model", "mlp", "--connect", "nonsense"], "nonsense")
        self.check(["--model", "gpt3-175b", "--ranks", "1"], "device memory exhausted")
        self.check(["--model", "mlp", "--set", 'zero_optimization.offload_optimizer={"device":"cpu"}',
                    "--set", "zero_optimization.zenflow={}"], "zenflow.update_interval", "give a number of steps")

    def test_a_collector_that_is_not_there_is_named_while_it_is_waited_for(self):
        with tempfile.TemporaryDirectory() as folder:
            endpoint = f"ipc://{folder}/none"
            player = subprocess.Popen([BIN / "shardscope", "simulate", "--model", "mlp", "--ranks", "2", "--connect", endpoint],
                                      env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            try:
                self.assertRegex(player.stderr.readline(), f"warning: no collector answers at {endpoint} yet; waiting")
            finally:
                player.terminate()
                player.communicate(timeout=60)

    def test_more_ranks_than_connections(self):
        self.check(["--model", "mlp", "--ranks", "1000000", "--detail", "steps", "--connect", "tcp://127.0.0.1:9"],
                   "--ranks 1000000", "ulimit")


if __name__ == "__main__":
    main()
