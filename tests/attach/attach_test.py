"""Attached training is the training: bit for bit. And what is recorded of it is what happened.

    tests/attach/run [unittest arguments]
"""
import collections
import json
import os
import pathlib
import signal
import struct
import tempfile
import time
import unittest

import runs

TRAIN = runs.HERE / "train.py"
BLOCKS = 3
CASES = [("ddp", "accumulate=2"), ("fsdp2",), ("fsdp2", "reshard=0"), ("fsdp2", "accumulate=2", "checkpoint=1"),
         ("fsdp2", "dtype=bf16"), ("zero1",), ("zero2", "accumulate=2"), ("zero3",), ("zero3", "accumulate=2", "checkpoint=1"),
         ("zero3", "dtype=bf16", "offload=1")]


def as_double(bits):
    return struct.unpack("<d", struct.pack("<q", int(bits)))[0]


def float_of(text):
    return float.fromhex(text)


def setUpModule():
    runs.build_package()
    Runs.temporary = tempfile.TemporaryDirectory(prefix="shardscope-attach-")
    Runs.folder = pathlib.Path(Runs.temporary.name)


def tearDownModule():
    Runs.temporary.cleanup()


class Runs(unittest.TestCase):
    """One pair of runs for each case, which all tests share."""

    def pair(self, *case, deepspeed="0.19.8"):
        """(plain results, attached results, recording, output) of a case; made once."""
        name = "_".join(case).replace("=", "") + deepspeed
        made = self.folder / f"{name}.zscope"
        plain, attached = self.folder / f"{name}.plain", self.folder / f"{name}.attached"
        output = self.folder / f"{name}.log"
        if not made.exists():
            runs.finish(runs.start(runs.torchrun(TRAIN, case[0], plain, *case[1:]), deepspeed=deepspeed))
            output.write_text(runs.finish(runs.start(runs.attach(made) + runs.torchrun(TRAIN, case[0], attached, *case[1:]),
                                                     deepspeed=deepspeed)), encoding="utf-8")
        return runs.results(plain), runs.results(attached), made, output.read_text(encoding="utf-8")


class Attached(Runs):
    def test_losses_norms_and_weights_are_bitwise_equal(self):
        for case in CASES:
            with self.subTest(case=case):
                plain, attached, _, output = self.pair(*case)
                self.assertEqual(plain, attached, output[-2000:])

    def test_no_hook_has_failed_and_no_symbol_differs(self):
        for case in CASES:
            with self.subTest(case=case):
                output = self.pair(*case)[3]
                self.assertNotIn("is off", output)
                self.assertNotIn("not recorded", output)

    def test_older_deepspeed(self):
        plain, attached, recording, output = self.pair("zero3", deepspeed="0.19.6")
        self.assertEqual(plain, attached)
        self.assertNotIn("is off", output)
        self.assertEqual(len(runs.Recording(recording).of(0, "loss")), 3)

    def test_losses_are_those_of_the_script(self):
        for case in CASES:
            with self.subTest(case=case):
                _, attached, recording, _ = self.pair(*case)
                scale = 2 if case[0] in ("ddp", "fsdp2") and "accumulate=2" in case else 1
                told = runs.Recording(recording)
                for rank in range(2):
                    losses = [as_double(e["v0"]) * scale for e in told.of(rank, "loss")]
                    self.assertEqual(losses, [float_of(x) for x in attached[rank]["losses"]])

    def test_every_step_and_micro_step_is_there_with_its_phases(self):
        for case in CASES:
            with self.subTest(case=case):
                recording = self.pair(*case)[2]
                told = runs.Recording(recording)
                micro = 2 if "accumulate=2" in case else 1
                for rank in range(2):
                    self.assertEqual(len(told.spans_of(rank, "step_begin")), 3)
                    self.assertEqual(len(told.spans_of(rank, "micro_step_begin")), 3 * micro)
                    phases = collections.Counter(int(s["code"]) for s in told.spans_of(rank, "phase_begin"))
                    self.assertEqual(phases, {0: 3 * micro, 1: 3 * micro, 3: 3})

    def test_every_begin_has_its_end_and_nothing_is_lost(self):
        for case in CASES:
            with self.subTest(case=case):
                recording = self.pair(*case)[2]
                summary = runs.figures(recording)
                self.assertEqual(summary["dropped"], 0)
                self.assertEqual(summary.get("unbegun", []), [])
                open_ones = [s for s in runs.Recording(recording).spans if s["open_until_ns"]]
                self.assertEqual(open_ones, [])

    def test_gradient_norms_of_deepspeed(self):
        for case in CASES:
            if case[0].startswith("zero"):
                with self.subTest(case=case):
                    _, attached, recording, _ = self.pair(*case)
                    norms = [as_double(e["v0"]) for e in runs.Recording(recording).of(0, "grad_norm")]
                    self.assertEqual(norms, [float_of(x) for x in attached[0]["norms"]])


