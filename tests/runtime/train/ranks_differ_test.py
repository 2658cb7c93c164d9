#!/usr/bin/env python3
"""Ranks that were started differently: mpirun -n 1 A : -n 1 B. They must refuse before the first step, with one message that
names the setting and both values; what a rank may have for itself changes nothing.

usage: ranks_differ_test.py ZERO_TRAIN   (needs mpirun)
"""
import array
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

ZERO_TRAIN = str(pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else "zero_train").absolute())
# Far below what a rank waits for another (300 s), so that a time limit is not taken for a refusal.
LIMIT_S = 60
ROOT = pathlib.Path(__file__).resolve().parents[3]
STEPS = 2


def settings(stage, **root):
    zero = {"stage": stage, "reduce_bucket_size": 20000, "zero_hpz_partition_size": 1,
            "stage3_param_persistence_threshold": 0, **root.pop("zero", {})}
    return {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1, "gradient_clipping": 1.0,
            "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "betas": [0.9, 0.95], "eps": 1e-8,
                                                      "weight_decay": 0.1}},
            "zero_optimization": zero, **root}


def adam(**params):
    return {"type": "AdamW", "params": {"lr": 1e-3, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1, **params}}


CPU = {"device": "cpu"}
WARMUP = {"type": "WarmupLR", "params": {"warmup_num_steps": 10, "warmup_type": "linear"}}
FP16 = {"enabled": True, "initial_scale_power": 8}

