#!/usr/bin/env python3
"""The command line as a user runs it: real ranks, real recordings, a rank that is killed.

Usage: training_test.py BIN_FOLDER SOURCE_ROOT [unittest arguments]
"""
import json
import math
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest

from command_line import BIN, ENV, ROOT, main, read, shardscope, train


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
                # The same figure before the run.
                rows = read("estimate", "all", "--model", "mlp", "--gpus-per-node", 3, "--config",
                            ROOT / f"samples/stage{stage}.json")
                row = next(r for r in rows if r["stage"] == stage and r["offload_optimizer"] == "none")
                measured = s["memory_model"]["measured_bytes_per_rank"]
                self.assertLessEqual(row["model_states_bytes"], measured)
                self.assertLessEqual(measured, row["model_states_bytes"] + row["bucket_bytes_at_most"] + 22 * 4 * 256)
                factor = 3 if stage == 3 else 2
                self.assertEqual(s["comm"]["expected_elements_per_step"], factor * elems)
                # Padding: at most world - 1 elements per parameter and collective.
                self.assertGreaterEqual(s["comm"]["elements_per_step"], factor * elems * 0.999)
                self.assertLess(s["comm"]["elements_per_step"], factor * elems + 22 * 3 * factor)
                for rank in s["ranks"]:
                    t = rank["time_ms"]
                    total = t["checkpoint"] + t["compute"] + t["exposed_comm"] + t["exposed_copy"] + t["idle"]
                    self.assertEqual(rank["checkpoints"]["saves"] + rank["checkpoints"]["loads"], 0)
                    self.assertTrue(math.isclose(total, t["total"], rel_tol=1e-9), t)

    def test_scheduler_comparison_is_what_the_run_did(self):
        """What is computed for the run's own scheduler is what the run was seen to gather."""
        limits = [part for key, value in {"prefetch_bucket_size": 20000, "max_live_parameters": 30000,
                                          "max_reuse_distance": 0, "param_persistence_threshold": 100}.items()
                  for part in ("--set", f"zero_optimization.stage3_{key}={value}")]
        both = {}
        with tempfile.TemporaryDirectory() as folder:
            for compat, other in (("shardscope", "deepspeed"), ("deepspeed", "shardscope")):
                recording, s = train(folder, compat, 3, 2, *limits, "--set", f"shardscope.compat={compat}")
                scheduling = s["scheduling"]
                self.assertEqual((scheduling["run"], scheduling["other"]), (compat, other))
                gathers = next(op for op in s["comm"]["ops"] if op["op"] == "all_gather")
                made = scheduling["run_totals"]["gathers"]
                if compat == "deepspeed":  # the gather of the persistent parameters is a collective for each of them
                    with sqlite3.connect(recording) as sql:
                        made += sql.execute("SELECT count(*) FROM params WHERE persistent").fetchone()[0] - 1
                self.assertEqual(gathers["count"], s["steps_measured"] * made)
                self.assertGreater(len(scheduling["differences"]), 0)
                both[compat] = scheduling
                text = shardscope("summary", recording).stdout
                self.assertIn(scheduling["text"], text)
                page = pathlib.Path(folder) / f"{compat}.html"
                self.assertEqual(shardscope("report", recording, "-o", page).returncode, 0)
                self.assertIn(scheduling["differences"][0], page.read_text())
        self.assertEqual(both["shardscope"]["run_totals"], both["deepspeed"]["other_totals"])
        self.assertEqual(both["shardscope"]["other_totals"], both["deepspeed"]["run_totals"])

    def test_prefetches_for_a_trace_that_broke_were_in_vain(self):
        with tempfile.TemporaryDirectory() as folder:
            recording, s = train(folder, "visit", 3, 2, "--set", "zero_optimization.stage3_prefetch_bucket_size=20000",
                         model=ROOT / "samples/models/mlp_visit.json")
            self.assertEqual(s["trace"]["invalidated"], 2)  # the block is skipped once, on both ranks
            self.assertGreaterEqual(s["prefetch"]["mistargeted"], 2)
            self.assertGreater(s["prefetch"]["vain_bytes"], 0)
            found = {one["id"]: one for one in read("findings", recording)}
            vain = s["prefetch"]["mistargeted"] + s["prefetch"]["unused"]
            self.assertIn(f"{vain} prefetches of all ranks were never used", found["trace_invalidated"]["explains"])
            self.assertIsNotNone(found["trace_invalidated"]["cost_once_ms"])
            page = pathlib.Path(folder) / "report.html"
            self.assertEqual(shardscope("report", recording, "-o", page).returncode, 0)
            text = page.read_text()
            self.assertIn(f"rank 0, which {s['trace']['first_invalidation']['text']}.", text)
            for rank in s["ranks"]:
                gathers = rank["fetch_counters"]["total"]["backward_all_gather"]["count"]
                row = re.search(rf"<tr><td>{rank['rank']}<td>backward(.*?)</tr>", text).group(1)
                self.assertEqual(row.split("<td class=n>")[8], str(gathers))

    def test_reports_exports_and_queries(self):
        with tempfile.TemporaryDirectory() as folder:
            recording, _ = train(folder, "run", 3, 2)
            self.assertEqual(shardscope("info", recording).returncode, 0)
            info = read("info", recording)
            self.assertTrue(info["complete"])
            self.assertEqual(info["problems"], [])
            self.assertEqual([rank["exit_code"] for rank in info["ranks"]], [0, 0])
            read("findings", recording)
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

    def test_ab_sweeps_a_key(self):
        with tempfile.TemporaryDirectory() as folder:
            result = shardscope("ab", "--config", ROOT / "samples/stage3.json", "--sweep", "zero_optimization.stage=3,2,0",
                                "--ranks", 2, "--model", "mlp", "--data", "golden:mlp", "--steps", 4, "--repeat", 2, "--json",
                                "--out", f"{folder}/ab")
            self.assertEqual(result.returncode, 0, result.stderr)
            sweep = json.loads(result.stdout)
            self.assertEqual([run["name"] for run in sweep["runs"]], [f"zero_optimization.stage={stage}" for stage in (3, 2, 0)])
            self.assertIn({"key": "zero_optimization.stage", "values": [3, 2, 0]}, sweep["settings"])
            figures = {figure["metric"]: figure["values"] for figure in sweep["figures"]}
            # Two repeats of three measured steps.
            self.assertEqual([value["pairs"] for value in figures["step_ms"]], [0, 6, 6])
            self.assertLess(figures["step_ms"][2]["low_pct"], figures["step_ms"][2]["high_pct"])
            # A run has one value of what it communicated: there is a change and no interval.
            self.assertAlmostEqual(figures["elements"][2]["change_pct"], 0, delta=0.1)  # the small model stays gathered
            self.assertIsNone(figures["elements"][2]["low_pct"])
            self.assertEqual(sorted(path.name for path in pathlib.Path(folder, "ab").glob("*.zscope")),
                             ["a1.zscope", "a2.zscope", "b1.zscope", "b2.zscope", "c1.zscope", "c2.zscope"])

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
            self.assertGreater(read("summary", recording)["steps"], 0)
            # Blamed is the rank that was killed, not one that noticed.
            info = read("info", recording)
            dead = next(rank["rank"] for rank in info["ranks"] if rank["pid"] == victim)
            blame = f"rank {dead} was killed by signal 9 (SIGKILL)"
            self.assertEqual((info["first_failure"]["rank"], info["first_failure"]["text"]), (dead, blame))
            self.assertIn(f"shardscope: {blame}", errors)
            summary = subprocess.run([BIN / "shardscope", "summary", recording], env=ENV, text=True, capture_output=True, check=True)
            self.assertIn(blame, summary.stdout)
            self.assertEqual(read("findings", recording)[0]["title"], blame.capitalize().replace("sigkill", "SIGKILL"))


if __name__ == "__main__":
    main()