class ClosedForms(Runs):
    """FSDP2 with B blocks and S micro-steps, gradients reduced in each, resharded after the forward."""

    def gathers_and_reductions(self, *case):
        told = runs.Recording(self.pair(*case)[2])
        ops = collections.Counter(int(e["code"]) for e in told.of(0, "collective_submitted") if e["b"] not in ("", "4294967295"))
        return told, ops[0], ops[1], len(told.of(0, "prefetch_issued"))

    def test_resharded(self):
        _, gathers, reductions, prefetches = self.gathers_and_reductions("fsdp2")
        micro = 3
        self.assertEqual((gathers, reductions, prefetches),
                         (micro * (2 * BLOCKS + 1), micro * (BLOCKS + 1), micro * BLOCKS))

    def test_kept(self):
        """Without resharding every group is gathered once in a step: in its forward."""
        _, gathers, reductions, prefetches = self.gathers_and_reductions("fsdp2", "reshard=0")
        self.assertEqual((gathers, reductions, prefetches), (3 * (BLOCKS + 1), 3 * (BLOCKS + 1), 0))

    def test_bytes_of_gathers_follow_from_the_layout(self):
        told, *_ = self.gathers_and_reductions("fsdp2")
        whole = {int(p["param"]): 2 * int(p["shard_elems"]) for p in told.params}
        parts = collections.defaultdict(list)
        for event in told.of(0, "collective_part"):
            parts[event["a"]].append(int(event["b"]))
        checked = 0
        for event in told.of(0, "collective_submitted"):
            if event["a"] in parts and int(event["code"]) == 0:
                self.assertEqual(int(event["v1"]), 4 * sum(whole[p] for p in parts[event["a"]]))
                checked += 1
        self.assertEqual(checked, 3 * (2 * BLOCKS + 1))

    def test_slices_are_every_element_once(self):
        for case in (("fsdp2",), ("zero3",), ("zero2", "accumulate=2")):
            told = runs.Recording(self.pair(*case)[2])
            owned = collections.Counter()
            for piece in told.slices:
                owned[piece["param"]] += int(piece["elems"])
            self.assertEqual(dict(owned), {p["param"]: int(p["elems"]) for p in told.params}, case)


