#!/usr/bin/env python3
"""`shardscope estimate`: what it counts, before a run and beside one.

Usage: estimates_test.py BIN_FOLDER SOURCE_ROOT [unittest arguments]
"""
import json
import pathlib
import tempfile
import unittest

from command_line import ROOT, main, print_config, shardscope, summary_of_run


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

    def test_the_documents_three_cases(self):
        expected = ("total params:         737.67M\nlargest layer params:  32.90M\nlargest layer memory:    125MB\n"
                    "case1 gpu memory:   3291MB\ncase2 gpu memory:    125MB\ncase3 gpu memory:    477MB\n")
        self.assertEqual(self.text("zero3", "--model", "t5-large", "--gpus-per-node", 4, "--cases"), expected)
        self.assertEqual(self.text("zero3", "--model", "t5-large", "--gpus-per-node", 2, "--nodes", 2, "--cases"), expected)
        cases = json.loads(self.text("zero3", "--model", "t5-large", "--gpus-per-node", 4, "--cases", "--json"))
        self.assertEqual(cases["case1_bytes"], 4 * 32899072 + 18 * 737668096 // 4)

    def test_encoder_decoders_are_counted(self):
        self.assertEqual(self.text("zero2", "--model", "t5-3b", "--gpus-per-node", 8), self.text("zero2", *self.T5_3B))
        config = {"is_encoder_decoder": True, "model_type": "t5", "vocab_size": 32128, "d_model": 1024, "d_ff": 16384, "num_heads": 32,
                  "d_kv": 128, "num_layers": 24, "num_decoder_layers": 24, "feed_forward_proj": "relu"}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "config.json"
            path.write_text(json.dumps(config))
            self.assertEqual(self.text("zero3", "--model", path), self.text("zero3", "--model", "t5-3b"))
            path.write_text(json.dumps({**config, "d_ff": -1}))
            result = shardscope("estimate", "zero3", "--model", path)
            self.assertEqual(result.returncode, 1)
            self.assertIn("d_ff: -1; give a whole number from 1 to", result.stderr)

    def test_a_file_of_weights_says_how_many(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "pytorch_model.bin"
            with open(path, "wb") as file:
                file.truncate(4 * 1000000)
            self.assertEqual(self.text("zero2", "--state-dict", path), self.text("zero2", "--params", 1000000))
            self.assertEqual(self.text("zero2", "--state-dict", path, "--bytes-per-weight", 2), self.text("zero2", "--params", 2000000))
            for wrong, code in ((("--state-dict", folder + "/none"), 1), (("--state-dict", path, "--params", 3), 2)):
                result = shardscope("estimate", "zero2", *wrong)
                self.assertEqual(result.returncode, code)
                self.assertTrue(result.stderr.startswith("shardscope: --state-dict"), result.stderr)

    def test_activations(self):
        batch, sequence, layers, heads, hidden = 2, 1024, 12, 12, 768  # GPT-2's
        one_layer = (2 * sequence * heads + 16 * hidden) * sequence * batch
        inputs = 2 * hidden * sequence * batch  # of a layer, in 16 bits
        of_model = ("activations", "--model", "gpt2", "--micro-batch", batch)
        of_shape = ("activations", "--layers", layers, "--heads", heads, "--hidden", hidden, "--sequence", sequence,
                    "--micro-batch", batch)
        for asked in (of_model, of_shape):
            for interval in (1, 3):
                got = json.loads(self.text(*asked, "--checkpoint-interval", interval, "--json"))
                self.assertEqual((got["per_layer_bytes"], got["kept_bytes"], got["checkpointed_bytes"]),
                                 (one_layer, layers * one_layer, layers / interval * inputs + interval * one_layer))
        text = self.text(*of_model)
        self.assertIn("2 x 1024 tokens, 12 layers of width 768 with 12 heads", text)
        self.assertIn("   864.00MB  all layers kept\n", text)

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
                             self.text(*zero2) + head + rows(factor)[0] + " | offload_optimizer=cpu\n"
                             "The documents say of ZeRO-2 that it cannot be controlled; this is what DeepSpeed 0.19 pins with "
                             "offload_optimizer.pin_memory.\n")
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
        made = print_config({"stage": 3, "reduce_bucket_size": "auto"}, 2, model="gpt-mini")
        self.assertEqual(json.loads(made.stdout)["zero_optimization"]["reduce_bucket_size"], 128 * 128)

    def test_a_largest_layer_of_nothing_is_what_deepspeed_counts_for_it(self):
        rows = json.loads(self.text("zero3", "--params", 1000, "--largest-layer", 0, "--gpus-per-node", 4, "--json"))
        self.assertEqual([row["per_gpu_bytes"] for row in rows], [0, 0, 500, 500, 4500, 4500])

    def test_no_parameters_are_refused(self):
        for stage in ("zero2", "zero3"):
            result = shardscope("estimate", stage, "--params", 0)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn("--params 0: a model without parameters needs no estimate", result.stderr)

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
            mics, output = rows(3, 4, {"mics_shard_size": 2})
            self.assertEqual([r["expression"] for r in mics], ["16S/2 (MiCS) + 2F/n"])
            self.assertEqual(mics[0]["model_states_bytes"], row(3, 2, {})["model_states_bytes"])
            self.assertIn("mics_shard_size", output)
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
            memory = summary_of_run(folder / "r.zscope", "--config", folder / "ds.json", "--model", folder / "model.json",
                                    "--ranks", 2, "--steps", 2)["memory_model"]
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


if __name__ == "__main__":
    main()
