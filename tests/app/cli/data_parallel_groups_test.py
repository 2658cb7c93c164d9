"""Runs whose ranks train copies of the model in data-parallel groups: each as a run of its group alone, and everything that
is said of them by the group's size."""
import json
import pathlib
import tempfile

from command_line import CommandTest, main, said, shardscope, summary_of_run

GROUPS = [[0, 2], [1, 3]]


class DataParallelGroups(CommandTest):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.folder = pathlib.Path(self.scratch.name)

    def run_of(self, name, groups, *more, ranks=4, **zero):
        config = {"train_micro_batch_size_per_gpu": 2, "zero_optimization": zero,
                  "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}}
        if groups:
            config["shardscope"] = {"data_parallel_groups": groups}
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(config))
        return ["--config", path, "--ranks", ranks, "--model", "gpt-mini", "--data", "golden:gpt", *more]

    def test_a_copy_is_trained_and_explained_as_a_run_of_its_ranks(self):
        for zero in ({"stage": 0}, {"stage": 1}, {"stage": 2}, {"stage": 3, "stage3_param_persistence_threshold": 0}):
            with self.subTest(zero=zero):
                recording = self.folder / "run.zscope"
                summary = summary_of_run(recording, *self.run_of("run", GROUPS, "--steps", 3, **zero))
                alone = summary_of_run(self.folder / "alone.zscope", *self.run_of("alone", None, "--steps", 3, ranks=2, **zero))
                self.assertEqual((summary["run"]["world"], summary["run"]["data_parallel_ranks"]), (4, 2))
                self.assertEqual((alone["run"]["world"], alone["run"]["data_parallel_ranks"]), (2, 2))
                self.assertEqual(summary["loss"], alone["loss"])
                self.assertEqual(len(summary["ranks"]), 4)
                memory, one = summary["memory_model"], alone["memory_model"]
                self.assertEqual(memory["unexplained_bytes"], 0)
                self.assertEqual(memory["measured_bytes_per_rank"], one["measured_bytes_per_rank"])
                self.assertEqual(memory["expression"], one["expression"])
                self.assertAlmostEqual(summary["comm"]["unexplained_elements_per_step"], 0, places=3)
                self.assertEqual(summary["comm"]["elements_per_step"], alone["comm"]["elements_per_step"])
                self.assertEqual((summary["dropped"], summary["unmatched_ends"]["count"]), (0, 0))
                self.assertIn("4 ranks in data-parallel groups of 2", said("summary", recording))

    def test_a_checkpoint_continues_in_other_groups(self):
        saved = self.folder / "saved"
        whole = summary_of_run(self.folder / "whole.zscope", *self.run_of("whole", None, "--steps", 4, ranks=2, stage=3))
        summary_of_run(self.folder / "head.zscope", *self.run_of("head", GROUPS, "--steps", 2, "--checkpoint", saved, stage=3))
        tail = summary_of_run(self.folder / "tail.zscope",
                              *self.run_of("tail", [[0, 1], [2, 3]], "--steps", 4, "--resume", saved, stage=2))
        self.assertEqual(tail["loss"], whole["loss"][2:])

    def test_what_cannot_be_is_refused_with_its_reason(self):
        for groups, words in (([[0, 1]], ("data_parallel_groups", "rank 2 is in no group")),
                              ([[0, 1], [2, 3, 4]], ("groups are of one size",)), ({"0": 1}, ("no list",))):
            result = shardscope("run", *self.run_of("bad", groups, "--steps", 1, stage=2))
            self.assertNotEqual(result.returncode, 0)
            for word in words:
                self.assertIn(word, result.stderr)
        arguments = self.run_of("run", GROUPS, stage=2)
        result = shardscope("simulate", *arguments[:arguments.index("--data")], "--record", self.folder / "simulated.zscope")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("one copy of the model", result.stderr)


if __name__ == "__main__":
    main()