# Key that is named, stage, configuration of rank 0, what of rank 1's is different.
CONFIGURATIONS = [
    ("optimizer.params.lr", 0, {}, {"optimizer": adam(lr=2e-3)}),
    ("optimizer.params.lr", 1, {}, {"optimizer": adam(lr=2e-3)}),
    ("optimizer.params.lr", 2, {}, {"optimizer": adam(lr=2e-3)}),
    ("optimizer.params.lr", 3, {}, {"optimizer": adam(lr=2e-3)}),
    ("optimizer.params.betas", 2, {}, {"optimizer": adam(betas=[0.8, 0.95])}),
    ("optimizer.params.eps", 1, {}, {"optimizer": adam(eps=1e-6)}),
    ("optimizer.params.weight_decay", 3, {}, {"optimizer": adam(weight_decay=0.0)}),
    ("optimizer.params.adam_w_mode", 0, {"optimizer": {"type": "Adam", "params": {}}},
     {"optimizer": {"type": "Adam", "params": {"adam_w_mode": False}}}),
    ("scheduler.type", 1, {}, {"scheduler": WARMUP}),
    ("scheduler.params.warmup_num_steps", 2, {"scheduler": WARMUP},
     {"scheduler": {**WARMUP, "params": {"warmup_num_steps": 5, "warmup_type": "linear"}}}),
    ("gradient_clipping", 0, {}, {"gradient_clipping": 0.1}),
    ("gradient_clipping", 3, {}, {"gradient_clipping": 0.1}),
    ("gradient_accumulation_steps", 1, {}, {"gradient_accumulation_steps": 2}),
    ("gradient_accumulation_steps", 3, {}, {"gradient_accumulation_steps": 2}),
    ("train_micro_batch_size_per_gpu", 2, {}, {"train_micro_batch_size_per_gpu": 4}),
    ("prescale_gradients", 1, {}, {"prescale_gradients": True}),
    ("gradient_predivide_factor", 0, {}, {"gradient_predivide_factor": 2.0}),
    ("communication_data_type", 2, {}, {"communication_data_type": "bf16"}),
    ("data_types.grad_accum_dtype", 2, {"bf16": {"enabled": True}},
     {"bf16": {"enabled": True}, "data_types": {"grad_accum_dtype": "fp32"}}),
    ("bf16.enabled", 3, {}, {"bf16": {"enabled": True}}),
    ("bf16.check_grad_overflow", 1, {"bf16": {"enabled": True}},
     {"bf16": {"enabled": True, "check_grad_overflow": False}}),
    ("fp16.initial_scale_power", 2, {"fp16": FP16}, {"fp16": {**FP16, "initial_scale_power": 4}}),
    ("fp16.loss_scale_window", 2, {"fp16": FP16}, {"fp16": {**FP16, "loss_scale_window": 2}}),
    ("zero_optimization.stage", 0, {}, {"zero": {"stage": 1}}),
    ("zero_optimization.stage", 1, {}, {"zero": {"stage": 2}}),
    ("zero_optimization.stage", 2, {}, {"zero": {"stage": 3}}),
    ("zero_optimization.reduce_bucket_size", 2, {}, {"zero": {"reduce_bucket_size": 100}}),
    ("zero_optimization.allgather_bucket_size", 1, {}, {"zero": {"allgather_bucket_size": 100}}),
    ("zero_optimization.reduce_scatter", 2, {}, {"zero": {"reduce_scatter": False}}),
    ("zero_optimization.overlap_comm", 2, {}, {"zero": {"overlap_comm": True}}),
    ("zero_optimization.round_robin_gradients", 1, {}, {"zero": {"round_robin_gradients": True}}),
    ("zero_optimization.legacy_stage1", 1, {}, {"zero": {"legacy_stage1": True}}),
    ("zero_optimization.offload_optimizer.device", 2, {}, {"zero": {"offload_optimizer": CPU}}),
    ("zero_optimization.offload_param.device", 3, {}, {"zero": {"offload_param": CPU}}),
    ("zero_optimization.zenflow.topk_ratio", 2, {"zero": {"offload_optimizer": CPU}},
     {"zero": {"offload_optimizer": CPU, "zenflow": {"topk_ratio": 0.5}}}),
    ("zero_optimization.sub_group_size", 3, {}, {"zero": {"sub_group_size": 50}}),
    ("zero_optimization.stage3_prefetch_bucket_size", 3, {}, {"zero": {"stage3_prefetch_bucket_size": 0}}),
    ("zero_optimization.stage3_max_live_parameters", 3, {}, {"zero": {"stage3_max_live_parameters": 0}}),
    ("zero_optimization.stage3_param_persistence_threshold", 3, {},
     {"zero": {"stage3_param_persistence_threshold": 100}}),
    ("zero_optimization.stage3_allgather_sequential", 3, {}, {"zero": {"stage3_allgather_sequential": True}}),
    ("zero_optimization.enable_sanity_checks", 3, {}, {"zero": {"enable_sanity_checks": True}}),
    ("zero_optimization.zero_hpz_partition_size", 3, {}, {"zero": {"zero_hpz_partition_size": 2}}),
    ("zero_optimization.mics_shard_size", 3, {}, {"zero": {"mics_shard_size": 2}}),
    ("zero_optimization.zero_quantized_weights", 3, {}, {"zero": {"zero_quantized_weights": True}}),
    ("zero_optimization.zero_quantized_gradients", 3, {}, {"zero": {"zero_quantized_gradients": True}}),
    ("shardscope.compat.scheduler", 3, {}, {"shardscope": {"compat": {"scheduler": "deepspeed"}}}),
    ("shardscope.compat.preset", 1, {}, {"shardscope": {"compat": "deepspeed"}}),
    ("shardscope.ranks_per_node", 3, {}, {"shardscope": {"ranks_per_node": 1}}),
    ("shardscope.eval_interval", 3, {"shardscope": {"eval_interval": 1}}, {"shardscope": {"eval_interval": 2}}),
    ("shardscope.eval_batches", 0, {"shardscope": {"eval_interval": 1}},
     {"shardscope": {"eval_interval": 1, "eval_batches": 9}}),
]

# Key that is named, options of rank 0, options of rank 1.
OPTIONS = [
    ("--steps", ["--steps", "2"], ["--steps", "3"]),
    ("--seed", [], ["--seed", "5"]),
    ("--init-scheme", ["--init-scheme", "hash"], ["--init-scheme", "sin"]),
    ("--run-id", ["--run-id", "a"], ["--run-id", "b"]),
    ("--run-id", [], ["--run-id", "b"]),
    ("--checkpoint-every", ["--checkpoint", "c", "--checkpoint-every", "1"], ["--checkpoint", "c"]),
    ("--losses", ["--losses", "l.json"], []),
    ("--save", ["--save", "w.safetensors"], []),
    ("model", [], ["--model", "narrow.json"]),
]


