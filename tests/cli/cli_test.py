#!/usr/bin/env python3
"""Runs the command line as a user does: real ranks, real recordings, wrong arguments.

Usage: cli_test.py BIN_FOLDER SOURCE_ROOT [unittest arguments]
"""
import json
import math
import os
import pathlib
import re
import shutil
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


def print_config(zero, world, ours=None, **root):
    """zero_train --print-config of a configuration with this zero_optimization."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"train_micro_batch_size_per_gpu": 1, "zero_optimization": zero, "shardscope": ours or {}, **root}, file)
        file.flush()
        return subprocess.run([BIN / "zero_train", "--config", file.name, "--print-config", str(world)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


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

    def test_a_word_near_no_key_gets_no_hint(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"train_micro_batch_size_per_gpu": 1, "foo": 1}, file)
            file.flush()
            arguments = ["estimate", "all", "--model", "mlp", "--config", file.name]
            self.check(arguments, "foo: unknown key", "docs/configuration.md")
            self.assertNotIn("did you mean", shardscope(*arguments).stderr)

    def test_groups_that_do_not_divide_the_ranks_are_found_before_the_run(self):
        for key in ("zero_hpz_partition_size", "mics_shard_size"):
            for said in (print_config({"stage": 3, key: 3}, 4), print_config({"stage": 3, key: 3}, 4, {"ranks_per_node": 3})):
                self.assertNotEqual(said.returncode, 0, key)
                self.assertIn("is 3, which does not divide the 4 ranks", said.stderr)
            self.assertEqual(print_config({"stage": 3, key: 2}, 4).returncode, 0, key)

    def test_the_configuration_is_printed_with_its_warnings(self):
        said = print_config({"stage": 1, "round_robin_gradients": True, "legacy_stage1": True, "zero_hpz_partition_size": 2}, 4)
        self.assertEqual(said.returncode, 0)
        self.assertTrue(said.stderr.startswith("shardscope: warning: zero_optimization.zero_hpz_partition_size: ignored"), said.stderr)
        self.assertEqual(json.loads(said.stdout)["zero_optimization"]["stage"], 1)

    def test_the_first_form_of_zero_optimization(self):
        said = print_config(True, 2, allgather_size=1000)
        self.assertIn("warning: zero_optimization: deprecated", said.stderr)
        zero = json.loads(said.stdout)["zero_optimization"]
        self.assertEqual((zero["stage"], zero["allgather_bucket_size"]), (1, 1000))
        self.assertEqual(json.loads(print_config(False, 2).stdout)["zero_optimization"]["stage"], 0)

    def test_messages_name_the_file_and_line_of_a_file_with_comments(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write('{ // one rank\n  "train_micro_batch_size_per_gpu": 1, /* small */ "zero_optimisation": {}\n}\n')
            file.flush()
            self.check(["run", "--config", file.name, "--ranks", "1", "--model", "mlp", "--data", "golden:mlp"],
                       f"{file.name}:2:52: zero_optimisation", "zero_optimization")

    def test_warnings_reach_the_user_and_are_no_failure(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write('{"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 2, "contiguous_gradients": false}}')
            file.flush()
            run = shardscope("run", "--config", file.name, "--ranks", "1", "--model", "mlp", "--steps", "2")
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn("warning: ", run.stderr)
            self.assertIn("contiguous_gradients", run.stderr)
            # Of a run that fails it is not what is said last.
            self.check(["run", "--config", file.name, "--ranks", "1", "--model", "mlp", "--data", "golden:gpt"], "golden:gpt")

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

    def test_unknown_verb(self):
        self.check(["frobnicate"], "frobnicate", "no such verb", "--help")

    def test_a_word_that_is_no_verb_of_a_verb(self):
        self.check(["estimate", "zero4"], "estimate zero4", "estimate --help")

    def test_an_endpoint_that_is_none(self):
        self.check(["record", "/nowhere/run.zscope", "--listen", "5711"], "'5711'", "tcp://HOST:PORT")

    def test_a_full_disk_takes_nothing_in_silence(self):
        for arguments in (["--help"], ["estimate", "zero2", "--params", "1000000"]):
            with open("/dev/full", "w") as full:
                result = subprocess.run([BIN / "shardscope", *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual(result.returncode, 1, arguments)
            self.assertIn("standard output", result.stderr)

    def test_occupied_port(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.check(["run", "--config", ROOT / "samples/stage0.json", "--listen", f"tcp://127.0.0.1:{port}"], str(port))

    def test_view_names_an_unknown_layout_and_takes_known_ones_in_any_case(self):
        self.check(["view", "a.zscope", "--screenshot", "a.png", "--layout", "tall"], "--layout", "tall")

    def test_estimate_without_what_it_needs(self):
        self.check(["estimate"], "estimate --help")
        self.check(["estimate", "zero2"], "--params", "--model")
        self.check(["estimate", "zero2", "--params", "1.5"], "--params 1.5", "whole number")
        self.check(["estimate", "zero2", "--params", "5", "--nodes", "0"], "--nodes", "above 0")
        self.check(["estimate", "zero2", "--params", "5", "--formula", "mine"], "deepspeed-0.19")
        self.check(["estimate", "zero3", "--params", "5"], "--largest-layer")
        self.check(["estimate", "zero3", "--params", "5", "--largest-layer", "6"], "--largest-layer 6")
        self.check(["estimate", "zero3", "--model", "mlp", "--params", "5"], "--model mlp", "leave out")
        self.check(["estimate", "all", "--model", "mlp", "--set", "a=1"], "--set a=1", "--config")
        self.check(["estimate", "activations", "--model", "mlp"], "attention")
        self.check(["estimate", "infinity", "--layers", "3"], "--hidden")
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 5}}, file)
            file.flush()
            self.check(["estimate", "all", "--model", "mlp", "--config", file.name], file.name, "stage")

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


class Checkpoints(unittest.TestCase):
    """--checkpoint, --resume and consolidate: what they leave, what they refuse."""

    @classmethod
    def setUpClass(cls):
        cls._folder = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls._folder.name)
        cls.saved = cls.folder / "saved"
        cls.whole = cls.folder / "whole.safetensors"
        cls.recording, cls.summary = train(cls.folder, "whole", 3, 2, "--checkpoint", cls.saved, "--checkpoint-every", 2,
                                           "--keep", 2, "--save", cls.whole)

    @classmethod
    def tearDownClass(cls):
        cls._folder.cleanup()

    def refused(self, arguments, *words):
        result = shardscope(*arguments)
        self.assertNotEqual(result.returncode, 0, arguments)
        self.assertEqual(result.stdout, "")
        self.assertTrue(result.stderr.startswith("shardscope: "), result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)
        return result.stderr

    def run_of(self, *more, stage=3, model="mlp", data="golden:mlp", ranks=2):
        return ["run", "--config", ROOT / f"samples/stage{stage}.json", "--ranks", ranks, "--model", model, "--data", data,
                *more]

    def test_folder_holds_the_newest_and_the_recording_their_time(self):
        self.assertEqual(sorted(path.name for path in self.saved.iterdir()), ["latest", "step-4", "step-6"])
        self.assertEqual((self.saved / "latest").read_text(), "step-6\n")
        for rank in self.summary["ranks"]:
            made = rank["checkpoints"]
            self.assertEqual((made["saves"], made["loads"]), (3, 0))
            self.assertGreater(made["save_ms"], 0)
            self.assertEqual(rank["time_ms"]["checkpoint"], 0, "checkpoints lie between steps")

    def test_resume_continues_and_says_so(self):
        weights = self.folder / "tail.safetensors"
        _, tail = train(self.folder, "tail", 3, 2, "--resume", self.saved / "step-4", "--save", weights)
        self.assertEqual(tail["loss"], self.summary["loss"][4:])
        self.assertEqual([rank["checkpoints"]["loads"] for rank in tail["ranks"]], [1, 1])
        self.assertEqual(weights.read_bytes(), self.whole.read_bytes())
        _, other = train(self.folder, "other", 1, 3, "--resume", self.saved, steps=8)
        self.assertEqual(other["steps"], 2)

    def test_consolidate_writes_the_weights_of_save(self):
        output = self.folder / "consolidated.safetensors"
        for source in (self.saved, self.saved / "step-6"):
            result = shardscope("consolidate", source, output)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertEqual(output.read_bytes(), self.whole.read_bytes())
        shardscope("consolidate", self.saved / "step-4", output)
        self.assertNotEqual(output.read_bytes(), self.whole.read_bytes())

    def test_consolidate_refuses(self):
        self.refused(["consolidate"], "CHECKPOINT", "consolidate --help")
        self.refused(["consolidate", self.saved], "FILE", "consolidate --help")
        self.refused(["consolidate", self.saved, "a", "b"], "consolidate --help")
        output = self.folder / "never.safetensors"
        self.refused(["consolidate", self.folder / "none", output], "none", "holds no checkpoint")
        self.refused(["consolidate", self.saved / "step-2", output], "step-2", "holds no checkpoint")
        self.refused(["consolidate", self.saved, "/nowhere/weights.safetensors"], "/nowhere/weights", "cannot be written")
        self.refused(["consolidate", self.damaged(), output], "rank-00001.safetensors", "use another checkpoint")
        self.assertFalse(output.exists())

    def damaged(self):
        copy = self.folder / "damaged"
        if not copy.exists():
            shutil.copytree(self.saved, copy)
            with open(copy / "step-6" / "rank-00001.safetensors", "r+b") as file:
                file.seek(5000)
                file.write(bytes(64))
        return copy

    def test_resume_refuses(self):
        self.refused(self.run_of("--resume", self.folder / "none"), "--resume", "none", "no such file")
        self.refused(self.run_of("--resume", self.folder), str(self.folder), "holds no checkpoint")
        self.refused(self.run_of("--resume", self.saved, "--steps", 6), "--steps 6", "give more")
        self.refused(self.run_of("--resume", self.saved, "--init", self.whole), "--init", "--resume", "run --help")
        self.refused(self.run_of("--resume", self.damaged(), "--steps", 8), "rank-00001", "damaged", "another checkpoint")
        self.refused(self.run_of("--resume", self.saved, "--steps", 8, model="gpt-mini", data=ROOT / "README.md"),
                     "another model", "the checkpoint has inp.weight [64, 10]")
        other = self.folder / "other.npy"
        other.write_bytes(b"")
        self.refused(self.run_of("--resume", self.saved, "--steps", 8, data=other), "other.npy")

    def test_checkpoint_refuses(self):
        self.refused(self.run_of("--keep", 2), "--keep", "--checkpoint")
        self.refused(self.run_of("--checkpoint-every", 2), "--checkpoint-every", "--checkpoint")
        for option in ("--keep", "--checkpoint-every"):
            self.refused(self.run_of("--checkpoint", self.folder / "new", option, 0), option, "above 0")
        self.refused(self.run_of("--checkpoint", self.saved), "another run", "--resume")
        file = self.folder / "file"
        file.write_text("")
        self.refused(self.run_of("--checkpoint", file), str(file), "folder")
        self.assertFalse((self.folder / "new").exists())


class Estimates(unittest.TestCase):
    T5_3B = ("--params", 2851598336, "--gpus-per-node", 8)

    def text(self, *arguments):
        result = shardscope("estimate", *arguments)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def test_documented_layout(self):
        head = "Estimated memory needed for params, optim states and gradients for a:\nHW: Setup with 1 node, 8 GPUs per node.\n"
        self.assertEqual(self.text("zero2", *self.T5_3B), head + "SW: Model with 2851M total params.\n"
                         "  per CPU  |  per GPU |   Options\n"
                         "  127.48GB |   5.31GB | offload_optimizer=cpu\n"
                         "  127.48GB |  15.93GB | offload_optimizer=none\n")
        cold = self.text("zero3", "--params", "2851e6", "--largest-layer", "32e6", "--gpus-per-node", 8)
        self.assertIn("   71.69GB |   0.12GB | offload_param=cpu , offload_optimizer=cpu , zero_init=1\n", cold)
        source = self.text("zero2", *self.T5_3B, "--formula", "deepspeed-0.19")
        self.assertIn("  11.29GB | offload_optimizer=none\n", source)
        self.assertIn("| offload_optimizer=OffloadDeviceEnum.cpu\n", source)

    def test_live_takes_the_counts_from_the_model(self):
        self.assertEqual(self.text("zero3", "--model", "mlp"),
                         self.text("zero3", "--params", 100417, "--largest-layer", 16640))
        rows = json.loads(self.text("zero3", "--model", ROOT / "samples/models/mlp.json", "--json"))
        self.assertEqual(len(rows), 6)
        self.assertEqual(rows[0]["pinned_bytes"], 6 * 100417)

    def test_pinned(self):
        gib = 1 << 30
        params = self.T5_3B[1]
        zero3 = ("zero3", *self.T5_3B, "--largest-layer", 32899072)
        head = "Pinned, a part of per CPU, where pin_memory is on:\n"
        def rows(*factors):
            return ["%8.2fGB" % (factor * params / gib) for factor in factors]
        for more, offload, none in (((), 6, 4), (("--gradient-accumulation-steps", 2), 8, 4)):
            with_param, without = rows(offload, none)
            self.assertEqual(self.text(*zero3, "--pinned", *more), self.text(*zero3) + head +
                             f"{with_param} | offload_param=cpu\n{without} | offload_param=none\n")
            pinned = [row["pinned_bytes"] for row in json.loads(self.text(*zero3, "--json", *more))]
            self.assertEqual(pinned, [offload * params] * 2 + [none * params] * 2 + [0, 0])
        for more, factor in (((), 10), (("--gradient-accumulation-steps", 2), 12)):
            zero2 = ("zero2", *self.T5_3B)
            self.assertEqual(self.text(*zero2, "--pinned", *more),
                             self.text(*zero2) + head + rows(factor)[0] + " | offload_optimizer=cpu\n")
            pinned = [row["pinned_bytes"] for row in json.loads(self.text(*zero2, "--json", *more))]
            self.assertEqual(pinned, [factor * params, 0])
        two_nodes = json.loads(self.text("zero2", *self.T5_3B, "--nodes", 2, "--json"))
        self.assertEqual(two_nodes[0]["pinned_bytes"], 5 * params)

    def test_papers(self):
        self.assertIn("31.4 / 16.6 / 1.88", self.text("zero-table"))
        table1 = json.loads(self.text("zero-table", "--json"))["table1"]
        self.assertEqual([r["os_bytes"] for r in table1 if r["params"] == 1e12 and r["data_parallel"] == 64], [4187.5e9])
        self.assertIn("1845.70TiB", self.text("infinity"))

    def test_auto_sizes_follow_the_width_of_the_model(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"train_micro_batch_size_per_gpu": 1,
                       "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto"}}, file)
            file.flush()
            made = subprocess.run([BIN / "zero_train", "--config", file.name, "--model", "gpt-mini", "--print-config", "2"],
                                  stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertEqual(json.loads(made)["zero_optimization"]["reduce_bucket_size"], 128 * 128)

    def test_nothing_is_what_deepspeed_counts_for_it(self):
        rows = json.loads(self.text("zero2", "--params", 0, "--json"))
        self.assertEqual([(row["per_cpu_bytes"], row["per_gpu_bytes"]) for row in rows], [(0, 0)] * 2)
        rows = json.loads(self.text("zero3", "--params", 1000, "--largest-layer", 0, "--gpus-per-node", 4, "--json"))
        self.assertEqual([row["per_gpu_bytes"] for row in rows], [0, 0, 500, 500, 4500, 4500])

    def test_a_figure_of_a_node_has_the_expression_of_a_node(self):
        args = ("all", "--params", "7.5e9", "--largest-layer", "200e6", "--gpus-per-node", 64)
        row = next(r for r in json.loads(self.text(*args, "--json")) if r["offload_param"] == "none" and
                   r["offload_optimizer"] == "cpu" and r["stage"] == 3)
        self.assertEqual((row["host_expression"], row["per_cpu_bytes"]), ("14S g/n", 14 * 7500000000 // 64 * 64))
        self.assertRegex(self.text(*args), r"14S g/n +97\.79GB")
        self.assertIn("g = 64 of a node", self.text(*args))

    # Frozen, and not: 160400 trained and 160400 frozen parameters, and a head.
    FROZEN = {"name": "fz", "input": {"kind": "vectors", "width": 400}, "loss": {"kind": "mse", "width": 1},
              "root": {"kind": "sequential", "children": [
                  {"kind": "linear", "name": "a", "in": 400, "out": 400},
                  {"kind": "linear", "name": "b", "in": 400, "out": 400, "trainable": False},
                  {"kind": "linear", "name": "c", "in": 400, "out": 1}]}}

    def test_keys_of_the_configuration_count_in_the_rows(self):
        """Each of these keys says what states cost, so the row of its stage says what the run's summary says."""
        elems, frozen = 160400 + 401, 160400
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "model.json").write_text(json.dumps(self.FROZEN))

            def rows(stage, ranks, zero, types=None, model=folder / "model.json"):
                config = {"train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": True}, "data_types": types or {},
                          "zero_optimization": {"stage": stage, "stage3_param_persistence_threshold": 0, **zero}}
                (folder / "ds.json").write_text(json.dumps(config))
                said = shardscope("estimate", "all", "--model", model, "--gpus-per-node", ranks, "--json", "--config",
                                  folder / "ds.json")
                self.assertEqual(said.returncode, 0, said.stderr)
                return [r for r in json.loads(said.stdout) if r["stage"] == stage], said.stderr

            def row(*arguments):
                return rows(*arguments)[0][0]
            fp32 = {"grad_accum_dtype": "fp32"}
            self.assertEqual(row(3, 2, {})["expression"], "16S/n + 2F/n")
            int8 = row(3, 2, {"zero_quantized_nontrainable_weights": True})
            self.assertEqual(int8["expression"], "16S/n + F/n")
            self.assertAlmostEqual(row(3, 2, {})["model_states_bytes"] - int8["model_states_bytes"], frozen / 2, delta=100)
            self.assertEqual(row(2, 2, {}, fp32)["expression"], "2S + 16S/n + 2F")
            self.assertAlmostEqual(row(2, 2, {}, fp32)["model_states_bytes"] - row(2, 2, {})["model_states_bytes"],
                                   2 * elems / 2, delta=10)
            hpz = row(3, 2, {"zero_hpz_partition_size": 2})
            self.assertEqual(hpz["expression"], "16S/n + 2S/2 (hpZ) + 2F/2 (hpZ) + 2F/n")
            self.assertAlmostEqual(hpz["model_states_bytes"] - row(3, 2, {})["model_states_bytes"], elems + frozen, delta=10)
            mics, told = rows(3, 4, {"mics_shard_size": 2})
            self.assertEqual([r["expression"] for r in mics], ["16S/2 (MiCS) + 2F/n"])
            self.assertEqual(mics[0]["model_states_bytes"], row(3, 2, {})["model_states_bytes"])
            self.assertIn("mics_shard_size", told)
            legacy = row(1, 2, {"legacy_stage1": True, "max_elements_per_comm": 100000})
            self.assertEqual(legacy["expression"], "4S + 12S/n + 2S/n (pieces) + 2F")
            half = rows(3, 2, {"sub_group_size": 1000, "offload_optimizer": {"device": "cpu", "ratio": 0.5}})[0][1]
            whole = rows(3, 2, {"sub_group_size": 1000, "offload_optimizer": {"device": "cpu"}})[0][1]
            self.assertLess(0, half["per_cpu_bytes"])
            self.assertLess(half["per_cpu_bytes"], whole["per_cpu_bytes"])
            self.assertEqual(half["per_cpu_bytes"] + 2 * half["model_states_bytes"],
                             whole["per_cpu_bytes"] + 2 * whole["model_states_bytes"])

    def test_quantized_frozen_weights_in_the_summary_of_a_run(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "model.json").write_text(json.dumps(self.FROZEN))
            (folder / "ds.json").write_text(json.dumps({
                "train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": True},
                "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0,
                                      "zero_quantized_nontrainable_weights": True}}))
            run = shardscope("run", "--config", folder / "ds.json", "--model", folder / "model.json", "--ranks", 2,
                             "--steps", 2, "--record", folder / "r.zscope")
            self.assertEqual(run.returncode, 0, run.stderr)
            memory = json.loads(shardscope("summary", folder / "r.zscope", "--json").stdout)["memory_model"]
            self.assertEqual(memory["expression"], "16S/n + F/n")
            self.assertLess(abs(memory["unexplained_bytes"]), 1024)

    def test_all_reads_the_configuration(self):
        def row(*more):
            rows = json.loads(self.text("all", "--model", "mlp", "--gpus-per-node", 3, "--json", "--config",
                                        ROOT / "samples/stage3.json", *more))
            return [r for r in rows if r["stage"] == 3 and r["offload_optimizer"] == "none"][0]
        self.assertEqual(row()["expression"], "16S/n")
        self.assertEqual(row("--set", "zero_optimization.stage3_max_live_parameters=0")["gathered_bytes_at_most"],
                         4 * (16384 + 2 + 256 + 2))  # fc1, each of its two parameters padded to 3 shards
        wide = row("--set", "zero_optimization.reduce_bucket_size=20000")["bucket_bytes_at_most"]
        narrow = row("--set", "zero_optimization.reduce_bucket_size=20000", "--set", "zero_optimization.overlap_comm=false")
        self.assertEqual(wide - narrow["bucket_bytes_at_most"], 4 * 2 * 20000)
        self.assertEqual(row("--set", "bf16.enabled=true")["gathered_bytes_at_most"], row()["gathered_bytes_at_most"] / 2)


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
                rows = json.loads(shardscope("estimate", "all", "--model", "mlp", "--gpus-per-node", 3, "--config",
                                             ROOT / f"samples/stage{stage}.json", "--json").stdout)
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
                told = s["scheduling"]
                self.assertEqual((told["run"], told["other"]), (compat, other))
                gathers = next(op for op in s["comm"]["ops"] if op["op"] == "all_gather")
                self.assertEqual(gathers["count"], s["steps_measured"] * told["run_totals"]["gathers"])
                self.assertGreater(len(told["differences"]), 0)
                both[compat] = told
                text = shardscope("summary", recording).stdout
                self.assertIn(told["text"], text)
                page = pathlib.Path(folder) / "report.html"
                self.assertEqual(shardscope("report", recording, "-o", page).returncode, 0)
                self.assertIn(told["differences"][0], page.read_text())
        self.assertEqual(both["shardscope"]["run_totals"], both["deepspeed"]["other_totals"])
        self.assertEqual(both["shardscope"]["other_totals"], both["deepspeed"]["run_totals"])

    def test_prefetches_for_a_trace_that_broke_were_in_vain(self):
        with tempfile.TemporaryDirectory() as folder:
            recording, s = train(folder, "visit", 3, 2, "--set", "zero_optimization.stage3_prefetch_bucket_size=20000",
                         model=ROOT / "samples/models/mlp_visit.json")
            self.assertEqual(s["trace"]["invalidated"], 2)  # the block is skipped once, on both ranks
            self.assertGreaterEqual(s["prefetch"]["mistargeted"], 2)
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
