"""Runs that evaluate between steps: what the recording says of it, and that training is the same without."""
import csv
import pathlib
import sqlite3
import tempfile
import unittest

from command_line import ROOT, CommandTest, main, said, shardscope, summary_of_run, train

EVERY = ("--set", "shardscope.eval_interval=2", "--set", "shardscope.eval_batches=3")


class Evaluation(CommandTest):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def test_recording_has_the_held_out_loss_and_training_is_the_same(self):
        for stage in (1, 3):
            with self.subTest(stage=stage):
                _, without = train(self.folder.name, "without", stage, 2, steps=7)
                recording, evaluated = train(self.folder.name, "with", stage, 2, *EVERY, "--eval-data", "golden:mlp", steps=7)
                self.assertEqual(evaluated["loss"], without["loss"])
                self.assertEqual(evaluated["grad_norm"], without["grad_norm"])
                held_out = evaluated["eval_loss"]
                self.assertEqual([value is not None for value in held_out], [False, True, False, True, False, True, False])
                self.assertLess(held_out[5], held_out[1])
                self.assertEqual(without["eval_loss"], [None] * 7)
                for rank in evaluated["ranks"]:
                    self.assertEqual(rank["evaluations"]["count"], 3)
                    self.assertGreater(rank["evaluations"]["ms"], 0)
                    parts = rank["time_ms"]
                    self.assertAlmostEqual(sum(parts[part] for part in parts if part != "total"), parts["total"], places=3)
                # What evaluations gathered is in no step.
                self.assertEqual(evaluated["comm"]["elements_per_step"], without["comm"]["elements_per_step"])
                self.assertEqual(evaluated["comm"]["extras"], without["comm"]["extras"])
                self.assertAlmostEqual(evaluated["comm"]["unexplained_elements_per_step"], 0, places=3)
                self.assertEqual(evaluated["unmatched_ends"]["count"], 0)
                if stage == 3:
                    self.assertEqual(evaluated["trace"], without["trace"])
                    self.assertEqual(evaluated["trace"]["invalidated"], 0)
                    self.assertEqual(evaluated["eval_trace"], {"record": 2, "complete": 2 * (3 * 3 - 1)})
                    self.assertEqual([rank["fetch_counters"] for rank in evaluated["ranks"]],
                                     [rank["fetch_counters"] for rank in without["ranks"]])
                else:
                    self.assertIsNone(evaluated["eval_trace"])
                text = said("summary", recording)
                self.assertRegex(text, rf"held-out loss  {held_out[1]:.4f} -> {held_out[5]:.4f}\n")
                self.assertIn("evaluations    3 in ", text)

    def test_tables_of_steps_have_it(self):
        recording, evaluated = train(self.folder.name, "run", 3, 1, *EVERY, "--eval-data", "golden:mlp", steps=4)
        tables = pathlib.Path(self.folder.name) / "csv"
        said("export", recording, "--format", "csv", "-o", tables)
        with open(tables / "steps.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        for row, value in zip(rows, evaluated["eval_loss"], strict=True):
            if value is None:
                self.assertEqual(row["eval_loss"], "")
            else:
                self.assertAlmostEqual(float(row["eval_loss"]), value, places=6)

    def test_the_end_of_the_data_is_held_out(self):
        recording = pathlib.Path(self.folder.name) / "run.zscope"
        summary = summary_of_run(recording, "--config", ROOT / "samples/stage0.json", "--ranks", 1, "--model", "mlp", "--steps", 2,
                                 *EVERY)
        with sqlite3.connect(recording) as database:
            messages = " ".join(text for text, in database.execute("SELECT text FROM messages"))
        self.assertIn("3687 to train on", messages)
        self.assertIn("409 held out for evaluation", messages)
        self.assertIsNotNone(summary["eval_loss"][1])

    def test_what_cannot_be_evaluated_is_refused(self):
        def refused(*options):
            return self.refused(["run", "--config", ROOT / "samples/stage0.json", "--ranks", 1, "--model", "mlp", "--steps", 2,
                                 *options])

        self.assertIn("nothing evaluates on it; set shardscope.eval_interval",
                      refused("--data", "golden:mlp", "--eval-data", "golden:mlp"))
        self.assertIn("no end of which a part could be held out", refused("--data", "golden:mlp", *EVERY))
        self.assertIn("--eval-data nowhere: no such file", refused("--data", "golden:mlp", *EVERY, "--eval-data", "nowhere"))
        self.assertIn("raise shardscope.eval_fraction", refused(*EVERY, "--set", "shardscope.eval_fraction=0.0001",
                                                                "--set", "train_micro_batch_size_per_gpu=2"))
        for value in ("0", "1", "-0.5"):
            self.assertIn("eval_fraction", refused(*EVERY, "--set", f"shardscope.eval_fraction={value}"))

    def test_resume_keeps_what_was_held_out(self):
        checkpoints = pathlib.Path(self.folder.name) / "checkpoints"

        def run(steps, *more):
            return shardscope("run", "--config", ROOT / "samples/stage3.json", "--ranks", 2, "--model", "mlp", "--steps", steps,
                              "--checkpoint", checkpoints, *EVERY, *more)

        self.assertEqual(run(2).returncode, 0)
        other = run(4, "--resume", checkpoints, "--set", "shardscope.eval_fraction=0.3")
        self.assertNotEqual(other.returncode, 0)
        self.assertIn("was written with other data", other.stderr)
        self.assertEqual(run(4, "--resume", checkpoints).returncode, 0)


if __name__ == "__main__":
    main()
