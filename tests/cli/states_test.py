"""What model states take is explained to the last byte, pool by pool: expression + named extras = measured, wherever
offloading, ZeRO++, ZenFlow and the first layout of stage 1 put them. Real ranks, read back from the recording."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(sys.argv[1])
ROOT = pathlib.Path(sys.argv[2])
ELEMS = 842496  # gpt-mini


def states(ranks=2, model="gpt-mini", steps=2, nvme=False, kind="bf16", **zero):
    """The memory model of a run's summary."""
    with tempfile.TemporaryDirectory() as folder:
        for section in ("offload_param", "offload_optimizer"):
            if nvme and zero.get(section, {}).get("device") == "nvme":
                zero[section]["nvme_path"] = folder
        config = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1, "zero_optimization": zero,
                  "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}, "bf16": {"enabled": kind == "bf16"}}
        path = pathlib.Path(folder) / "ds.json"
        path.write_text(json.dumps(config))
        recording = pathlib.Path(folder) / "run.zscope"
        run = subprocess.run([BIN / "shardscope", "run", "--config", path, "--ranks", str(ranks), "--model", model,
                              "--data", "golden:gpt", "--steps", str(steps), "--record", recording],
                             capture_output=True, text=True, timeout=120)
        assert run.returncode == 0, run.stderr
        summary = subprocess.run([BIN / "shardscope", "summary", "--json", recording], capture_output=True, text=True)
        assert summary.returncode == 0, summary.stderr
        return json.loads(summary.stdout)["memory_model"]


class States(unittest.TestCase):
    def check(self, **how):
        """Runs it; in no pool anything is left over. The pools by name."""
        model = states(**how)
        pools = {"device": model, **model["offloaded"]}
        for name, pool in pools.items():
            said = (how, name, pool)
            self.assertEqual(pool["unexplained_bytes"], 0, said)
            named = sum(part["bytes"] for part in pool["parts"])
            self.assertEqual(pool["measured_bytes_per_rank"], pool["bytes_per_rank"] + named, said)
        return pools

    def causes(self, pool):
        return {part["cause"]: part["bytes"] for part in pool["parts"]}

    def test_the_first_layout_of_stage_1(self):
        for ranks in (2, 3):
            for kind in ("bf16", "fp32"):
                whole = self.check(ranks=ranks, kind=kind, stage=1, legacy_stage1=True)["device"]
                self.assertLessEqual(set(self.causes(whole)), {"padding", "rounding"}, whole)
                cut = self.check(ranks=ranks, kind=kind, stage=1, legacy_stage1=True, max_elements_per_comm=100_000)
                pieces = self.causes(cut["device"])["owned parameters in a row"]
                element = 2 if kind == "bf16" else 4
                self.assertAlmostEqual(pieces / (element * ELEMS / ranks), 1, delta=0.2)  # with the padding of communications

    def test_an_offloaded_optimizer(self):
        for stage in (1, 2, 3):
            for device in ("cpu", "nvme")[:2 if stage == 3 else 1]:
                for kind in ("bf16", "fp32"):
                    pools = self.check(stage=stage, nvme=True, kind=kind, offload_optimizer={"device": device},
                                       stage3_param_persistence_threshold=0)
                    self.assertEqual("whole gradients" in self.causes(pools["device"]), stage >= 2)

    def test_a_ratio_is_that_of_whole_sub_groups(self):
        pools = self.check(stage=3, sub_group_size=100_000, offload_optimizer={"device": "cpu", "ratio": 0.3})
        # int(0.7 * 2) = 1 of two sub-groups stays on the device: more than 0.3 leaves.
        self.assertGreater(pools["pinned"]["bytes_per_rank"], 0.35 * 14 * ELEMS / 2)
        self.check(stage=3, sub_group_size=20_000, offload_optimizer={"device": "cpu", "ratio": 0.5})

    def test_small_shards_are_not_on_nvme(self):
        pools = self.check(stage=3, nvme=True, stage3_param_persistence_threshold=0,
                           offload_param={"device": "nvme"}, offload_optimizer={"device": "nvme"})
        self.assertEqual(pools["nvme"]["expression"], "12S/n")
        self.assertEqual(pools["pinned"]["expression"], "4S/n")  # parameters and gradients
        self.check(stage=3, nvme=True, offload_param={"device": "nvme"}, offload_optimizer={"device": "cpu"})
        self.check(stage=3, offload_param={"device": "cpu"})
        # 8 MiB and more in a shard: there large ones are on NVMe, and the others where they were.
        pools = self.check(stage=3, nvme=True, model="gpt:layers=1,width=512,heads=4,context=32,vocabulary=300",
                           offload_param={"device": "nvme"}, stage3_param_persistence_threshold=2000)
        self.assertGreater(pools["nvme"]["bytes_per_rank"], 0)
        self.assertGreater(pools["pinned"]["bytes_per_rank"], 0)

    def test_secondary_shards(self):
        released = {"stage": 3, "stage3_param_persistence_threshold": 0, "stage3_max_reuse_distance": 0}
        for ranks, group in ((2, 2), (4, 2), (4, 4)):
            device = self.check(ranks=ranks, **released, zero_hpz_partition_size=group)["device"]
            self.assertLessEqual(set(self.causes(device)), {"padding", "rounding", "whole gradients"})
            self.assertIn("whole gradients", self.causes(device))
        self.check(ranks=4, **released, zero_hpz_partition_size=2, offload_optimizer={"device": "cpu"})
        # What is not released between forward and backward has no copy.
        device = self.check(ranks=2, stage=3, zero_hpz_partition_size=2)["device"]
        self.assertLess(self.causes(device)["no secondary shards"], 0)

    def test_zenflow(self):
        for stage in (1, 2, 3):
            for more in ({}, {"overlap_step": True}, {"offload": True}):
                pools = self.check(stage=stage, offload_optimizer={"device": "cpu"},
                                   zenflow={"topk_ratio": 0.1, "update_interval": 2, **more})
                self.assertIn("accumulated gradients (ZenFlow)", self.causes(pools["pinned"]))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=1)