class Trouble(Runs):
    """Whatever happens to the observer, or to the run, training is as without it and the recording says so."""

    def test_no_collector(self):
        plain, _, _, _ = self.pair("fsdp2")
        out = self.folder / "alone"
        folder = self.folder / "nobody"
        folder.mkdir()
        (folder / "settings.json").write_text(json.dumps({"endpoint": f"ipc://{folder}/nobody.sock", "run_id": "x",
                                                          "linger_s": 0.2}), encoding="utf-8")
        runs.finish(runs.start(runs.torchrun(TRAIN, "fsdp2", out), SHARDSCOPE_ATTACH=str(folder)))
        self.assertEqual(runs.results(out), plain)

    def test_exit_code_and_last_words_of_a_crash(self):
        recording = self.folder / "crash.zscope"
        process = runs.start(runs.attach(recording) + runs.torchrun(TRAIN, "fsdp2", self.folder / "crash", "crash=2"))
        output = runs.finish(process, expected=1)
        self.assertIn("a crash on purpose", output)
        self.assertEqual(len(runs.Recording(recording).spans_of(0, "micro_step_begin")), 2)

    def test_collector_killed(self):
        plain, _, _, _ = self.pair("fsdp2")
        out, recording, folder = self.folder / "killed", self.folder / "killed.zscope", self.folder / "killed.d"
        folder.mkdir()
        endpoint = f"ipc://{folder}/collector.sock"
        collector = runs.start([runs.SHARDSCOPE, "record", recording, "--listen", endpoint])
        (folder / "settings.json").write_text(json.dumps({"endpoint": endpoint, "run_id": "x", "linger_s": 0.2}),
                                              encoding="utf-8")
        training = runs.start(runs.torchrun(TRAIN, "fsdp2", out), SHARDSCOPE_ATTACH=str(folder))
        deadline = time.monotonic() + runs.DEADLINE_S
        while not recording.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1)
        os.kill(collector.pid, signal.SIGKILL)
        collector.communicate()
        runs.finish(training)
        self.assertEqual(runs.results(out), plain)

    def test_loaders_that_fork_are_inert(self):
        recording = self.folder / "fork.zscope"
        out, plain = self.folder / "fork.out", self.pair("fsdp2")[0]
        runs.finish(runs.start(runs.attach(recording) + runs.torchrun(TRAIN, "fsdp2", out, "loaders=2")))
        self.assertEqual(runs.results(out), plain)
        told = runs.Recording(recording)
        self.assertEqual(len(told.of(0, "loss")), 3)
        self.assertEqual({row["rank"] for row in told.table("ranks")}, {"0", "1"})

    def test_a_renamed_symbol_turns_its_adapter_off_and_nothing_else(self):
        script = self.folder / "renamed.py"
        script.write_text(f"""
import sys
import torch.distributed.fsdp._fully_shard._fsdp_param_group as groups
import torch.distributed.fsdp._fully_shard._fsdp_state as states
# As a later PyTorch might have it; before the framework is armed.
groups.FSDPParamGroup.wait_until_unsharded = groups.FSDPParamGroup.wait_for_unshard
groups.FSDPParamGroup.unshard_all = groups.FSDPParamGroup._to_sharded
inner = groups.FSDPParamGroup._prefetch_unshard
groups.FSDPParamGroup._prefetch_unshard = staticmethod(lambda target, pass_type: inner(target, pass_type))
import shardscope
shardscope.attach(endpoint=sys.argv.pop(1))
sys.argv[0] = {str(TRAIN)!r}
exec(compile(open({str(TRAIN)!r}).read(), {str(TRAIN)!r}, "exec"))
""", encoding="utf-8")
        plain, out, recording = self.pair("fsdp2")[0], self.folder / "renamed", self.folder / "renamed.zscope"
        endpoint = f"ipc://{self.folder}/renamed.sock"
        collector = runs.start([runs.SHARDSCOPE, "record", recording, "--listen", endpoint])
        output = runs.finish(runs.start(runs.torchrun(script, endpoint, "fsdp2", out)))
        runs.finish(collector)
        self.assertEqual(runs.results(out), plain)
        self.assertIn("_prefetch_unshard takes (target, pass_type), not (target_fsdp_param_group, pass_type, ...)", output)
        told = runs.Recording(recording)
        self.assertEqual(len(told.of(0, "loss")), 3)
        self.assertEqual(len(told.of(0, "param_status")), 0)

    def test_import_of_torch_is_as_fast_where_nobody_attaches(self):
        code = ("import time, importlib.metadata as m; from shardscope._autoload import autoload; "
                "t = time.perf_counter(); autoload(); print(time.perf_counter() - t)")
        took = float(runs.finish(runs.start([runs.PYTHON, "-c", code])).strip().splitlines()[-1])
        self.assertLess(took, 1e-3)


if __name__ == "__main__":
    unittest.main()
