"""Causes that a run provokes, simulated or really trained, each named by `findings`; where a setting answers it, the advice is
followed and nothing gets worse. The causes that sizes of buckets and prefetches have: findings_test.py."""
import json
import pathlib
import tempfile
import unittest

import command_line
from command_line import ROOT
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
        # Both groups that rank 5 is in are slow; the one that costs more is reported.
        self.assertRegex(found["title"], "between rank 4 and rank 5 is slow|of the group of ranks 1, 3, 5, 7 is slow")
        self.assertEqual(found["severity"], "warning")
        self.assertEqual(found["changes"], [])
        self.assertLess(found["cost_ms"], 1.05 * (slow.step_ms - well.step_ms))
        self.assertNotIn("straggler", slow.by_id)

    def test_communication_that_has_nothing_to_hide_behind(self):
        run = Run(self.folder, "exposed", machine(self.folder, 0.5), {"stage": 2, "overlap_comm": True, "reduce_bucket_size": 200_000})
        found = run.by_id["exposed_communication"]
        exposed = sum(rank["time_ms"]["exposed_comm"] for rank in run.summary["ranks"])
        self.assertAlmostEqual(found["cost_ms"], exposed / len(run.summary["ranks"]) / run.summary["steps_measured"], delta=0.05)
        self.assertEqual(found["changes"], [])

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


if __name__ == "__main__":
    command_line.main()
