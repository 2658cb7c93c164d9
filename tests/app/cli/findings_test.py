"""Each finding that a setting answers is provoked, found, and its advice followed, on a virtual clock: the step does not get
longer. Healthy runs have no warning. What a real machine made of the same advice: tests/bench/advice.py, docs/findings/advice.md."""
import json
import pathlib
import random
import re
import tempfile
import unittest

import command_line
from command_line import ROOT, read, said
from simulated_run import Run, machine


class Findings(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = kept.name

    def follow(self, run, finding, least_gain=0.0):
        """The finding is there with a change; following it makes the step shorter, by about what was predicted."""
        self.assertIn(finding, run.by_id, [one["title"] for one in run.findings])
        found = run.by_id[finding]
        self.assertTrue(found["changes"], found)
        self.assertTrue((ROOT / found["page"]).is_file(), found["page"])
        after = run.followed(finding)
        self.assertLess(after.step_ms, run.step_ms * (1 - least_gain), found)
        if found["gain_ms"] is not None:
            self.assertAlmostEqual(run.step_ms - after.step_ms, found["gain_ms"], delta=0.25 * found["gain_ms"] + 0.01 * run.step_ms)
        return after

    def peak(self, run):
        return max(rank["memory"]["device"]["peak_bytes"] for rank in run.summary["ranks"])

    def test_overlap_that_is_off(self):
        for stage in (2, 3):
            run = Run(self.folder, f"off{stage}", machine(self.folder, 1), {"stage": stage, "overlap_comm": False,
                                                                          "reduce_bucket_size": 100_000})
            self.follow(run, "overlap_off", 0.02)
            for finding in run.findings:
                self.assertNotIn("prefetch", finding["next_step"])

    def test_one_bucket_for_all_gradients(self):
        run = Run(self.folder, "bucket", machine(self.folder, 0.5),
                  {"stage": 2, "overlap_comm": True, "reduce_bucket_size": 1_000_000_000})
        self.follow(run, "large_bucket", 0.02)
        for finding in run.findings:
            for change in finding["changes"]:
                self.assertNotIn("stage3_", change["key"])

    def test_prefetches_of_the_whole_model(self):
        run = Run(self.folder, "large", machine(self.folder, 0.5),
                  {"stage": 3, "overlap_comm": True, "reduce_bucket_size": 100_000, "stage3_prefetch_bucket_size": 50_000_000,
                   "stage3_param_persistence_threshold": 0})
        self.follow(run, "large_prefetch")

    def test_at_a_slow_link_no_larger_prefetch_is_advised(self):
        for bucket in (200_000, 2_000_000, 50_000_000):
            run = Run(self.folder, f"slow{bucket}", machine(self.folder, 0.05),
                      {"stage": 3, "overlap_comm": True, "reduce_bucket_size": 100_000, "stage3_prefetch_bucket_size": bucket,
                       "stage3_param_persistence_threshold": 0})
            for finding in run.findings:
                for change in finding["changes"]:
                    if change["key"].endswith("prefetch_bucket_size"):
                        self.assertLess(int(change["value"]), bucket, finding)
            self.follow(run, "link_bound", 0.05)

    def test_accumulation_that_saves_nothing(self):
        run = Run(self.folder, "accumulate", machine(self.folder, 0.05),
                  {"stage": 2, "overlap_comm": True, "reduce_bucket_size": 100_000}, root={"gradient_accumulation_steps": 4})
        self.follow(run, "accumulated_reductions", 0.05)

    def test_many_small_buckets(self):
        run = Run(self.folder, "small", machine(self.folder, 1, latency_us=1000),
                  {"stage": 2, "overlap_comm": True, "reduce_bucket_size": 2000})
        self.follow(run, "small_bucket", 0.05)

    def test_prefetches_that_the_live_limit_stops(self):
        zero = {"stage": 3, "overlap_comm": True, "reduce_bucket_size": 100_000, "stage3_param_persistence_threshold": 0}
        run = Run(self.folder, "short", machine(self.folder, 0.5),
                  {**zero, "stage3_prefetch_bucket_size": 100_000, "stage3_max_live_parameters": 10_000})
        self.follow(run, "short_prefetch", 0.01)
        keys = [change["key"] for change in run.by_id["short_prefetch"]["changes"]]
        self.assertIn("zero_optimization.stage3_max_live_parameters", keys)
        # A bucket of a single parameter is enough where the link keeps up: a larger one would gain nothing, and none is advised.
        run = Run(self.folder, "enough", machine(self.folder, 0.5), {**zero, "stage3_prefetch_bucket_size": 1})
        self.assertEqual([change for one in run.findings for change in one["changes"]], [])
        larger = Run(self.folder, "larger", machine(self.folder, 0.5), {**zero, "stage3_prefetch_bucket_size": 100_000})
        self.assertGreater(larger.step_ms, 0.99 * run.step_ms)

    def test_prefetches_that_are_off_or_whose_bucket_is_full(self):
        zero = {"stage": 3, "overlap_comm": True, "reduce_bucket_size": 100_000}
        off = Run(self.folder, "off", machine(self.folder, 0.5, tflops=1, latency_us=50),
                  {**zero, "stage3_prefetch_bucket_size": 0, "stage3_param_persistence_threshold": 0}, ranks=8, steps=4,
                  root={"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 4})
        full = Run(self.folder, "full", machine(self.folder, 10, tflops=0.5, latency_us=300),
                   {**zero, "stage3_prefetch_bucket_size": 10_000, "stage3_param_persistence_threshold": 300}, ranks=4, steps=4,
                   root={"bf16": {"enabled": True}, "gradient_accumulation_steps": 4})
        for run in (off, full):
            self.follow(run, "short_prefetch", 0.05)
            self.assertEqual([change["key"] for change in run.by_id["short_prefetch"]["changes"]],
                             ["zero_optimization.stage3_prefetch_bucket_size"])
        self.assertIn("prefetching is off", off.by_id["short_prefetch"]["evidence"])
        self.assertIn("stopped at stage3_prefetch_bucket_size of 10k elements", full.by_id["short_prefetch"]["evidence"])

    def test_many_gathers_at_a_link_of_latency(self):
        """Quantized weights would make two collectives of each: a larger prefetch bucket is what helps."""
        run = Run(self.folder, "latency", machine(self.folder, 50, latency_us=300),
                  {"stage": 3, "overlap_comm": True, "reduce_bucket_size": 50_000, "stage3_prefetch_bucket_size": 1,
                   "stage3_param_persistence_threshold": 0}, ranks=8, root={"bf16": {"enabled": True}})
        bound = run.by_id["link_bound"]
        self.assertIn("latency", bound["title"])
        self.assertNotIn("zero_optimization.zero_quantized_weights", [change["key"] for change in bound["changes"]])
        self.assertNotIn("16-bit", bound["next_step"])
        after = self.follow(run, "link_bound", 0.3)
        self.assertAlmostEqual(run.step_ms - after.step_ms, bound["gain_ms"], delta=0.05 * bound["gain_ms"])
        # With --plays 0 nothing is simulated: the first advice stays, and no gain is given.
        unplayed = {one["id"]: one for one in json.loads(said("findings", run.recording, "--json", "--plays", 0))}["link_bound"]
        self.assertTrue(unplayed["changes"])
        self.assertIsNone(unplayed["gain_ms"])
        self.assertIn("not predicted", unplayed["gain_basis"])

    def test_no_advice_makes_a_step_longer(self):
        """Of runs drawn with a fixed seed; tests/bench/followed_advice.py draws more of them, of a larger model."""
        dice, followed = random.Random(4), 0
        for index in range(10):
            stage = dice.choice([1, 2, 3, 3, 3])
            zero = {"stage": stage, "overlap_comm": dice.random() < 0.8,
                    "reduce_bucket_size": dice.choice([2000, 40_000, 400_000, 500_000_000])}
            if stage == 3:
                zero.update({"stage3_prefetch_bucket_size": dice.choice([0, 1, 4000, 40_000, 400_000]),
                             "stage3_param_persistence_threshold": dice.choice([0, 1000]),
                             "stage3_max_live_parameters": dice.choice([10_000, 200_000, 1_000_000_000]),
                             "stage3_max_reuse_distance": dice.choice([0, 1_000_000_000])})
            run = Run(self.folder, f"drawn{index}", machine(self.folder, dice.choice([0.1, 1, 20]), latency_us=dice.choice([2, 20, 500])),
                      zero, ranks=dice.choice([2, 4, 8]), steps=4,
                      root={"gradient_accumulation_steps": dice.choice([1, 1, 4]), "bf16": {"enabled": dice.random() < 0.6}})
            for finding in run.findings:
                if not finding["changes"] or finding["gain_ms"] is None:
                    continue
                followed += 1
                after = run.followed(finding["id"])
                self.assertLess(after.step_ms, 1.01 * run.step_ms, f"run {index}: {finding}")
        self.assertGreater(followed, 8)

    def test_recomputation_where_memory_is_not_needed(self):
        zero = {"stage": 2, "overlap_comm": True, "reduce_bucket_size": 200_000}
        run = Run(self.folder, "twice", machine(self.folder, 50), zero, root={"shardscope": {"activation_checkpointing": True}})
        self.follow(run, "recomputation", 0.1)
        # A click on it opens the recomputation of a module: a small part of the step, in its backward.
        found = run.by_id["recomputation"]
        self.assertLess(found["until_ns"] - found["at_ns"], 0.25e6 * run.step_ms)
        self.assertIn(found["rank"], (0, 1))
        self.assertIn("peak", run.by_id["recomputation"]["gain_basis"])
        self.assertNotIn("recomputation", Run(self.folder, "once", machine(self.folder, 50), zero).by_id)

    def test_a_backward_that_waits_for_buckets(self):
        run = Run(self.folder, "serial", machine(self.folder, 0.25), {"stage": 2, "overlap_comm": True, "reduce_bucket_size": 50_000})
        self.follow(run, "serialized_buckets", 0.02)

    def test_a_backward_that_waits_for_its_gradient_buffers(self):
        """With DeepSpeed's buffers, of which contiguous_gradients has two: without it each bucket is its gradients."""
        run = Run(self.folder, "buffers", machine(self.folder, 0.5), {"stage": 2, "overlap_comm": True, "reduce_bucket_size": 50_000},
                  root={"shardscope": {"compat": {"gradient_buffers": True}}}, steps=4)
        after = self.follow(run, "serialized_buckets", 0.02)
        self.assertEqual(run.by_id["serialized_buckets"]["changes"],
                         [{"key": "zero_optimization.contiguous_gradients", "value": "false"}])
        self.assertLessEqual(self.peak(after), self.peak(run))
        self.assertNotIn("serialized_buckets", after.by_id)

    def test_micro_batches_of_other_lengths_on_each_rank(self):
        """The short one waits in its bucket for the rank of the long one: no bucket or link is the cause, and with as many tokens
        in micro-batches of one length, as advised, the step gets shorter."""
        runs = {}
        for name, shapes in (("uneven", [[4, 64], [4, 8]]), ("even", [[4, 36]])):
            runs[name] = Run(self.folder, name, machine(self.folder, 50), {"stage": 2, "overlap_comm": True, "reduce_bucket_size": 200_000},
                             root={"shardscope": {"micro_batches": {"shapes": shapes}}})
        found = runs["uneven"].by_id
        self.assertNotIn("serialized_buckets", found)
        self.assertIn("micro-batches of like lengths", found["exposed_communication"]["next_step"])
        self.assertEqual(runs["even"].summary["micro_batches"]["tokens"], runs["uneven"].summary["micro_batches"]["tokens"])
        self.assertLess(runs["even"].step_ms, 0.8 * runs["uneven"].step_ms)
        self.assertNotIn("exposed_communication", runs["even"].by_id)

    def test_a_larger_micro_batch_hides_what_has_nothing_to_hide_behind(self):
        """The same bytes for four times the samples: less of each sample's time is exposed."""
        for stage in (2, 3):
            zero = {"stage": stage, "overlap_comm": True, "reduce_bucket_size": 200_000, "stage3_prefetch_bucket_size": 50_000}
            few, many = (Run(self.folder, f"batch{stage}-{size}", machine(self.folder, 0.5), zero,
                             root={"train_micro_batch_size_per_gpu": size}) for size in (4, 16))
            found = few.by_id["exposed_communication"]
            self.assertIn("a larger micro-batch computes longer for the same bytes", found["next_step"])
            self.assertEqual(few.summary["comm"]["elements_per_step"], many.summary["comm"]["elements_per_step"])
            self.assertLess(many.step_ms / 16, 0.95 * few.step_ms / 4)
            after = many.by_id["exposed_communication"]["cost_ms"] if "exposed_communication" in many.by_id else 0
            self.assertLess(after / 16, 0.5 * found["cost_ms"] / 4)

    def test_many_tiny_gathers_at_a_link_that_keeps_up(self):
        run = Run(self.folder, "tiny", machine(self.folder, 50, latency_us=300),
                  {"stage": 3, "overlap_comm": True, "reduce_bucket_size": 200_000, "stage3_prefetch_bucket_size": 1,
                   "stage3_param_persistence_threshold": 0})
        self.follow(run, "tiny_gathers", 0.1)

    def test_parameters_on_a_slow_disk(self):
        """More buffers make nothing faster there: what-if knows the disks of the recording, and none are advised."""
        zero = {"stage": 3, "overlap_comm": True, "stage3_param_persistence_threshold": 2000,
                "offload_param": {"device": "nvme", "nvme_path": "/tmp", "buffer_count": 2, "buffer_size": 10_000_000}}
        found = {}
        for speed in (2, 20):
            hardware = json.loads(machine(self.folder, 50, tflops=20, host=200).read_text())
            hardware["nvme"] = {"gb_per_s": speed, "latency_us": 50}
            path = pathlib.Path(self.folder) / f"disk{speed}.json"
            path.write_text(json.dumps(hardware))
            config, recording = path.with_name(f"zero{speed}.json"), path.with_suffix(".zscope")
            config.write_text(json.dumps({"train_micro_batch_size_per_gpu": 4, "zero_optimization": zero,
                                          "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}}))
            said("simulate", "--model", "gpt:layers=6,width=1024,heads=4,context=32,vocabulary=300", "--config", config,
                 "--hardware", path, "--ranks", 2, "--steps", 4, "-o", recording)
            found[speed] = {one["id"]: one for one in read("findings", recording)}
        self.assertNotIn("nvme_params", found[20])
        slow = found[2]["nvme_params"]
        self.assertEqual(slow["changes"], [], slow)
        self.assertIn("none makes a step 2 % shorter", slow["gain_basis"])

    def test_parameters_on_disk_that_wait_for_a_buffer(self):
        """With one buffer nothing is read while it is used: a second one is advised, and the step gets shorter by what is predicted."""
        hardware = json.loads(machine(self.folder, 50, tflops=2, host=200).read_text())
        hardware["nvme"] = {"gb_per_s": 2, "latency_us": 50}
        path = pathlib.Path(self.folder) / "one-buffer.json"
        path.write_text(json.dumps(hardware))
        zero = {"stage": 3, "overlap_comm": True, "stage3_param_persistence_threshold": 2000,
                "offload_param": {"device": "nvme", "nvme_path": "/tmp", "buffer_count": 1, "buffer_size": 10_000_000}}
        run = Run(self.folder, "buffer", path, zero, steps=4, model="gpt:layers=6,width=512,heads=4,context=32,vocabulary=300")
        self.follow(run, "nvme_params", 0.02)
        self.assertEqual(run.by_id["nvme_params"]["changes"], [{"key": "zero_optimization.offload_param.buffer_count", "value": "2"}])

    def test_prefetches_that_wait_for_copies_from_host_memory(self):
        """What is exposed are copies, no communication: the late prefetches stand alone, and follow from where the shards are."""
        hardware = json.loads(machine(self.folder, 50).read_text())
        hardware["host"] = {"gb_per_s": 0.1, "latency_us": 20}
        path = pathlib.Path(self.folder) / "slow-host.json"
        path.write_text(json.dumps(hardware))
        run = Run(self.folder, "host", path, {"stage": 3, "overlap_comm": True, "reduce_bucket_size": 200_000,
                                              "stage3_prefetch_bucket_size": 50_000, "stage3_param_persistence_threshold": 0,
                                              "offload_param": {"device": "cpu"}}, steps=4)
        self.assertEqual([one["id"] for one in run.findings], ["late_prefetch"])
        late = run.by_id["late_prefetch"]
        self.assertIn("copy of the shard from host memory", late["evidence"])
        self.assertEqual({change["key"] for change in late["changes"]}, {"zero_optimization.offload_param.device"})
        after = self.follow(run, "late_prefetch", 0.3)
        self.assertNotIn("late_prefetch", after.by_id)

    def test_accumulation_at_stage_3(self):
        run = Run(self.folder, "accumulate3", machine(self.folder, 0.05),
                  {"stage": 3, "overlap_comm": True, "reduce_bucket_size": 100_000}, root={"gradient_accumulation_steps": 4})
        self.follow(run, "accumulated_reductions", 0.05)

    def test_the_cpu_optimizer(self):
        run = Run(self.folder, "cpu", machine(self.folder, 50, host=3),
                  {"stage": 2, "overlap_comm": True, "offload_optimizer": {"device": "cpu"}})
        self.follow(run, "cpu_optimizer", 0.02)
        # A click on it opens the update, no longer than it is on the critical path, and a part of one step.
        found = run.by_id["cpu_optimizer"]
        self.assertGreater(found["until_ns"] - found["at_ns"], 0.1e6 * found["cost_ms"])
        self.assertLess(found["until_ns"] - found["at_ns"], 1.01e6 * found["cost_ms"])

    def test_gathered_parameters_at_the_peak(self):
        """The peak of memory does not get larger."""
        run = Run(self.folder, "peak", machine(self.folder, 50),
                  {"stage": 3, "overlap_comm": True, "stage3_prefetch_bucket_size": 400_000, "reduce_bucket_size": 50_000,
                   "stage3_max_reuse_distance": 0, "stage3_param_persistence_threshold": 0}, ranks=8,
                  root={"train_micro_batch_size_per_gpu": 1})
        self.assertIn("gathered_peak", run.by_id, run.findings)
        # Elements of four bytes: the evidence's number of them is that of the bytes.
        gathered = run.by_id["gathered_peak"]
        number, unit = re.search(r"([0-9.]+)([kM]?) elements are whole", gathered["evidence"]).groups()
        elements = float(number) * {"": 1, "k": 1e3, "M": 1e6}[unit]
        self.assertAlmostEqual(gathered["cost_bytes"] / elements, 4, delta=0.05)
        self.assertLess(self.peak(run.followed("gathered_peak")), self.peak(run))

    def test_parameters_that_stay_gathered_after_their_use(self):
        """Kept from the forward to the backward, by a prefetch that counts on them or for their reuse: following the advice the
        peak gets smaller, as predicted, and the finding is gone or smaller."""
        for bucket, key in ((500_000, "stage3_max_live_parameters"), (0, "stage3_max_reuse_distance")):
            config, hardware = pathlib.Path(self.folder) / f"held{bucket}.json", machine(self.folder, 50)
            config.write_text(json.dumps({"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": True},
                                          "zero_optimization": {"stage": 3, "overlap_comm": True, "stage3_prefetch_bucket_size": bucket,
                                                                "stage3_param_persistence_threshold": 0}}))

            def played(*sets):
                recording = config.with_name(f"held{bucket}-{len(sets)}.zscope")  # noqa: B023
                said("simulate", "--model", "gpt:layers=6,width=256,heads=4,context=16,vocabulary=300", "--config", config,  # noqa: B023
                     "--hardware", hardware, "--ranks", 8, "--steps", 4, "-o", recording, *sets)  # noqa: B023
                peak = max(rank["memory"]["device"]["peak_bytes"] for rank in read("summary", recording)["ranks"])
                return {one["id"]: one for one in read("findings", recording)}, peak

            before, peak = played()
            self.assertIn("held_after_use", before)
            held = before["held_after_use"]
            self.assertEqual((held["severity"], held["panel"]), ("info", "memory"))
            self.assertEqual([change["key"] for change in held["changes"]], [f"zero_optimization.{key}"], held)
            self.assertNotIn("gathered_peak", before)
            self.assertTrue(any("gathered parameters" in title for title in held["explains"]), held)
            after, smaller = played("--set", f"{held['changes'][0]['key']}={held['changes'][0]['value']}")
            self.assertAlmostEqual(peak - smaller, held["gain_bytes"], delta=0.1 * held["gain_bytes"])
            self.assertLess(after["held_after_use"]["cost_bytes"] if "held_after_use" in after else 0, held["cost_bytes"] / 2)

    def test_stragglers_by_their_own_measure(self):
        for ranks, factor in ((2, 1.4), (4, 1.15), (4, 1.3)):
            for stage in (1, 3):
                run = Run(self.folder, f"late{ranks}-{factor}-{stage}", machine(self.folder, 50),
                          {"stage": stage, "overlap_comm": True, "reduce_bucket_size": 100_000}, ranks=ranks,
                          more=("--straggler", f"1:{factor}"))
                self.assertIn("straggler", run.by_id, [one["title"] for one in run.findings])
                self.assertEqual(run.by_id["straggler"]["rank"], 1)
                self.assertEqual(run.findings[0]["id"], "straggler", run.findings)
                self.assertEqual([c for one in run.findings for c in one["changes"]], [])

    def test_healthy_runs_have_no_warning(self):
        for stage in range(4):
            for ranks in (1, 2, 4):
                run = Run(self.folder, f"well{stage}-{ranks}", machine(self.folder, 50, latency_us=2),
                          {"stage": stage, "overlap_comm": True, "reduce_bucket_size": 200_000,
                           "stage3_prefetch_bucket_size": 200_000}, ranks=ranks, more=("--jitter", "0.02"))
                warnings = [one for one in run.findings if one["severity"] != "info"]
                self.assertEqual(warnings, [], f"stage {stage}, {ranks} ranks")
                self.assertNotIn("held_after_use", run.by_id)

    def test_the_critical_path_sums_to_the_step(self):
        run = Run(self.folder, "path", machine(self.folder, 0.5), {"stage": 3, "overlap_comm": True}, steps=2)
        path = run.summary["critical_path"]
        self.assertEqual(path["steps"], 1)
        self.assertAlmostEqual(sum(path["ms_per_step"].values()), run.step_ms, places=4)
        self.assertGreater(path["ms_per_step"]["transfer"], 0)
        for rank in run.summary["ranks"]:
            self.assertAlmostEqual(rank["waiting_ms"] + rank["moving_ms"], rank["time_ms"]["exposed_comm"], places=4)


class Check(command_line.CommandTest):
    def test_exit_codes(self):
        with tempfile.TemporaryDirectory() as folder:
            zero = {"stage": 2, "overlap_comm": True}
            base = Run(folder, "base", machine(folder, 1), zero, steps=12, more=("--jitter", "0.02"))
            slow = Run(folder, "slow", machine(folder, 1, tflops=0.15), zero, steps=12, more=("--jitter", "0.02"))
            short = Run(folder, "short", machine(folder, 1), zero, steps=3)
            check = lambda run, *more: command_line.shardscope("check", run.recording, "--baseline", base.recording, *more)  # noqa: E731
            self.assertEqual(check(base).returncode, 0)
            result = check(slow, "--json", "--junit", f"{folder}/junit.xml")
            self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
            outcomes = {one["metric"]: one["outcome"] for one in json.loads(result.stdout)}
            self.assertEqual(outcomes, {"step_ms": "beyond", "peak": "within"})
            self.assertIn('failures="1"', pathlib.Path(folder, "junit.xml").read_text())
            self.assertEqual(check(slow, "--fail-over", "step_ms=80%").returncode, 0)
            self.assertEqual(check(short).returncode, 3)
            missing = command_line.shardscope("check", f"{folder}/none.zscope", "--baseline", base.recording)
            self.assertEqual(missing.returncode, 2, missing.stderr)
            compared = command_line.read("compare", base.recording, slow.recording, "--by", "rank")
            self.assertRegex(compared["verdict"], r"^B is .* slower than A \(95 %: ")
            computation = [row for row in compared["by"]["rows"] if row["figure"] == "computation"]
            self.assertEqual(len(computation), base.summary["world"] if "world" in base.summary else len(base.summary["ranks"]))
            for row in computation:
                self.assertGreater(row["low"], 0, row)
            for by, figure in (("module", "forward"), ("collective", "bytes"), ("memory", "at the peak")):
                rows = command_line.read("compare", base.recording, slow.recording, "--by", by)["by"]["rows"]
                self.assertIn(figure, {row["figure"] for row in rows}, by)
            text = command_line.said("compare", base.recording, slow.recording, "--by", "module")
            self.assertIn("pairs of steps with the same number", text)
            self.refused(("check", base.recording, "--baseline", base.recording, "--fail-over", "speed=5%"), "speed", "step_ms")


if __name__ == "__main__":
    command_line.main()
