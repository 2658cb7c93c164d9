"""Runs that hang, and what `why` says of them while they do: a stopped rank, a killed one."""
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import unittest

import command_line
from command_line import BIN, ENV, ROOT, read, said


def ranks_below(launcher):
    """Process ids of the zero_train processes below `launcher`."""
    found = []
    for folder in command_line.processes_below(launcher):
        try:
            if os.readlink(folder / "exe").endswith("/zero_train"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def wait_until(holds, seconds=60):
    """What `holds` gives once it holds; it is asked again after 50 ms."""
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s")
        time.sleep(0.05)
    return found


class Why(command_line.CommandTest):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = pathlib.Path(kept.name)
        self.recording, self.endpoint = self.folder / "run.zscope", f"ipc://{self.folder}/run.sock"

    def start(self, ranks=3):
        run = subprocess.Popen([BIN / "shardscope", "run", "--no-view", "--config", ROOT / "samples/stage3.json", "--ranks", str(ranks),
                                "--model", "mlp", "--data", "golden:mlp", "--steps", "1000000", "--record", self.recording,
                                "--listen", self.endpoint], env=ENV, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(run.communicate)
        self.addCleanup(run.kill)
        def training():
            pids = ranks_below(run.pid)
            if len(pids) != ranks or not self.recording.exists():
                return None
            answer = command_line.shardscope("info", self.recording, "--json")
            return pids if answer.returncode == 0 and json.loads(answer.stdout)["events"] > 1000 else None
        return run, wait_until(training)

    def test_a_stopped_rank_is_named_while_the_run_stands(self):
        run, pids = self.start()
        stopped = pids[-1]
        os.kill(stopped, signal.SIGSTOP)
        try:
            # Its connection lasts: it is no failed rank.
            def later():
                text = said("why", self.endpoint)
                # What the others emitted before they waited may still be on its way. Where ranks agree on overflow and norm
                # no collective is recorded.
                return re.search(r"Rank \d never entered it: it is stopped since|"
                                 r"is stopped since .*; no rank waits in a recorded collective\.", text)
            wait_until(later)
            why = json.loads(said("why", self.endpoint, "--json"))
            stacks = json.loads(said("why", self.endpoint, "--stacks", "--ranks", "0-2", "--json"))["stacks"]
            for one in stacks:
                self.assertEqual(one["answered"], one["rank"] != why["culprit"], one)
                if one["answered"]:
                    self.assertIn("thread main", one["text"])
                    self.assertIn("shardscope::", one["text"])
                else:
                    self.assertIn("is stopped", one["text"])
        finally:
            os.kill(stopped, signal.SIGCONT)
        self.assertTrue(why["hung"], why)
        culprit = why["culprit"]
        if "no rank waits in a recorded collective" not in why["text"]:
            for one in (one for one in why["ranks"] if one["rank"] != culprit):
                self.assertIn(culprit, one["waits_for"], why)
            self.assertRegex(why["text"], rf"Ranks .* wait in .* for rank {culprit}, since")
        wait_until(lambda: "was frozen from" in said("why", self.endpoint, "--wait", 1))
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=60)
        self.assertRegex(said("why", self.recording), rf"Rank {culprit} was frozen from \S+ s to")
        found = {one["id"]: one for one in read("findings", self.recording)}
        self.assertNotIn("rank_failed", found)
        self.assertNotIn("rehearsed_fault", found)
        self.assertIn("single_stop", found)
        # Stopped inside a collective it waits as the others do: then no rank is named, and never another one.
        self.assertIn(found["single_stop"]["rank"], (culprit, None), found["single_stop"])
        self.assertGreater(found["single_stop"]["cost_once_ms"], 400)
        self.assertEqual(next(rank["pid"] for rank in read("info", self.recording)["ranks"] if rank["rank"] == culprit), stopped)

    def test_a_killed_rank_is_why_the_others_waited(self):
        run, pids = self.start()
        os.kill(pids[-1], signal.SIGKILL)
        run.communicate(timeout=120)
        text = said("why", self.recording)
        self.assertNotIn("is not recorded", text)
        self.assertIn("killed by signal 9", text)

    def test_before_a_rank_has_come_that_is_said(self):
        recorder = subprocess.Popen([BIN / "shardscope", "record", self.recording, "--listen", self.endpoint], env=ENV,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(recorder.communicate)
        self.addCleanup(recorder.kill)
        self.assertIn("No event of any rank has arrived", said("why", self.endpoint))
        self.refused(("findings", self.endpoint), "no event of any rank has arrived")

    def test_stacks_are_of_live_runs(self):
        self.refused(("why", self.folder / "run.zscope", "--stacks"), "--stacks", "endpoint of a live run")

    def test_a_run_that_goes_on_does_not_hang(self):
        run, _ = self.start(2)
        why = json.loads(said("why", self.endpoint, "--wait", 3, "--json"))
        self.assertFalse(why["hung"], why)
        self.assertIsNone(why["difference"], why)
        self.assertEqual(why["text"], "The run continues: events come in.")
        self.assertIsInstance(read("findings", self.endpoint), list)
        # The other verbs that read recordings take what it has recorded so far.
        summary = read("summary", self.endpoint)
        self.assertEqual((summary["run"]["world"], summary["run"]["stage"]), (2, 3))
        self.assertGreater(summary["steps_measured"], 1)
        page, trace = self.folder / "live.html", self.folder / "live.json"
        said("report", self.endpoint, "-o", page)
        self.assertIn("<h2>Verdict</h2>", page.read_text())
        said("export", self.endpoint, "--format", "chrome", "-o", trace)
        self.assertIn("the run was going on when this was written", trace.read_text())
        self.refused(("report", self.endpoint), "-o FILE")
        self.refused(("info", self.endpoint), self.endpoint)
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=60)

    def test_what_is_no_run_is_refused(self):
        self.refused(("why", f"ipc://{self.folder}/none.sock", "--wait", 0.5), "no collector answered")
        self.refused(("why", self.folder / "none.zscope"), "none.zscope")

    def test_an_answer_of_nccls_ras(self):
        answer, later = self.folder / "ras.json", self.folder / "later.json"
        counts = [42, 41, 42]
        for path in (answer, later):
            path.write_text(json.dumps({"nccl_version": "2.29.1", "communicators": [{"hash": "0xae94", "ranks": [
                {"rank": rank, "host": "node1", "pid": 100 + rank, "cuda_dev": rank, "collective_counts": {"AllGather": count}}
                for rank, count in enumerate(counts)]}]}), encoding="utf-8")
        text = command_line.said("why", "--ras", answer)
        self.assertIn("NCCL's RAS (NCCL 2.29.1)", text)
        self.assertIn("rank 1 (process 101 on node1, GPU 1) has launched AllGather up to number 41, 2 ranks up to number 42", text)
        self.assertIn("ask again", text)
        self.assertIn("nothing was launched between the two", command_line.said("why", "--ras", answer, later))
        self.assertIs(command_line.read("why", "--ras", answer, later)["uneven"][0]["unchanged"], True)
        later.write_text("hello")
        self.refused(("why", "--ras", later), "later.json", "not an answer of NCCL's RAS", "ncclras")
        self.refused(("why", "--ras", self.folder), "cannot be read")
        self.refused(("why", "--ras", self.folder / "nowhere"), "nowhere", "cannot be read")
        for wrong in (("why",), ("why", "--json"), ("why", "run.zscope", "--ras", answer), ("why", "--ras", answer, answer, answer)):
            self.refused(wrong)
            self.assertEqual(command_line.shardscope(*wrong).returncode, 2, wrong)


    def test_dumps_of_pytorchs_flight_recorder(self):
        dumps = self.folder / "dumps" / "node0"
        dumps.mkdir(parents=True)
        def write(rank, issued, name="nccl_trace_rank_{}.json"):
            entries = [{"record_id": number, "process_group": ["0", "default_pg"], "profiling_name": "nccl:all_reduce", "is_p2p": False,
                        "collective_seq_id": number + 1, "p2p_seq_id": 0, "time_created_ns": number, "input_sizes": [[4]],
                        "output_sizes": [[4]], "input_dtypes": ["Float"], "output_dtypes": ["Float"], "retired": False,
                        "state": "started" if number == 2 else "completed"} for number in range(issued)]
            (dumps / name.format(rank)).write_text(json.dumps({
                "version": "2.10", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2]"}}, "entries": entries}))
        for rank, issued in enumerate((3, 2, 3)):
            write(rank, issued)
        text = command_line.said("why", "--flight-recorder", dumps.parent)
        self.assertTrue(text.startswith("Ranks 0, 2 wait for rank 1 in all_reduce #3 of group 0 (default_pg)"), text)
        files = sorted(dumps.iterdir())
        self.assertEqual(command_line.read("why", "--flight-recorder", *files)["culprits"], [1])
        self.assertEqual(command_line.read("why", "--flight-recorder", files[0], files[2])["without_dump"], [1])
        # One that was cut while it was written is named; the others are read.
        files[1].write_text(files[1].read_text()[:100])
        done = command_line.shardscope("why", "--flight-recorder", dumps)
        self.assertEqual(done.returncode, 0)
        self.assertIn("its JSON ends or is wrong", done.stderr)
        self.assertIn("Rank 1 has no dump here", done.stdout)
        self.refused(("why", "--flight-recorder", files[1]), "not a dump of PyTorch's Flight Recorder")
        write(0, 3, "other_{}.json")
        self.refused(("why", "--flight-recorder", dumps), "files of several names")
        self.refused(("why", "--flight-recorder", files[0], dumps / "other_0.json"), "is of rank 0")
        (dumps / "log.txt").write_text("")
        self.refused(("why", "--flight-recorder", dumps / "log.txt"), "no rank at the end of its name")
        self.refused(("why", "--flight-recorder", self.folder / "nowhere"), "nowhere", "is not there")
        (self.folder / "empty").mkdir()
        self.refused(("why", "--flight-recorder", self.folder / "empty"), "holds no file whose name ends with a rank")
        for wrong in (("why", "run.zscope", "--flight-recorder", dumps), ("why", "--ras", files[0], "--flight-recorder", dumps)):
            self.assertEqual(command_line.shardscope(*wrong).returncode, 2, wrong)


if __name__ == "__main__":
    command_line.main()
