"""What model states take is explained to the last byte, pool by pool: expression + named extras = measured, wherever
offloading, ZeRO++, ZenFlow and the first layout of stage 1 put them. Real ranks, read back from the recording."""
import json
import pathlib
import tempfile
import unittest

from command_line import ROOT, main, summary_of_run

ELEMS = 842496  # gpt-mini


def adapter():
    """A model file: 7 of 15 parameters are frozen; with the threshold 400 the biases and the first weight are persistent."""
    def linear(name, rows, columns, **more):
        return {"kind": "linear", "name": name, "in": columns, "out": rows, **more}
    frozen = [linear(f"f{i}", 61, 61, trainable=False) for i in range(3)]
    return {"name": "adapter", "input": {"kind": "vectors", "width": 10}, "loss": {"kind": "mse", "width": 1},
            "root": {"kind": "sequential", "children": [
                linear("first", 61, 10, trainable=False), linear("down", 7, 61), linear("up", 61, 7), *frozen,
                linear("last", 1, 61)]}}


def states(ranks=2, model="gpt-mini", steps=2, nvme=False, kind="bf16", data="golden:gpt", compat=None, **zero):
    """The memory model of a run's summary."""
    with tempfile.TemporaryDirectory() as folder:
        if isinstance(model, dict):
            path = pathlib.Path(folder) / "model.json"
            path.write_text(json.dumps(model))
            model = path
        for section in ("offload_param", "offload_optimizer"):
            if nvme and zero.get(section, {}).get("device") == "nvme":
                zero[section]["nvme_path"] = folder
        config = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1, "zero_optimization": zero,
                  "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}, "bf16": {"enabled": kind == "bf16"}}
        if compat:
            config["shardscope"] = {"compat": compat}
        path = pathlib.Path(folder) / "ds.json"
        path.write_text(json.dumps(config))
        return summary_of_run(pathlib.Path(folder) / "run.zscope", "--config", path, "--ranks", ranks, "--model", model, "--data",
                              data, "--steps", steps)["memory_model"]


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

    def test_gradients_as_deepspeed_holds_them(self):
        """The peak of stages 1 and 2 is at the cast: 2S + 18S/n, DeepSpeed's own figure without offload, where the expressions
        have one set of 16-bit gradients and no fp32 copy. In stage 3 the copy is of one sub-group."""
        for stage, ranks in ((1, 2), (2, 2), (2, 3), (3, 2)):
            device = self.check(ranks=ranks, stage=stage, reduce_bucket_size=100_000, sub_group_size=1e9,
                                compat={"gradient_buffers": True})["device"]
            copies = self.causes(device)["fp32 copies of gradients"]
            if stage == 1:  # all 16-bit gradients are in the expression; at the cast those of others are gone
                self.assertAlmostEqual(device["measured_bytes_per_rank"], 2 * ELEMS + 18 * ELEMS / ranks, delta=2000)
            else:
                self.assertAlmostEqual(copies, 4 * ELEMS / ranks, delta=1000)

    def test_a_whole_model_at_the_start(self):
        """`zero_init` false: 4 bytes of host memory for each element on each rank, and nothing of it later; with rank 0's values
        too. The losses are those of a run that never holds a whole model."""
        losses = set()
        for ours in ({}, {"zero_init": False}, {"zero_init": False, "compat": {"broadcast_weights": True}},
                     {"compat": {"broadcast_weights": True}}):
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "ds.json"
                path.write_text(json.dumps({"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 3},
                                            "shardscope": ours}))
                summary = summary_of_run(pathlib.Path(folder) / "run.zscope", "--config", path, "--ranks", 2, "--model", "gpt-mini",
                                         "--data", "golden:gpt", "--steps", 2)
            losses.add(tuple(summary["loss"]))
            for rank in summary["ranks"]:
                peak = rank["memory"].get("host", {}).get("peak_bytes", 0)
                if ours.get("zero_init") is False:
                    self.assertGreaterEqual(peak, 4 * ELEMS, ours)
                    self.assertLess(peak, 4 * ELEMS + 16 * 256 * 60, ours)
                else:
                    self.assertLess(peak, ELEMS, ours)
        self.assertEqual(len(losses), 1, losses)

    def test_every_stage_and_world(self):
        """The peak is the expression, what fills equal shards up, blocks of the arena and gradients on their way."""
        elems, params = 1611, 6
        expressions = {"bf16": ["16S", "4S + 12S/n", "2S + 14S/n", "16S/n"], "fp32": ["16S", "8S + 8S/n", "4S + 12S/n", "16S/n"]}
        factors = {"bf16": [(16, 0), (4, 12), (2, 14), (0, 16)], "fp32": [(16, 0), (8, 8), (4, 12), (0, 16)]}
        for ranks in (1, 2, 3, 4, 5):
            for stage in (0, 1, 2, 3):
                kind = ("bf16", "fp32")[(ranks + stage) % 2]
                device = self.check(ranks=ranks, kind=kind, model=ROOT / "samples/models/mlp_span.json", data="golden:mlp",
                                    stage=stage, reduce_bucket_size=20_000)["device"]
                whole, sharded = factors[kind][stage]
                self.assertEqual(device["expression"], expressions[kind][stage])
                self.assertAlmostEqual(device["bytes_per_rank"], whole * elems + sharded * elems / ranks, delta=1)
                self.assertLessEqual(set(self.causes(device)), {"padding", "rounding", "whole gradients"}, device)
                self.assertEqual("whole gradients" in self.causes(device), stage >= 2, device)
                # A flat buffer is a multiple of 2 n elements; in stage 3 each shard begins at a multiple of 16 bytes.
                fill = (2, 2 * ranks, 2 * ranks, 8 * params)[stage]
                self.assertLessEqual(self.causes(device).get("padding", 0), 16 * fill, device)

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

    def test_int8_frozen_weights(self):
        how = {"model": adapter(), "data": "golden:mlp", "stage": 3, "zero_quantized_nontrainable_weights": True,
               "stage3_max_reuse_distance": 0, "stage3_prefetch_bucket_size": 0}
        frozen = 3 * (61 * 61 + 61) + 61 * 11
        for ranks, kind in ((1, "bf16"), (3, "fp32"), (4, "bf16")):
            for threshold in (0, 700):
                for more in ({}, {"zero_hpz_partition_size": 2}, {"offload_param": {"device": "cpu"}},
                             {"zero_hpz_partition_size": 4, "offload_optimizer": {"device": "cpu"}}):
                    if ranks % more.get("zero_hpz_partition_size", 1) != 0:
                        continue
                    pools = self.check(ranks=ranks, kind=kind, stage3_param_persistence_threshold=threshold, **how, **more)
                    said = (ranks, kind, threshold, more, pools)
                    for pool in pools.values():
                        self.assertGreaterEqual(self.causes(pool).get("padding", 0), 0, said)
                    pool = pools["pinned" if "offload_param" in more else "device"]
                    causes = self.causes(pool)
                    self.assertIn("scales of int8 weights", causes, said)
                    self.assertIn("F/n", pool["expression"], said)
                    # Persistent ones rest on the device, wherever the others do.
                    self.assertEqual("weights that are not int8" in self.causes(pools["device"]), threshold > 0, said)
                    if "zero_hpz_partition_size" in more and "offload_optimizer" not in more:
                        self.assertIn(" + F/2 (hpZ)", pool["expression"], said)
                    if threshold == 0 and not more:  # a byte an element, and at most 4 for a group
                        self.assertLess(causes["scales of int8 weights"], frozen // ranks // 8, said)

    def test_zenflow(self):
        for stage in (1, 2, 3):
            for more in ({}, {"overlap_step": True}, {"offload": True}):
                pools = self.check(stage=stage, offload_optimizer={"device": "cpu"},
                                   zenflow={"topk_ratio": 0.1, "update_interval": 2, **more})
                self.assertIn("accumulated gradients (ZenFlow)", self.causes(pools["pinned"]))


if __name__ == "__main__":
    main()
