"""Micro-batches of changing size, from the command line: what is trained, recorded, simulated and refused."""
import json
import math
import pathlib
import sqlite3
import tempfile

from command_line import ROOT, CommandTest, main, read, said, shardscope, summary_of_run, train

SHAPES = [[4, 12], [1, 5], [3, 9], [2, 1], [4, 7]]
IN_TURN = ("--set", f'shardscope.micro_batches={{"shapes":{json.dumps(SHAPES)}}}')


def tokens_of(step, ranks):
    return sum(math.prod(SHAPES[(step + rank) % len(SHAPES)]) for rank in range(ranks))


class MicroBatches(CommandTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def text(self):
        path = self.folder / "stories.txt"
        path.write_text("\n\n".join("once upon a time " * (1 + i * 5 % 9) + "it ended." for i in range(200)))
        return path

    def steps_of(self, recording):
        with sqlite3.connect(recording) as database:
            return [tokens for tokens, in database.execute("SELECT tokens FROM steps ORDER BY step")]

    def test_shapes_take_turns_and_every_stage_trains_the_same(self):
        losses = []
        for stage in (0, 3):
            recording, summary = train(self.folder, f"stage{stage}", stage, 2, *IN_TURN, model=ROOT / "samples/models/gpt.json",
                                       data="golden:gpt")
            losses.append(summary["loss"])
            self.assertEqual(self.steps_of(recording), [tokens_of(step, 2) for step in range(6)])
            sizes = summary["micro_batches"]
            self.assertEqual((sizes["count"], sizes["padding"], sizes["samples"], sizes["length"]), (12, 0, [1, 4], [1, 12]))
            self.assertEqual(sizes["tokens"], sum(self.steps_of(recording)))
            most = sum(max(math.prod(SHAPES[(step + rank) % 5]) for rank in range(2)) for step in range(6))
            self.assertAlmostEqual(sizes["uneven_pct"], 100 * (1 - sizes["tokens"] / 2 / most), places=6)
            self.assertEqual([rank["micro_batches"]["count"] for rank in summary["ranks"]], [6, 6])
            self.assertIn("1 to 4 samples of 1 to 12 tokens, 0.0 % padding; uneven over ranks by", said("summary", recording))
        self.assertEqual(*losses)
        self.assertEqual(summary["trace"]["invalidated"], 0)

    def test_documents_are_padded_or_packed(self):
        def run(packing, *more):
            return summary_of_run(self.folder / f"{packing}.zscope", "--config", ROOT / "samples/stage3.json", "--ranks", 2,
                                  "--model", "gpt-mini", "--data", self.text(), "--steps", 3, "--set",
                                  f"shardscope.micro_batches.packing={packing}", *more)

        padded, packed = run("padded"), run("packed")
        self.assertGreater(padded["micro_batches"]["padding_pct"], 5)
        self.assertLess(packed["micro_batches"]["padding_pct"], padded["micro_batches"]["padding_pct"])
        self.assertLessEqual(packed["micro_batches"]["length"][1], 128)
        eights = run("padded", "--set", "shardscope.micro_batches.pad_to_multiple_of=8")["micro_batches"]
        self.assertEqual([length % 8 for length in eights["length"]], [0, 0])
        self.assertEqual(eights["tokens"], padded["micro_batches"]["tokens"])
        with sqlite3.connect(self.folder / "padded.zscope") as database:
            messages = " ".join(text for text, in database.execute("SELECT text FROM messages"))
        self.assertRegex(messages, r"200 documents as 2\d\d samples of 1 to 128 tokens")

    def test_a_run_continues_with_the_shape_whose_turn_it_is(self):
        checkpoints = self.folder / "checkpoints"

        def run(steps, *more):
            said("run", "--config", ROOT / "samples/stage2.json", "--ranks", 2, "--no-view", "--model",
                 ROOT / "samples/models/gpt.json", "--data", "golden:gpt", "--steps", steps, "--record", self.folder / "run.zscope",
                 "--overwrite", *IN_TURN, *more)
            return read("summary", self.folder / "run.zscope"), self.steps_of(self.folder / "run.zscope")

        whole, tokens = run(7)
        run(3, "--checkpoint", checkpoints)
        rest, tokens_of_rest = run(7, "--resume", checkpoints)
        self.assertEqual(rest["loss"], whole["loss"][3:])
        self.assertEqual(tokens_of_rest, tokens[3:])

    def test_simulations_play_shapes_and_what_if_plays_means(self):
        out = self.folder / "simulated.zscope"
        said("simulate", "--config", ROOT / "samples/stage3.json", "--model", ROOT / "samples/models/gpt.json", "--ranks", 3,
             "--steps", 4, "-o", out, *IN_TURN)
        self.assertEqual(self.steps_of(out), [tokens_of(step, 3) for step in range(4)])
        recording = self.folder / "padded.zscope"
        summary_of_run(recording, "--config", ROOT / "samples/stage3.json", "--ranks", 2, "--model", "gpt-mini", "--data",
                       self.text(), "--steps", 4, "--set", "shardscope.micro_batches.packing=padded")
        result = shardscope("what-if", recording, "--json", "--set", "zero_optimization.overlap_comm=false")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, r"recorded were 2 samples of \d+ to 128 tokens; both runs are played with their mean length, \d+")
        larger = shardscope("what-if", recording, "--json", "--set", "train_micro_batch_size_per_gpu=8")
        self.assertGreater(json.loads(larger.stdout)["predicted_change_pct"], 50)
        self.assertIn("how long documents are is not in a recording",
                      self.refused(["what-if", recording, "--set", "shardscope.micro_batches.packing=packed"]))

    def test_what_cannot_be_is_refused(self):
        def refused(*options):
            return self.refused(["run", "--config", ROOT / "samples/stage0.json", "--ranks", 1, "--steps", 2, *options])

        gpt = ("--model", ROOT / "samples/models/gpt.json", "--data", "golden:gpt")
        self.assertIn("shapes[0]: samples of 13 tokens do not fit the context of 12",
                      refused(*gpt, "--set", "shardscope.micro_batches.shapes=[[1,13]]"))
        self.assertIn("golden:gpt has no documents", refused(*gpt, "--set", "shardscope.micro_batches.packing=padded"))
        self.assertIn("reads vectors, not documents",
                      refused("--model", "mlp", "--set", "shardscope.micro_batches.packing=packed"))
        self.assertIn("give [samples, tokens of each]", refused(*gpt, "--set", "shardscope.micro_batches.shapes=[[1]]"))


if __name__ == "__main__":
    main()