class RanksDiffer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)

    def write(self, name, config):
        path = self.folder / name
        path.write_text(json.dumps(config))
        return path

    def run_ranks(self, *ranks, programs=()):
        """Each rank with options of its own; `programs`: of each rank, where they are not all ZERO_TRAIN."""
        launch = ["mpirun", "--oversubscribe", "--bind-to", "none"]
        if os.geteuid() == 0:
            launch.insert(1, "--allow-run-as-root")
        for i, options in enumerate(ranks):
            launch += [":"] if i > 0 else []
            options = [str(option) for option in options]
            for name, value in (("--model", "mlp"), ("--steps", STEPS)):
                options += [] if name in options else [name, str(value)]
            launch += ["-n", "1", programs[i] if programs else ZERO_TRAIN, "--quiet", *options]
        return subprocess.run(launch, capture_output=True, text=True, timeout=LIMIT_S, cwd=self.folder)

    def refused(self, ranks, key, other=1, **how):
        done = self.run_ranks(*ranks, **how)
        self.assertNotEqual(done.returncode, 0)
        said = [line for line in done.stderr.splitlines() if line.startswith("shardscope: ")
                and not line.startswith("shardscope: warning: ")]
        self.assertEqual(len(said), 1, done.stderr)
        self.assertTrue(said[0].startswith(f"shardscope: {key}: rank {other} has "), said[0])
        self.assertIn(", rank 0 has ", said[0])
        self.assertNotIn("step 0", done.stdout)
        return said[0]

    def test_another_configuration(self):
        def case(number):
            key, stage, first, other = CONFIGURATIONS[number]
            a = self.write(f"a{number}.json", settings(stage, **json.loads(json.dumps(first))))
            b = self.write(f"b{number}.json", settings(stage, **json.loads(json.dumps(other))))
            said = self.refused([["--config", a], ["--config", b]], key)
            self.assertIn("give every rank the same configuration", said)

        # Most of the time of one is what mpirun waits.
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            cases = [pool.submit(case, number) for number in range(len(CONFIGURATIONS))]
        for number, done in enumerate(cases):
            with self.subTest(key=CONFIGURATIONS[number][0], stage=CONFIGURATIONS[number][1]):
                done.result()

    def test_another_option(self):
        self.write("narrow.json", {"name": "narrow", "input": {"kind": "vectors", "width": 10},
                                   "loss": {"kind": "mse", "width": 1},
                                   "root": {"kind": "linear", "name": "out", "in": 10, "out": 1}})
        for number, (key, first, other) in enumerate(OPTIONS):
            with self.subTest(key=key, first=first, other=other):
                config = ["--config", self.write("a.json", settings(number % 4))]
                self.refused([config + first, config + other], key)

    def test_the_message_says_both_values_and_how_many_more(self):
        a = self.write("a.json", settings(1))
        b = self.write("b.json", settings(2, optimizer=adam(lr=2e-3, eps=1e-6)))
        said = self.refused([["--config", a], ["--config", b]], "optimizer.params.lr")
        self.assertIn("rank 1 has 0.002, rank 0 has 0.001; 2 more settings differ: optimizer.params.eps, "
                      "zero_optimization.stage; give every rank the same configuration", said)

    def test_one_of_four(self):
        a = ["--config", self.write("a.json", settings(3))]
        said = self.refused([a, a, a + ["--seed", "7"], a], "--seed", other=2)
        self.assertNotIn("of 4 ranks", said)
        said = self.refused([a + ["--seed", "7"], a, a, a], "--seed", other=1)
        self.assertIn("3 of 4 ranks differ from rank 0", said)

    def test_a_program_of_another_version(self):
        """A copy of the program whose version was changed within it, as if it had been built from other sources."""
        program = pathlib.Path(ZERO_TRAIN).read_bytes()
        version = re.search(r"project\(shardscope VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
        here, there = (f"{text}\0".encode() for text in (version, version[:-1] + "9"))
        self.assertEqual(program.count(here), 1, "its version occurs once")
        older = self.folder / "zero_train_of_another_version"
        older.write_bytes(program.replace(here, there))
        older.chmod(0o755)
        config = ["--config", self.write("a.json", settings(2))]
        said = self.refused([config, config], "program version", programs=(ZERO_TRAIN, str(older)))
        self.assertIn(f"rank 1 has {version[:-1]}9, rank 0 has {version}; start every rank from the same build", said)

    def test_other_data_of_the_same_shape(self):
        for name, value in (("one", 0.25), ("two", 0.5)):
            folder = self.folder / name
            folder.mkdir(exist_ok=True)
            for file, width in (("x.npy", 10), ("y.npy", 1)):
                header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': (16, {width}), }}".ljust(117) + "\n"
                numbers = array.array("f", [value] * (16 * width)).tobytes()
                (folder / file).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + numbers)
        config = ["--config", self.write("a.json", settings(2)), "--data"]
        said = self.refused([config + ["one"], config + ["two"]], "data")
        self.assertIn("one/x.npy", said)
        self.assertIn("two/x.npy", said)
        evaluated = ["--config", self.write("evaluated.json", settings(2, shardscope={"eval_interval": 1})), "--eval-data"]
        said = self.refused([evaluated + ["one"], evaluated + ["two"]], "evaluation data")
        self.assertIn("give every rank the same files", said)
        shutil.copytree(self.folder / "one", self.folder / "copy", dirs_exist_ok=True)
        self.assertEqual(self.run_ranks(config + ["one"], config + ["copy"]).returncode, 0)

    def test_other_initial_weights(self):
        config = ["--config", self.write("a.json", settings(3))]
        for name, seed in (("w1", 1), ("w2", 2)):
            done = self.run_ranks(config + ["--seed", seed, "--steps", 1, "--save", f"{name}.safetensors", "--overwrite",
                                            "--checkpoint", f"{name}.checkpoint"])
            self.assertEqual(done.returncode, 0, done.stderr)
        for stage in (0, 1, 2, 3):
            with self.subTest(stage=stage):
                config = ["--config", self.write("a.json", settings(stage))]
                files = [config + ["--init", "w1.safetensors"], config + ["--init", "w2.safetensors"]]
                said = self.refused(files, "initial weights")
                self.assertIn("(w1.safetensors)", said)
                self.refused([files[0], config], "initial weights")
                checkpoints = [config + ["--resume", "w1.checkpoint"], config + ["--resume", "w2.checkpoint"]]
                self.refused(checkpoints, "initial weights")
                shutil.copy(self.folder / "w1.safetensors", self.folder / "w3.safetensors")
                same = self.run_ranks(files[0], config + ["--init", "w3.safetensors"])
                self.assertEqual(same.returncode, 0, same.stderr)
                same = self.run_ranks(checkpoints[0], checkpoints[0])
                self.assertEqual(same.returncode, 0, same.stderr)

    def test_what_a_rank_may_have_for_itself(self):
        def losses(name, *ranks):
            for i, options in enumerate(ranks):
                options += ["--losses", f"{name}{i}.json"]
            done = self.run_ranks(*ranks)
            self.assertEqual(done.returncode, 0, done.stderr)
            output = json.loads((self.folder / f"{name}0.json").read_text())
            del output["ended_s"]  # a time
            return output

        zero = {"zero": {"offload_optimizer": {"device": "nvme", "nvme_path": str(self.folder)}}}
        a = self.write("a.json", settings(3, **json.loads(json.dumps(zero))))
        plain = losses("plain", ["--config", a], ["--config", a])
        (self.folder / "elsewhere").mkdir(exist_ok=True)
        zero["zero"]["offload_optimizer"]["nvme_path"] = str(self.folder / "elsewhere")
        own = settings(3, **zero, steps_per_print=1, aio={"block_size": 65536, "queue_depth": 2},
                       shardscope={"detail": "steps", "ring_events": 2048, "queue_bytes": 1 << 20, "linger_s": 0.1,
                                   "emulated_link": {"latency_us": 10}})
        own["zero_optimization"]["log_trace_cache_warnings"] = True
        b = self.write("b.json", own)
        differing = losses("own", ["--config", a],
                           ["--config", b, "--publish", "tcp://127.0.0.1:9", "--detail", "kernels", "--collective-timeout",
                            "200", "--overwrite"])
        self.assertEqual(differing, plain)


if __name__ == "__main__":
    unittest.main()
