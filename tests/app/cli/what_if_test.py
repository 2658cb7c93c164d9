#!/usr/bin/env python3
"""`shardscope what-if`: what it predicts of a run whose machine is known, because it was simulated, is what a
simulation with the changed settings on that machine takes.

Usage: what_if_test.py BIN_FOLDER SOURCE_ROOT [unittest arguments]
"""
import itertools
import json
import pathlib
import re
import tempfile

from command_line import ROOT, CommandTest, main, read, shardscope

CONFIG = ROOT / "samples/zero3-bf16.json"
# Gathers of the backward stay inside a node, and there are some: nothing is kept from the forward.
HPZ = ["--set", "zero_optimization.zero_hpz_partition_size=8", "--set", "zero_optimization.stage3_max_reuse_distance=0",
       "--set", "zero_optimization.stage3_max_live_parameters=1000000"]
RUN = ["--model", "gpt:layers=4,width=1024,heads=8,context=512,vocabulary=8192", "--config", CONFIG]


class WhatIf(CommandTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        # Nodes of H100, but kernels cost no more than their work, products take it at any shape and beside collectives,
        # attention is like matrix products, rings have no steps, and reading a value back costs nothing: what the fit can find.
        h100 = json.loads((ROOT / "assets/hardware/h100.json").read_text())
        cls.machine = {**h100, "kernel_us": 0, "launch_us": 0,
                       **{link: {**h100[link], "ring_step_us": 0} for link in ("inside", "between")},
                       "attention_efficiency": 0, "memory_efficiency": 0.8,
                       "processors": 0, "matrix_half_depth": 0, "overlap_slowdown": 0,
                       "host": {"gb_per_s": 50, "latency_us": 0}}
        cls.hardware = pathlib.Path(cls.folder.name) / "machine.json"
        cls.hardware.write_text(json.dumps(cls.machine))
        cls.recording = pathlib.Path(cls.folder.name) / "run.zscope"
        cls.step_ms = cls.simulated("-o", cls.recording)

    @classmethod
    def simulated(cls, *arguments, ranks=16):
        result = shardscope("simulate", *RUN, "--ranks", ranks, "--hardware", cls.hardware, "--steps", 4, "--json",
                            *arguments)
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)["step_ms"][-1]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def what_if(self, *arguments):
        result = shardscope("what-if", self.recording, "--json", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_nothing_changed(self):
        outcome = self.what_if()
        self.assertAlmostEqual(outcome["recorded"]["step_ms"], self.step_ms, delta=0.01 * self.step_ms)
        self.assertLess(abs(outcome["model_error_pct"]), 0.5)
        self.assertAlmostEqual(outcome["predicted_change_pct"], 0, places=6)
        self.assertEqual(outcome["comparison"]["config_changes"], [])
        # The link that the collectives had; nothing stayed inside a node.
        fitted, between = outcome["fitted"], self.machine["between"]
        self.assertIsNone(fitted["inside"])
        self.assertIsNone(fitted["host"])
        self.assertAlmostEqual(fitted["between"]["latency_us"], between["latency_us"], delta=0.5)
        rate = min(between["gb_per_s"], self.machine["inside"]["gb_per_s"])
        self.assertAlmostEqual(fitted["between"]["gb_per_s"], rate, delta=0.02 * rate)

    def test_changed_settings(self):
        for change in ("zero_optimization.overlap_comm=false", "zero_optimization.stage3_prefetch_bucket_size=0",
                       "zero_optimization.stage=1", "gradient_accumulation_steps=4"):
            predicted = self.what_if("--set", change)
            real = self.simulated("--set", change)
            self.assertAlmostEqual(predicted["predicted_step_ms"], real, delta=0.02 * real, msg=change)
            self.assertGreater(abs(predicted["predicted_change_pct"]), 1, change)
            self.assertTrue(any(change.split("=")[0] in c for c in predicted["comparison"]["config_changes"]), change)

    def test_more_ranks(self):
        predicted = self.what_if("--ranks", 64)
        real = self.simulated(ranks=64)
        self.assertAlmostEqual(predicted["predicted_step_ms"], real, delta=0.02 * real)
        self.assertEqual(predicted["changed"]["world"], 64)

    def test_another_link(self):
        slower = self.what_if("--node-link", "37:10")
        self.assertGreater(slower["predicted_step_ms"], 1.5 * self.step_ms)

    def test_a_link_that_was_given(self):
        """With the machine's own figures for what was not recorded, the prediction is what that machine takes."""
        inside = self.machine["inside"]
        predicted = self.what_if(*HPZ, "--link", f"{inside['gb_per_s']}:{inside['latency_us']}")
        real = self.simulated(*HPZ)
        self.assertAlmostEqual(predicted["predicted_step_ms"], real, delta=0.02 * real)
        offload = 'zero_optimization.offload_optimizer={"device":"cpu"}'
        fast, slow = (self.what_if("--set", offload, "--host-link", link)["predicted_step_ms"] for link in ("50", "5"))
        self.assertGreater(slow, fast + 1)

    def test_defaults_follow_what_is_changed(self):
        """The recorded configuration holds every default; one that follows from another key follows its change, one
        that was set stays."""
        def of(keys, *changes):
            config = pathlib.Path(self.folder.name) / "given.json"
            config.write_text(json.dumps({"train_micro_batch_size_per_gpu": 1, **keys}))
            recording = pathlib.Path(self.folder.name) / "given.zscope"
            recording.unlink(missing_ok=True)
            run = ["simulate", "--model", "gpt-mini", "--ranks", 2, "--config", config, "--hardware", self.hardware, "--json"]
            self.assertEqual(shardscope(*run, "-o", recording).returncode, 0)
            changes = [word for change in changes for word in ("--set", change)]
            result = shardscope("what-if", recording, *changes, "--json", "--link", "370:5")
            self.assertEqual(result.returncode, 0, result.stderr)
            return json.loads(result.stdout), result.stderr

        outcome, said = of({"zero_optimization": {"stage": 2}}, "bf16.enabled=true", "zero_optimization.stage=3")
        changed = {change.split(":")[0].strip() for change in outcome["comparison"]["config_changes"]}
        self.assertLessEqual({"communication_data_type", "data_types.grad_accum_dtype", "zero_optimization.overlap_comm"},
                             changed)
        self.assertIn("nothing was recorded of bf16", said)
        outcome, _ = of({"zero_optimization": {"stage": 2, "overlap_comm": False}, "communication_data_type": "bf16"},
                           "bf16.enabled=true")
        changed = {change.split(":")[0].strip() for change in outcome["comparison"]["config_changes"]}
        self.assertEqual(changed, {"bf16.enabled", "data_types.grad_accum_dtype"})
        # With the machine's own rate the prediction is what that machine takes.
        rate = self.machine["f16_tflops"] * self.machine["matrix_efficiency"]
        predicted = shardscope("what-if", pathlib.Path(self.folder.name) / "given.zscope", "--set", "bf16.enabled=true",
                               "--matrix-tflops", rate, "--json")
        self.assertEqual(predicted.returncode, 0, predicted.stderr)
        self.assertAlmostEqual(json.loads(predicted.stdout)["changed"]["matrix_tflops"], rate)

    def test_a_trial_of_the_changed_type(self):
        folder = pathlib.Path(self.folder.name)
        config, recording = folder / "real.json", folder / "real.zscope"
        config.write_text(json.dumps({"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 1}}))
        result = shardscope("run", "--ranks", 1, "--model", "mlp", "--steps", 4, "--config", config, "--record", recording)
        self.assertEqual(result.returncode, 0, result.stderr)
        result = shardscope("what-if", recording, "--set", "bf16.enabled=true", "--trial", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        outcome = json.loads(result.stdout)
        self.assertGreater(outcome["changed"]["matrix_tflops"], 0)
        self.assertNotEqual(outcome["changed"]["matrix_tflops"], outcome["fitted"]["matrix_tflops"])
        self.assertNotIn("nothing was recorded", result.stderr)

    def test_the_changed_run_is_kept(self):
        kept = pathlib.Path(self.folder.name) / "kept.zscope"
        outcome = self.what_if("--set", "zero_optimization.stage=2", "-o", kept)
        summary = read("summary", kept)
        self.assertEqual(summary["run"]["stage"], 2)
        self.assertTrue(summary["run"]["simulated"])
        self.assertAlmostEqual(summary["step_ms"]["median"], outcome["changed"]["step_ms"],
                               delta=0.01 * outcome["changed"]["step_ms"])

    def test_text_says_what_is_simulated(self):
        text = shardscope("what-if", self.recording, "--set", "zero_optimization.overlap_comm=false").stdout
        for word in ("(itself simulated)", "fitted", "predicted", "A  the recorded settings, simulated", "overlap_comm"):
            self.assertIn(word, text)

    def search(self, *arguments, recording=None):
        return read("what-if", recording or self.recording, "--search", *arguments)

    def test_search_finds_the_best_of_all(self):
        """Of 12 combinations, each predicted by itself, the search names the fastest, also where it plays 10 at most."""
        over = {"zero_optimization.stage": ("1", "2", "3"), "zero_optimization.overlap_comm": ("true", "false"),
                "gradient_accumulation_steps": ("1", "4")}
        predicted = {}
        for values in itertools.product(*over.values()):
            sets = [word for key, value in zip(over, values) for word in ("--set", f"{key}={value}")]
            predicted[values] = self.what_if(*sets)["predicted_step_ms"]
        fastest = min(predicted.values())
        arguments = [word for key, values in over.items() for word in ("--over", f"{key}={','.join(values)}")]
        for plays in (12, 10):
            outcome = self.search(*arguments, "--plays", plays, "--best", 3)
            self.assertEqual(outcome["complete"], plays == 12)
            self.assertLessEqual(outcome["played"], plays)
            self.assertEqual(outcome["combinations"], 12)
            best = outcome["best"][0]
            self.assertAlmostEqual(best["predicted_step_ms"], fastest, delta=0.0051 * fastest)
            self.assertEqual([b["predicted_step_ms"] for b in outcome["best"]],
                             sorted(b["predicted_step_ms"] for b in outcome["best"]))
            # Each proposal is what what-if says of its settings.
            for one in outcome["best"]:
                alone = self.what_if(*(word for key, value in one["settings"].items() for word in ("--set", f"{key}={value}")))
                self.assertAlmostEqual(alone["predicted_step_ms"], one["predicted_step_ms"], places=3)
                self.assertEqual(alone["changed"]["peak_memory_bytes"]["device"], one["peak_memory_bytes"])

    def test_search_within_a_memory_limit(self):
        over = ("--over", "zero_optimization.stage=0,1,2,3")
        alone = [self.what_if("--set", f"zero_optimization.stage={stage}")
                 for stage in range(4)]
        made = [(one["predicted_step_ms"], one["changed"]["peak_memory_bytes"]["device"]) for one in alone]
        peaks = sorted(peak for _, peak in made)
        everything = self.search(*over)
        self.assertEqual(everything["over_limit"], 0)
        self.assertEqual(everything["best"][0]["peak_memory_bytes"], min(made)[1])
        limit = peaks[1]
        limited = self.search(*over, "--best", 9, "--memory-limit", f"{limit}B")
        self.assertEqual(limited["over_limit"], sum(peak > limit for peak in peaks))
        self.assertGreater(limited["over_limit"], 0)
        self.assertAlmostEqual(limited["best"][0]["predicted_step_ms"], min(ms for ms, peak in made if peak <= limit), places=3)
        self.assertTrue(all(one["peak_memory_bytes"] <= limit for one in limited["best"]))
        nothing = self.search(*over, "--memory-limit", "1MiB")
        self.assertEqual(nothing["best"], [])
        self.assertEqual(nothing["smallest"]["peak_memory_bytes"], peaks[0])
        self.assertIn("Nothing that was played fits 1.00 MiB", nothing["verdict"])
        # Where the recorded settings do not fit, the fastest that do may be slower.
        price = self.search("--over", "shardscope.activation_checkpointing=true", "--over",
                            "gradient_accumulation_steps=2", "--memory-limit", f'{everything["recorded"]["peak_memory_bytes"] - 1}B')
        self.assertGreater(price["best"][0]["predicted_change_pct"], price["error_pct"])
        self.assertIn("slower than the recording", price["verdict"])

    def test_search_says_how_sure_it_is(self):
        # The recorded settings against ones that differ by little: no claim.
        outcome = self.search("--over", "zero_optimization.stage3_prefetch_bucket_size=40000000")
        self.assertGreaterEqual(outcome["error_pct"], outcome["measured_error_pct"])
        self.assertFalse(outcome["best"][0]["beyond_error"])
        self.assertRegex(outcome["verdict"], "cannot be distinguished|None of the settings played is predicted faster")
        # Without overlap recorded: a gain beyond every error.
        slow = pathlib.Path(self.folder.name) / "slow.zscope"
        self.simulated("-o", slow, "--set", "zero_optimization.stage3_max_live_parameters=1000000", "--set",
                       "zero_optimization.overlap_comm=false")
        outcome = self.search(recording=slow)
        self.assertTrue(outcome["best"][0]["beyond_error"])
        self.assertRegex(outcome["verdict"], r"predicted [0-9.]+ % faster")
        self.assertIn("zero_optimization.stage", {setting["name"] for setting in outcome["searched"]})
        text = shardscope("what-if", slow, "--search", "--plays", 12, "--memory-limit", "40GiB").stdout
        for word in ("how sure", "searched", "limit", "40.0 GiB", "--plays", "zero_optimization."):
            self.assertIn(word, text)

    def test_search_says_that_small_products_are_slower(self):
        two = pathlib.Path(self.folder.name) / "two.zscope"
        self.simulated("-o", two, "--set", "train_micro_batch_size_per_gpu=2")
        peak = self.search("--over", "zero_optimization.overlap_comm=false", recording=two)["recorded"]["peak_memory_bytes"]
        arguments = ("--over", "train_micro_batch_size_per_gpu=1", "--memory-limit", f"{peak - 1}B")
        outcome = self.search(*arguments, recording=two)
        self.assertTrue(outcome["best"][0]["smaller_micro_batch"])
        self.assertIsNone(outcome["best"][0]["beyond_error"], "no error is known of it")
        self.assertIn("The first has a smaller micro-batch", outcome["verdict"])
        text = shardscope("what-if", two, "--search", *arguments).stdout
        self.assertRegex(text, r"%\* .*train_micro_batch_size_per_gpu=1")
        outcome = self.search("--over", "train_micro_batch_size_per_gpu=4", recording=two)
        self.assertFalse(any(one["smaller_micro_batch"] for one in outcome["best"]))

    def test_the_error_that_a_search_names_is_the_measured_one(self):
        page = (ROOT / "docs/what-if-pairs.md").read_text()
        measured = float(re.search(r"90th percentile ([0-9.]+) %", page).group(1))
        outcome = self.search("--over", "zero_optimization.overlap_comm=true,false")
        self.assertAlmostEqual(outcome["measured_error_pct"], measured)

    def test_the_error_that_a_search_names_was_measured_on_something(self):
        text = shardscope("what-if", self.recording, "--search", "--over", "zero_optimization.overlap_comm=true,false").stdout
        self.assertIn("a GPT of 10.9 M parameters, one or two ranks on two CPU cores (docs/what-if-pairs.md)", text)
        outcome = self.search("--over", "zero_optimization.overlap_comm=true,false")
        self.assertIn("two CPU cores", outcome["measured_error_on"])
        self.assertIsNone(outcome["error_not_measured"], "the recording is itself simulated")

    def test_search_with_given_settings(self):
        given = ("--set", "zero_optimization.stage=1")
        self.refused(["what-if", self.recording, "--search", *given, "--over", "zero_optimization.stage=1,2"],
                     "--over zero_optimization.stage=1,2", "--set gives this key already")
        # Without --over the given stage is searched around, not the recorded one.
        outcome = self.search(*given, "--plays", 3)
        self.assertEqual(outcome["searched"][0], {"name": "zero_optimization.stage", "values": ["1"]})
        self.assertNotIn("zero_optimization.stage3_max_live_parameters", {one["name"] for one in outcome["searched"]})

    def test_a_proposal_has_only_what_it_changes(self):
        """Another key than the stage comes first: no default depends on it."""
        over = ("--over", "shardscope.activation_checkpointing=true", "--over", "zero_optimization.overlap_comm=false")
        peak = self.search(*over)["recorded"]["peak_memory_bytes"]
        outcome = self.search(*over, "--memory-limit", f"{peak - 1}B", "--best", 9)
        recorded = {one["name"]: one["values"][0] for one in outcome["searched"]}
        self.assertGreater(len(outcome["best"]), 0)
        for one in outcome["best"]:
            for key, value in one["settings"].items():
                self.assertNotEqual(value, recorded[key], f"{key} is as recorded")

    def test_search_errors(self):
        for arguments, words in (
                (("--search", "--over", "zero_optimization.stage"), ("--over zero_optimization.stage", "KEY=V1,V2")),
                (("--search", "--over", "zero_optimization.stag=1,2"), ("stag", "did you mean")),
                (("--search", "--over", "zero_optimization.stage=3"), ("stage=3", "recorded value alone")),
                (("--search", "--over", "bf16.enabled=false"), ("bf16.enabled", "--matrix-tflops")),
                (("--search", "--over", "zero_optimization.stage=1,2", "--over", "zero_optimization.stage=0"), ("twice",)),
                (("--search", "--memory-limit", "much"), ("--memory-limit: much", "GiB")),
                (("--search", "--memory-limit", "24"), ("--memory-limit: 24: write it as", "24GiB")),
                (("--search", "--memory-limit", "-1GiB"), ("--memory-limit: -1GiB", "GiB")),
                (("--memory-limit", "1GiB"), ("--memory-limit", "--search")),
                (("--search", "--plays", "0"), ("0",)),
                (("--search", "-o", pathlib.Path(self.folder.name) / "x.zscope"), ("excludes",))):
            self.refused(["what-if", self.recording, *arguments], *words)

    def test_errors(self):
        one_node = pathlib.Path(self.folder.name) / "node.zscope"
        result = shardscope("simulate", "--model", "gpt-mini", "--ranks", 2, "--config", CONFIG, "-o", one_node)
        self.assertEqual(result.returncode, 0, result.stderr)
        broken = pathlib.Path(self.folder.name) / "broken.zscope"
        broken.write_bytes(b"not a recording")
        for arguments, words in (
                ((pathlib.Path(self.folder.name) / "none.zscope",), ("none.zscope", "no such file")),
                ((broken,), ("broken.zscope",)),
                ((self.recording, "--set", "zero_optimization.overlap_com=1"), ("overlap_com", "did you mean")),
                ((self.recording, "--set", "overlap"), ("overlap", "KEY=VALUE")),
                ((self.recording, "--node-link", "fast"), ("--node-link fast", "GB_PER_S")),
                ((self.recording, "--set", "gradient_accumulation_steps=2", "--trial"), ("--trial", "the recorded one")),
                ((self.recording, "--set", "bf16.enabled=false", "--trial"), ("--trial", "itself simulated")),
                ((self.recording, "--set", "bf16.enabled=false", "--trial", "--matrix-tflops", "1"), ("--trial", "excludes")),
                ((self.recording, "--model", "gpt2"), ("gpt2", "give the model that was trained")),
                ((self.recording, "--ranks", "0"), ("0 is not a number above 0",)),
                ((one_node, "--ranks", "8", "--ranks-per-node", "4"), ("--ranks 8", "--node-link")),
                # Links without a measurement: no speed is made up for them.
                ((self.recording, *HPZ), ("of a node", "--link")),
                ((self.recording, "--set", 'zero_optimization.offload_optimizer={"device":"cpu"}'),
                 ("device and host", "--host-link"))):
            self.refused(["what-if", *arguments], *words)


if __name__ == "__main__":
    main()
