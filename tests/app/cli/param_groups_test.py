"""Runs with parameter groups: what the recording says of them, that every byte and element is explained, and checkpoints
that continue under other groups."""
import json
import pathlib
import sqlite3
import tempfile

from command_line import CommandTest, main, read, said, shardscope, summary_of_run

GROUPS = [{"name": "no_decay", "max_dims": 1, "weight_decay": 0, "lr": 2e-3}, {"name": "decay", "weight_decay": 0.1}]


class ParamGroups(CommandTest):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.folder = pathlib.Path(self.scratch.name)

    def run_of(self, name, groups, *more, ranks=2, model="gpt-mini", kind="bf16", **zero):
        data = "golden:gpt" if model.startswith("gpt") else "golden:mlp"
        config = {"train_micro_batch_size_per_gpu": 2, "zero_optimization": zero, "bf16": {"enabled": kind == "bf16"},
                  "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "weight_decay": 0.01}}}
        if groups:
            config["shardscope"] = {"param_groups": groups}
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(config))
        return ["--config", path, "--ranks", ranks, "--model", model, "--data", data, *more]

    def test_everything_is_explained_at_every_stage(self):
        for zero in ({"stage": 0}, {"stage": 1}, {"stage": 1, "legacy_stage1": True, "max_elements_per_comm": 50000},
                     {"stage": 2}, {"stage": 2, "offload_optimizer": {"device": "cpu"}},
                     {"stage": 3, "sub_group_size": 100000}):
            with self.subTest(zero=zero):
                recording = self.folder / "run.zscope"
                summary = summary_of_run(recording, *self.run_of("run", GROUPS, "--steps", 2, ranks=3, **zero))
                memory = summary["memory_model"]
                for pool in (memory, *memory["offloaded"].values()):
                    self.assertEqual(pool["unexplained_bytes"], 0)
                self.assertAlmostEqual(summary["comm"]["unexplained_elements_per_step"], 0, places=3)
                first, second = summary["run"]["param_groups"]
                self.assertEqual((first["name"], first["weight_decay"], first["lr"]), ("no_decay", 0, 2e-3))
                self.assertEqual((second["name"], second["weight_decay"], second["lr"]), ("decay", 0.1, 1e-3))
                self.assertEqual(first["elems"] + second["elems"], summary["run"]["params"])
                if zero["stage"] in (1, 2) and "legacy_stage1" not in zero:
                    for group in (first, second):
                        self.assertEqual(group["padding_elems"], -group["elems"] % 6)
                with sqlite3.connect(recording) as sql:
                    shapes = dict(sql.execute("SELECT id, shape FROM params"))
                    rows = sql.execute("SELECT name, weight_decay, params FROM param_groups ORDER BY id").fetchall()
                self.assertEqual([row[:2] for row in rows], [("no_decay", 0.0), ("decay", 0.1)])
                for group, (_, _, params) in zip((first, second), rows, strict=True):
                    self.assertEqual(json.loads(params), group["params"])
                self.assertTrue(all(len(json.loads(shapes[param])) == 1 for param in first["params"]))
                self.assertTrue(all(len(json.loads(shapes[param])) > 1 for param in second["params"]))
                self.assertIn(f"no_decay: {len(first['params'])} parameters, {first['elems']} elements", said("summary", recording))

    def test_a_run_without_groups_has_none(self):
        recording = self.folder / "run.zscope"
        summary = summary_of_run(recording, *self.run_of("run", None, "--steps", 1, stage=2))
        self.assertEqual(summary["run"]["param_groups"], [])
        with sqlite3.connect(recording) as sql:
            self.assertEqual(sql.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'param_groups'").fetchone(), (0,))

    def test_a_checkpoint_continues_under_other_groups(self):
        """Groups that all have the optimizer's settings divide the same training otherwise."""
        alike = [{"name": "biases", "params": ["*.bias"]}, {"name": "rest"}]
        saved = self.folder / "saved"
        whole = summary_of_run(self.folder / "whole.zscope", *self.run_of("whole", None, "--steps", 6, model="mlp", kind="fp32", stage=3))
        summary_of_run(self.folder / "head.zscope", *self.run_of("head", alike, "--steps", 3, "--checkpoint", saved, model="mlp", kind="fp32", stage=2))
        for name, groups, zero in (("none", None, {"stage": 1}), ("other", alike[::-1][:1], {"stage": 3}),
                                   ("same", alike, {"stage": 0})):
            tail = summary_of_run(self.folder / f"{name}.zscope",
                                  *self.run_of(name, groups, "--steps", 6, "--resume", saved, model="mlp", kind="fp32", **zero))
            self.assertEqual(tail["loss"], whole["loss"][3:], name)

    def test_a_simulation_has_them_on_every_rank(self):
        recording = self.folder / "simulated.zscope"
        arguments = self.run_of("simulated", GROUPS, "--steps", 2, ranks=4, stage=2)
        said("simulate", *arguments[:arguments.index("--data")], "--steps", 2, "--record", recording)
        summary = read("summary", recording)
        self.assertEqual((summary["lost_messages"], summary["dropped"]), (0, 0))
        self.assertEqual([group["name"] for group in summary["run"]["param_groups"]], ["no_decay", "decay"])

    def test_rules_that_do_not_fit_the_model_are_refused(self):
        for groups, words in (([{"name": "decay", "min_dims": 2}], ("no group takes parameter", "ln_1.weight", "add a last group")),
                              ([{}, {"name": "late", "params": ["*"]}], ("param_groups[1] (late) takes no trained parameter",)),
                              ([{"params": ["*"], "weight_decy": 1}], ("weight_decy", "weight_decay"))):
            result = shardscope("run", *self.run_of("bad", groups, "--steps", 1, stage=2))
            self.assertNotEqual(result.returncode, 0)
            for word in words:
                self.assertIn(word, result.stderr)


if __name__ == "__main__":
    main()
