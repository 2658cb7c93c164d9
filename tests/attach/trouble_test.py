"""Whatever happens to the observer, or to the run, training is as without it and the recording says so."""
import json
import os
import re
import shlex
import signal
import time
import unittest

import runs
from pairs import TRAIN, folder, plain, slow

SEND, RECEIVE = "7", "8"  # operations of collectives


def setUpModule():
    folder()


def settings(name, endpoint):
    """A folder as `shardscope attach` makes it, for ranks that report to `endpoint`."""
    made = folder() / name
    made.mkdir()
    (made / "settings.json").write_text(json.dumps({"endpoint": endpoint, "run_id": "x", "linger_s": 0.2}), encoding="utf-8")
    return str(made)


class Trouble(unittest.TestCase):
    def setUp(self):
        self.folder = folder()
        self.plain = plain(("fsdp2",))

    def test_no_collector(self):
        out = self.folder / "alone"
        armed = settings("absent", f"ipc://{self.folder}/absent.sock")
        runs.finish(runs.start(runs.torchrun(TRAIN, "fsdp2", out), SHARDSCOPE_ATTACH=armed))
        self.assertEqual(runs.results(out), self.plain)

    def test_exit_code_and_exit_message_of_a_crash(self):
        recording = self.folder / "crash.zscope"
        process = runs.start(runs.attach(recording) + runs.torchrun(TRAIN, "fsdp2", self.folder / "crash", "crash=2"))
        output = runs.finish(process, expected=1)
        self.assertIn("a crash on purpose", output)
        self.assertEqual(len(runs.read(recording).spans_of(0, "micro_step_begin")), 2)

    def test_sends_and_receives_end_and_nobody_waits_for_them_twice(self):
        """A second wait for gloo's send or receive would wait for another message."""
        script, path = runs.HERE / "scripts" / "sends.py", self.folder / "sends.zscope"
        runs.finish(runs.start(runs.torchrun(script, self.folder / "sends.plain")))
        runs.finish(runs.start(runs.attach(path) + runs.torchrun(script, self.folder / "sends.attached")))
        self.assertEqual(runs.results(self.folder / "sends.attached"), runs.results(self.folder / "sends.plain"))
        recording = runs.read(path)
        for rank in range(2):
            spans = [s for s in recording.spans_of(rank, "collective_begin") if s["code"] in (SEND, RECEIVE)]
            self.assertEqual(sorted(s["code"] for s in spans), 6 * [SEND] + 6 * [RECEIVE], "two of each in three steps")
            self.assertEqual([s for s in spans if s["end_ns"] == ""], [])

    def test_a_rank_that_aborts_has_sent_everything(self):
        """Its last events are in no message yet. Who handles the signal too, here Python's faulthandler, still does."""
        recording = self.folder / "aborts.zscope"
        script = runs.HERE / "scripts" / "aborts.py"
        output = runs.finish(runs.start(runs.attach(recording) + runs.torchrun(script, "fsdp2", self.folder / "aborts"),
                                        PYTHONFAULTHANDLER="1"), expected=1)
        self.assertIn("Fatal Python error: Aborted", output)
        self.assertIn("Signal 6 (SIGABRT)", output)
        events = runs.read(recording)
        said = {(message["rank"], message["text"]) for message in events.table("messages")}
        for rank in range(2):
            self.assertEqual(events.table("ranks")[rank]["exit_code"], "134")
            self.assertIn((str(rank), "SIGABRT"), said)
            self.assertEqual(len(events.of(rank, "loss")), 3)
            phases = [span["code"] for span in events.spans_of(rank, "phase_begin")]
            self.assertEqual(phases.count("3"), 3, "the last optimizer's began some microseconds before")

    @slow
    def test_collector_killed(self):
        """While the ranks train: they go on, to the same weights."""
        steps, out, recording = "steps=40", self.folder / "killed", self.folder / "killed.zscope"
        endpoint = f"ipc://{self.folder}/killed.sock"
        collector = runs.start([runs.SHARDSCOPE, "record", recording, "--listen", endpoint])
        training = runs.start(runs.torchrun(TRAIN, "fsdp2", out, steps, "sleep=0.1"),
                              SHARDSCOPE_ATTACH=settings("killed.d", endpoint))
        deadline = time.monotonic() + runs.DEADLINE_S
        while not runs.has_events(recording) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertIsNone(training.poll(), "it has ended before the collector could be killed")
        os.kill(collector.pid, signal.SIGKILL)
        collector.communicate()
        runs.finish(training)
        self.assertEqual(runs.results(out), plain(("fsdp2", steps)))

    @slow
    def test_loaders_that_fork_are_inert(self):
        recording, out = self.folder / "fork.zscope", self.folder / "fork.out"
        runs.finish(runs.start(runs.attach(recording) + runs.torchrun(TRAIN, "fsdp2", out, "loaders=2")))
        self.assertEqual(runs.results(out), self.plain)
        events = runs.read(recording)
        self.assertEqual(len(events.of(0, "loss")), 3)
        self.assertEqual({row["rank"] for row in events.table("ranks")}, {"0", "1"})

    @slow
    def test_a_renamed_symbol_turns_its_adapter_off_and_nothing_else(self):
        script = self.folder / "renamed.py"
        script.write_text(f"""
import sys
import torch.distributed.fsdp._fully_shard._fsdp_param_group as groups
# As a later PyTorch might have it; before the framework is armed.
inner = groups.FSDPParamGroup._prefetch_unshard
groups.FSDPParamGroup._prefetch_unshard = staticmethod(lambda target, pass_type: inner(target, pass_type))
import shardscope
shardscope.attach(endpoint=sys.argv.pop(1))
sys.argv[0] = {str(TRAIN)!r}
exec(compile(open({str(TRAIN)!r}).read(), {str(TRAIN)!r}, "exec"))
""", encoding="utf-8")
        out, recording = self.folder / "renamed", self.folder / "renamed.zscope"
        endpoint = f"ipc://{self.folder}/renamed.sock"
        collector = runs.start([runs.SHARDSCOPE, "record", recording, "--listen", endpoint])
        output = runs.finish(runs.start(runs.torchrun(script, endpoint, "fsdp2", out)))
        runs.finish(collector)
        self.assertEqual(runs.results(out), self.plain)
        self.assertIn("_prefetch_unshard takes (target, pass_type), not (target_fsdp_param_group, pass_type, ...)", output)
        events = runs.read(recording)
        self.assertEqual(len(events.of(0, "loss")), 3)
        self.assertEqual(len(events.of(0, "param_status")), 0)

    @slow
    def test_a_hook_that_raises_is_turned_off_and_said_once(self):
        for case, symbol in ((("fsdp2",), "FSDPParamGroup.wait_for_unshard"), (("zero3",), "PartitionedParameterCoordinator.release_sub_module"),
                             (("zero2", "accumulate=2"), "DeepSpeedZeroOptimizer.reduce_ipg_grads"),
                             (("ddp", "accumulate=2"), "DistributedDataParallel.forward")):
            with self.subTest(case=case):
                out, recording = (self.folder / f"raises-{case[0]}{end}" for end in ("", ".zscope"))
                script = runs.HERE / "scripts" / "failing_hook.py"
                output = runs.finish(runs.start(runs.attach(recording) + runs.torchrun(script, symbol, case[0], out, *case[1:])))
                self.assertEqual(runs.results(out), plain(case))
                said = f"the hook of {symbol} failed (RuntimeError: on purpose) and is off; training is as before"
                self.assertEqual(output.count(said), 2, "each rank once")
                messages = [m["rank"] for m in runs.read(recording).table("messages") if said in m["text"]]
                self.assertEqual(sorted(messages), ["0", "1"])

    @slow
    def test_a_full_disk(self):
        """The file may not grow past a limit, as on a full disk: training continues to the same weights, and attach reports it."""
        steps, out, recording = "steps=40", self.folder / "full", self.folder / "full.zscope"
        attach = " ".join(shlex.quote(str(word)) for word in runs.attach(recording) + runs.torchrun(TRAIN, "fsdp2", out, steps))
        output = runs.finish(runs.start(["bash", "-c", f"ulimit -f 192; exec {attach}"]), expected=1)
        self.assertEqual(runs.results(out), plain(("fsdp2", steps)))
        self.assertIn("recording has stopped, what was written before is kept", output)
        figures = runs.figures(recording)
        self.assertTrue(0 < figures["steps"] < 40, figures["steps"])
        self.assertIn("recording stopped at", figures["problems"][0])
        held = re.search(r"full\.zscope holds (\d+) of (\d+) events and (\d+) whole steps; next:", output)
        self.assertIsNotNone(held, output[-2000:])
        kept, came, whole = map(int, held.groups())
        self.assertEqual((kept, whole), (figures["events"], figures["steps"]))
        self.assertGreater(came, kept)
        self.assertNotIn("recorded to", output)

    def test_where_nothing_is_attached_the_entry_point_imports_nothing(self):
        code = ("import sys; from shardscope._autoload import autoload; before = set(sys.modules); autoload(); "
                "print(sorted(set(sys.modules) - before))")
        self.assertEqual(runs.finish(runs.start([runs.PYTHON, "-c", code])).strip().splitlines()[-1], "[]")

    def test_a_sitecustomize_of_the_user_still_runs(self):
        own = folder() / "own-site"
        own.mkdir()
        (own / "sitecustomize.py").write_text("import os, sys\nprint('mine', os.path.dirname(__file__), 'shardscope' in sys.modules)\n",
                                              encoding="utf-8")
        code = "import sitecustomize; print('name', sitecustomize.__file__)"
        for rank, armed in ({}, False), ({"RANK": "0"}, True):
            with self.subTest(rank=rank):
                path = runs.process_environment()["PYTHONPATH"]
                output = runs.finish(runs.start([runs.SHARDSCOPE, "attach", "--", runs.PYTHON, "-c", code], **rank,
                                                PYTHONPATH=f"{own}:{path}"))
                self.assertEqual(output.count(f"mine {own} {armed}"), 1, output)
                self.assertIn(f"name {own / 'sitecustomize.py'}", output)


if __name__ == "__main__":
    unittest.main()
