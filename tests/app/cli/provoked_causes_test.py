"""Causes that a run provokes, simulated or really trained, each named by `findings`; where a setting answers it, the advice is
followed and nothing gets worse. The causes that sizes of buckets and prefetches have: findings_test.py."""
import csv
import json
import pathlib
import re
import tempfile
import unittest

import command_line
from command_line import ROOT, read
from simulated_run import Run, machine


class Simulated(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = kept.name

    def with_disk(self, gb_per_s, host):
        hardware = json.loads(machine(self.folder, 50, host=host).read_text())
        hardware["nvme"] = {"gb_per_s": gb_per_s, "latency_us": 50}
        path = pathlib.Path(self.folder) / f"disk-{gb_per_s}-{host}.json"
        path.write_text(json.dumps(hardware))
        return path

    def test_an_update_that_waits_for_the_disk(self):
        """The CPU computes for a part of the update only: what it reads and writes is the disk's time, not the CPU's."""
        zero = {"stage": 3, "overlap_comm": True, "reduce_bucket_size": 200_000, "sub_group_size": 50_000,
                "offload_optimizer": {"device": "nvme", "nvme_path": "/tmp"}}
        run = Run(self.folder, "disk", self.with_disk(2, 5), zero, steps=5)
        self.assertIn("nvme_wait", run.by_id, run.findings)
        # 12 bytes of states an element are read and as many written; two ranks share the model.
        moved_ms = 2 * 12 * run.summary["run"]["params"] / 2 / 2e9 * 1e3
        self.assertAlmostEqual(run.by_id["nvme_wait"]["cost_ms"], moved_ms, delta=0.2 * moved_ms)
        changes = {change["key"]: change["value"] for change in run.by_id["nvme_wait"]["changes"]}
        self.assertEqual(set(changes), {f"zero_optimization.offload_optimizer.pipeline_{way}" for way in ("read", "write")})
        after = run.followed("nvme_wait")
        self.assertLess(after.step_ms, 0.98 * run.step_ms)
        gain = run.by_id["nvme_wait"]["gain_ms"]
        if gain is not None:
            self.assertAlmostEqual(run.step_ms - after.step_ms, gain, delta=0.25 * gain + 0.01 * run.step_ms)

    def test_a_slow_link(self):
        """Of four pairs that gather beside each other one is slow, and its ranks come late to what all replicas reduce."""
        zero = {"stage": 3, "overlap_comm": True, "mics_shard_size": 2, "reduce_bucket_size": 200_000,
                "stage3_prefetch_bucket_size": 50_000, "stage3_param_persistence_threshold": 0}
        well = Run(self.folder, "well", machine(self.folder, 2), zero, ranks=8)
        self.assertFalse({"slow_link", "straggler"} & set(well.by_id), well.findings)
        slow = Run(self.folder, "slow", machine(self.folder, 2), zero, ranks=8, more=("--slow-link", "5:4"))
        self.assertIn("slow_link", slow.by_id, slow.findings)
        found = slow.by_id["slow_link"]
        # Both groups that rank 5 is in are slow.
        self.assertEqual(found["title"], "The link of rank 5 is slow")
        self.assertEqual(found["rank"], 5)
        self.assertEqual(found["severity"], "warning")
        self.assertEqual(found["changes"], [])
        self.assertLess(found["cost_ms"], 1.05 * (slow.step_ms - well.step_ms))
        self.assertGreater(found["cost_ms"], 0.9 * (slow.step_ms - well.step_ms))
        self.assertNotIn("straggler", slow.by_id)
        # Without the slow link less than 5 % of a step is exposed: no advice about the micro-batch beside it.
        self.assertRegex(" ".join(found["explains"]), "[0-9]+ % of a step is exposed communication")
        self.assertNotIn("exposed_communication", slow.by_id)
        # Rank 4 comes late to what its replicas reduce because its own pair took longer, not because it did nothing.
        text = command_line.said("summary", slow.recording)
        late = re.findall(r"rank (4|5): it entered .*; (it was in collectives of the group of ranks 4, 5 for ([0-9.]+) ms of a step, "
                          r"the others in theirs for ([0-9.]+) ms; bytes moved for)", text)
        self.assertEqual([rank for rank, *_ in late], ["4", "5"], text)
        for _, _, own, others in late:
            self.assertGreater(float(own), 1.5 * float(others), text)
        self.assertNotIn("did nothing", text)

    def test_links_by_group(self):
        """Four times as slow are those of rank 5, and no others."""
        zero = {"stage": 3, "overlap_comm": True, "mics_shard_size": 2, "reduce_bucket_size": 200_000}
        run = Run(self.folder, "links", machine(self.folder, 2), zero, ranks=8, steps=13, more=("--slow-link", "5:4"))
        links = run.summary["links"]
        self.assertEqual({tuple(link["ranks"]) for link in links},
                         {(0, 1), (2, 3), (4, 5), (6, 7), (0, 2, 4, 6), (1, 3, 5, 7)})
        usual = {link["op"]: link for link in links if 5 not in link["ranks"]}
        for link in links:
            self.assertIsNone(link["no_interval"], link)
            self.assertLessEqual(link["low_gbs"], 1.001 * link["busbw_gbs"], link)
            self.assertGreaterEqual(link["high_gbs"], 0.999 * link["busbw_gbs"], link)
            ratio = usual[link["op"]]["busbw_gbs"] / link["busbw_gbs"]
            if 5 in link["ranks"]:
                self.assertGreater(ratio, 2, link)
                self.assertLess(link["high_gbs"], usual[link["op"]]["low_gbs"])
            else:
                self.assertAlmostEqual(ratio, 1, delta=0.05, msg=link)
        text = command_line.said("summary", run.recording)
        self.assertRegex(text, r"all_reduce +12 .* to .* ranks 1, 3, 5, 7\n")
        page = pathlib.Path(self.folder) / "links.html"
        command_line.said("report", run.recording, "-o", page)
        slowest = links[0]
        self.assertIn(f"<td>ranks {', '.join(map(str, slowest['ranks']))}<td>{slowest['op']}<td class=n>{slowest['count']}<td",
                      page.read_text(encoding="utf-8"))
        few = Run(self.folder, "few", machine(self.folder, 2), zero, ranks=8, steps=4, more=("--slow-link", "5:4"))
        for link in few.summary["links"]:
            self.assertEqual((link["low_gbs"], link["no_interval"]), (None, "3 steps with a transfer, 8 are needed"))
        self.assertEqual(Run(self.folder, "one", machine(self.folder, 2), {"stage": 2}, steps=3).summary["links"], [])

    def test_communication_that_has_nothing_to_hide_behind(self):
        run = Run(self.folder, "exposed", machine(self.folder, 0.5), {"stage": 2, "overlap_comm": True, "reduce_bucket_size": 200_000})
        found = run.by_id["exposed_communication"]
        exposed = sum(rank["time_ms"]["exposed_comm"] for rank in run.summary["ranks"])
        self.assertAlmostEqual(found["cost_ms"], exposed / len(run.summary["ranks"]) / run.summary["steps_measured"], delta=0.05)
        self.assertEqual(found["changes"], [])

    def test_a_host_that_launches_slowly(self):
        """What the device waits for its host is what the step gets shorter by with a host that takes no time, and a larger
        micro-batch, as advised, loses less of it for each sample."""
        runs = {}
        for launch_us, batch in ((0, 4), (2, 4), (200, 4), (200, 16)):
            hardware = json.loads(machine(self.folder, 50, tflops=2).read_text())
            path = pathlib.Path(self.folder) / f"launch-{launch_us}.json"
            path.write_text(json.dumps({**hardware, "launch_us": launch_us}))
            runs[launch_us, batch] = Run(self.folder, f"launch-{launch_us}-{batch}", path, {"stage": 2, "overlap_comm": True},
                                         root={"train_micro_batch_size_per_gpu": batch})
        self.assertNotIn("host_bound", runs[0, 4].by_id)
        self.assertNotIn("host_bound", runs[2, 4].by_id)
        slow = runs[200, 4]
        found = slow.by_id["host_bound"]
        self.assertEqual(found["severity"], "warning")
        self.assertAlmostEqual(found["cost_ms"], slow.step_ms - runs[0, 4].step_ms, delta=0.05 * found["cost_ms"])
        self.assertIn("The run is simulated: its host takes launch_us", found["evidence"])
        self.assertLess(runs[200, 16].step_ms / 16, 0.75 * slow.step_ms / 4)

    def test_late_prefetches_follow_from_what_is_exposed(self):
        run = Run(self.folder, "late", machine(self.folder, 0.5),
                  {"stage": 3, "overlap_comm": True, "reduce_bucket_size": 200_000, "stage3_prefetch_bucket_size": 200_000,
                   "stage3_param_persistence_threshold": 0})
        seen = run.summary["prefetch"]
        count = sum(seen[fate] for fate in ("early", "just_in_time", "late", "mistargeted", "unused"))
        self.assertIn(f"{seen['late']} of {count} prefetches of all ranks come too late",
                      run.by_id["exposed_communication"]["explains"])

    def test_all_reduced_gradients(self):
        run = Run(self.folder, "volume", machine(self.folder, 20),
                  {"stage": 2, "overlap_comm": True, "reduce_bucket_size": 200_000, "reduce_scatter": False}, ranks=4)
        found = run.by_id["volume_above"]
        self.assertEqual([change["key"] for change in found["changes"]], ["zero_optimization.reduce_scatter"])
        after = run.followed("volume_above")
        less = run.summary["comm"]["elements_per_step"] - after.summary["comm"]["elements_per_step"]
        self.assertAlmostEqual(found["cost_bytes"], 4 * less, delta=0.001 * found["cost_bytes"])
        self.assertLessEqual(after.step_ms, run.step_ms)
        self.assertNotIn("volume_above", after.by_id)

    def test_states_beyond_their_expression(self):
        """ZenFlow holds states of chosen columns a second time: the excess is named, part by part, and costs what was measured."""
        zero = {"stage": 2, "overlap_comm": True, "offload_optimizer": {"device": "cpu"},
                "zenflow": {"topk_ratio": 0.1, "update_interval": 2, "select_strategy": "step", "select_interval": 4}}
        run = Run(self.folder, "states", machine(self.folder, 20), zero, ranks=4, steps=4, root={"bf16": {"enabled": True}})
        model = run.summary["memory_model"]
        found = run.by_id["memory_excess"]
        self.assertEqual(found["cost_bytes"], model["measured_bytes_per_rank"] - model["bytes_per_rank"])
        self.assertGreater(found["cost_bytes"], 0.05 * model["bytes_per_rank"])
        for part in model["parts"]:
            self.assertIn(part["cause"], found["evidence"])
        self.assertEqual(sum(part["bytes"] for part in model["parts"]) + (model["unexplained_bytes"] or 0), found["cost_bytes"])
        self.assertNotIn("memory_excess", Run(self.folder, "plain", machine(self.folder, 20), {"stage": 2, "overlap_comm": True}, ranks=4,
                                              steps=4).by_id)

    def test_who_waits_for_a_straggler_does_not_wait_in_turns(self):
        recording, hardware = pathlib.Path(self.folder) / "late.zscope", pathlib.Path(self.folder) / "late.json"
        # An H100 that is as fast at products as small as this model's.
        hardware.write_text(json.dumps({**json.loads((ROOT / "assets/hardware/h100.json").read_text()), "processors": 0,
                                        "matrix_half_depth": 0, "overlap_slowdown": 0}))
        command_line.said("simulate", "--model", "gpt-mini", "--config", ROOT / "samples/stage2.json", "--ranks", 4, "--steps", 6,
                          "--hardware", hardware, "--straggler", "1:1.5", "-o", recording)
        found = {finding["id"]: finding for finding in read("findings", recording)}
        self.assertEqual(found["straggler"]["rank"], 1)
        # What is exposed beside the straggler's cost is less than a finding of its own needs.
        self.assertNotIn("exposed_communication", found)

    def test_what_others_waited_is_said_by_pair_and_piece_by_piece(self):
        """On a straggler's run each of the others waits for it, and the path's longest piece is computation of a module."""
        run = Run(self.folder, "pairs", machine(self.folder, 50), {"stage": 2, "overlap_comm": True, "reduce_bucket_size": 100_000},
                  ranks=4, more=("--straggler", "1:1.3"))
        pairs = run.summary["waited_for"]
        self.assertTrue(run.summary["waited_for_whole"])
        for rank in run.summary["ranks"]:
            self.assertAlmostEqual(sum(one["ms"] for one in pairs if one["late"] == rank["rank"]), rank["others_waited_ms"], places=4)
        self.assertEqual({one["waiter"] for one in pairs if one["late"] == 1}, {0, 2, 3})
        text = command_line.said("summary", run.recording)
        rows = text[text.index("\nby pair ") + 1:].split("\n")[2:6]
        waited = {(one["waiter"], one["late"]): one["ms"] for one in pairs}
        for row in rows:
            waiter = int(row[:14])
            for late in range(4):
                cell = row[14 + 10 * late:24 + 10 * late].strip()  # of its own none
                self.assertAlmostEqual(float(cell) if cell not in ("", "-") else 0, waited.get((waiter, late), 0), delta=0.051)
        longest = run.summary["critical_path"]["longest"]
        self.assertEqual([one["ms"] for one in longest], sorted((one["ms"] for one in longest), reverse=True))
        command_line.said("export", "--format", "csv", "-o", pathlib.Path(self.folder) / "pairs-csv", run.recording)
        with open(pathlib.Path(self.folder) / "pairs-csv/modules.csv", encoding="utf-8", newline="") as file:
            modules = {row["path"] for row in csv.DictReader(file)}
        named = next(one for one in longest if one["part"] == "backward")
        self.assertTrue(named["label"], longest)
        self.assertIn(named["rank"], range(4))
        self.assertIn(f"({named['label']})", text)
        self.assertIn(named["label"], modules)


class Trained(command_line.CommandTest):
    """On the CPU, with the causes that only gradients have."""

    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = pathlib.Path(kept.name)

    def run_of(self, name, settings, steps=30, sets=(), model="mlp", ends=0):
        """Its findings by id and its summary; `ends`: the code with which it ends."""
        config, recording = self.folder / f"{name}.json", self.folder / f"{name}.zscope"
        config.write_text(json.dumps({"train_micro_batch_size_per_gpu": 2, "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}},
                                      "zero_optimization": {"stage": 2}, **settings}))
        result = command_line.shardscope("run", "--no-view", "--config", config, "--ranks", 2, "--model", model, "--data", "golden:mlp",
                                         "--steps", steps, "--record", recording, "--overwrite",
                                         *[part for one in sets for part in ("--set", one)])
        self.assertEqual(result.returncode, ends, result.stderr)
        return {one["id"]: one for one in read("findings", recording)}, read("summary", recording)

    def followed(self, name, settings, finding, found, **more):
        sets = [f"{change['key']}={change['value']}" for change in found[finding]["changes"]]
        self.assertTrue(sets, found[finding])
        self.assertIsNone(found[finding]["gain_ms"])
        self.assertIn("what-if replays times and sizes, not gradient values", found[finding]["gain_basis"])
        return self.run_of(f"{name}-followed", settings, sets=sets, **more)

    def skipped(self, found):
        return int(found["overflow"]["title"].split()[0]) if "overflow" in found else 0

    def test_a_fixed_scale_that_overflows(self):
        settings = {"fp16": {"enabled": True, "loss_scale": 2.0**32}}
        found, _ = self.run_of("fixed", settings)
        self.assertEqual(self.skipped(found), 30)
        self.assertGreater(found["overflow"]["cost_once_ms"], 0)
        # From 2^16 the scale falls to where this model's gradients fit: the skips are those of the way there.
        after, _ = self.followed("fixed", settings, "overflow", found)
        self.assertLess(self.skipped(after), 10)

    def test_a_scale_that_is_raised_into_overflows(self):
        settings = {"fp16": {"enabled": True, "initial_scale_power": 16, "loss_scale_window": 2, "hysteresis": 1}}
        found, _ = self.run_of("window", settings, steps=60)
        self.assertIn("falls and rises again", found["loss_scale_floor"]["title"])
        after, _ = self.followed("window", settings, "loss_scale_floor", found, steps=60)
        self.assertLess(self.skipped(after), self.skipped(found))

    def test_a_scale_at_its_least(self):
        """The run ends there. Where the least is above 1 a smaller one helps; at 1 nothing of the scale does."""
        settings = {"fp16": {"enabled": True, "initial_scale_power": 32, "min_loss_scale": 2**32}}
        found, _ = self.run_of("least", settings, ends=1)
        self.assertIn("4.295e+09", found["loss_scale_floor"]["title"])
        self.assertNotIn("hysteresis", found["overflow"]["evidence"])
        after, _ = self.followed("least", settings, "loss_scale_floor", found, steps=60)
        self.assertNotIn("loss_scale_floor", after)
        self.assertLess(self.skipped(after), 60)
        diverged, _ = self.run_of("one", {"fp16": {"enabled": True, "initial_scale_power": 3},
                                          "optimizer": {"type": "AdamW", "params": {"lr": 1e4}}}, ends=1)
        self.assertEqual(diverged["loss_scale_floor"]["changes"], [])
        self.assertIn("Even unscaled gradients overflow", diverged["loss_scale_floor"]["evidence"])

    def test_a_training_that_diverges(self):
        """Under a schedule, whose rate is the one in effect."""
        params = {"warmup_min_lr": 0.0, "warmup_max_lr": 1.0, "warmup_num_steps": 60, "warmup_type": "linear"}
        settings = {"scheduler": {"type": "WarmupLR", "params": params}}
        found, before = self.run_of("diverges", settings, steps=60)
        self.assertIn({"key": "scheduler.params.warmup_max_lr", "value": "0.1"}, found["divergence"]["changes"])
        self.assertNotIn("optimizer.params.lr", [change["key"] for change in found["divergence"]["changes"]])
        _, after = self.followed("diverges", settings, "divergence", found, steps=60)
        last = lambda summary: max(loss for loss in summary["loss"][-10:] if loss is not None)  # noqa: E731
        self.assertLess(last(after), last(before) / 10)

    def test_a_training_that_diverges_by_its_own_rate(self):
        """Without a schedule or clipping, and with an update that is proportional to clipped gradients (a large eps): lowering the
        rate and clipping help each alone, and both together."""
        settings = {"optimizer": {"type": "AdamW", "params": {"lr": 0.1, "eps": 1.0}}, "gradient_clipping": 0}
        found, before = self.run_of("rate", settings, steps=40)
        advised = [(change["key"], change["value"]) for change in found["divergence"]["changes"]]
        self.assertEqual(advised, [("optimizer.params.lr", "0.01"), ("gradient_clipping", "1.0")])
        last = lambda summary: max(summary["loss"][-8:])  # noqa: E731
        self.assertGreater(last(before), 10 * before["loss"][0])
        self.assertIn(f"began at {before['loss'][0]:.4g}", found["divergence"]["evidence"])
        for index, (key, value) in enumerate(advised):
            alone, after = self.run_of(f"rate-{index}", settings, steps=40, sets=(f"{key}={value}",))
            self.assertNotIn("divergence", alone, key)
            self.assertLess(last(after), after["loss"][0], key)
        both, after = self.followed("rate", settings, "divergence", found, steps=40)
        self.assertNotIn("divergence", both)
        self.assertLess(last(after), after["loss"][0])

    def test_gradients_that_are_clipped_are_not_to_be_clipped(self):
        """Adam's update does not get smaller with its gradients: a rate of 0.1 explodes whatever they are clipped to."""
        found, _ = self.run_of("clipped", {"optimizer": {"type": "AdamW", "params": {"lr": 0.1}}}, steps=40)
        self.assertEqual([change["key"] for change in found["divergence"]["changes"]], ["optimizer.params.lr"])
        self.assertNotIn("divergence", self.followed("clipped", {"optimizer": {"type": "AdamW", "params": {"lr": 0.1}}}, "divergence",
                                                     found, steps=40)[0])

    def test_a_trace_that_breaks(self):
        """A block that one step skips: found with its cost, and followed by what was prefetched in vain."""
        found, summary = self.run_of("visit", {"zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 20_000,
                                                                     "stage3_param_persistence_threshold": 0}},
                                     model=ROOT / "samples/models/mlp_visit.json")
        self.assertIn(summary["trace"]["first_invalidation"]["text"], found["trace_invalidated"]["evidence"])
        self.assertIsNotNone(found["trace_invalidated"]["cost_once_ms"])
        self.assertGreaterEqual(found["trace_invalidated"]["cost_once_ms"], 0)

    def test_the_module_that_chooses_as_a_leaf_keeps_the_trace(self):
        """The one named, not the block that is skipped. Losses stay, and no prefetch is in vain."""
        settings = {"zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 20_000, "stage3_param_persistence_threshold": 0}}
        model = ROOT / "samples/models/mlp_visit.json"
        found, before = self.run_of("choice", settings, steps=12, model=model)
        broken = found["trace_invalidated"]
        self.assertIn("the root (class MLPVisit), a leaf module", broken["next_step"])
        self.assertGreater(before["prefetch"]["mistargeted"], 0)
        leaf = "zero_optimization.leaf_module."
        after_found, after = self.run_of("chooser", settings, steps=12, model=model, sets=(leaf + 'classes=["MLPVisit"]',))
        self.assertNotIn("trace_invalidated", after_found)
        self.assertNotIn("unused_prefetch", after_found)
        self.assertEqual((after["trace"]["invalidated"], after["prefetch"]["mistargeted"] + after["prefetch"]["unused"]), (0, 0))
        self.assertEqual(after["loss"], before["loss"])
        self.assertLessEqual(after["comm"]["elements_per_step"], before["comm"]["elements_per_step"])
        # Its price, which the finding names: all of the model is gathered at once.
        whole = 4 * before["run"]["params"]
        more = max(rank["memory"]["device"]["peak_bytes"] for rank in after["ranks"]) \
            - max(rank["memory"]["device"]["peak_bytes"] for rank in before["ranks"])
        self.assertLessEqual(more, whole)
        self.assertIn("MLPVisit", self.run_of("chosen", settings, steps=12, model=model, sets=(leaf + 'names=["blk.1"]',))[0]
                      ["trace_invalidated"]["next_step"])


if __name__ == "__main__":
    command_line.main()
