#!/usr/bin/env python3
"""Checkpoints as a user makes, resumes and consolidates them: real ranks, real files.

Usage: checkpoints_test.py BIN_FOLDER SOURCE_ROOT [unittest arguments]
"""
import pathlib
import shutil
import tempfile

from command_line import ROOT, CommandTest, main, shardscope, train


class Checkpoints(CommandTest):
    """--checkpoint, --resume and consolidate: what they leave, what they refuse."""

    @classmethod
    def setUpClass(cls):
        cls._folder = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls._folder.name)
        cls.saved = cls.folder / "saved"
        cls.whole = cls.folder / "whole.safetensors"
        cls.recording, cls.summary = train(cls.folder, "whole", 3, 2, "--checkpoint", cls.saved, "--checkpoint-every", 2,
                                           "--keep", 2, "--save", cls.whole)

    @classmethod
    def tearDownClass(cls):
        cls._folder.cleanup()

    def run_of(self, *more, stage=3, model="mlp", data="golden:mlp", ranks=2):
        return ["run", "--config", ROOT / f"samples/stage{stage}.json", "--ranks", ranks, "--model", model, "--data", data,
                *more]

    def test_folder_holds_the_newest_and_the_recording_their_time(self):
        self.assertEqual(sorted(path.name for path in self.saved.iterdir()), ["latest", "step-4", "step-6"])
        self.assertEqual((self.saved / "latest").read_text(), "step-6\n")
        for rank in self.summary["ranks"]:
            made = rank["checkpoints"]
            self.assertEqual((made["saves"], made["loads"]), (3, 0))
            self.assertGreater(made["save_ms"], 0)
            self.assertEqual(rank["time_ms"]["checkpoint"], 0, "checkpoints lie between steps")

    def test_resume_continues_and_says_so(self):
        weights = self.folder / "tail.safetensors"
        _, tail = train(self.folder, "tail", 3, 2, "--resume", self.saved / "step-4", "--save", weights)
        self.assertEqual(tail["loss"], self.summary["loss"][4:])
        self.assertEqual([rank["checkpoints"]["loads"] for rank in tail["ranks"]], [1, 1])
        self.assertEqual(weights.read_bytes(), self.whole.read_bytes())
        _, other = train(self.folder, "other", 1, 3, "--resume", self.saved, steps=8)
        self.assertEqual(other["steps"], 2)

    def test_consolidate_writes_the_weights_of_save(self):
        output = self.folder / "consolidated.safetensors"
        for source in (self.saved, self.saved / "step-6"):
            result = shardscope("consolidate", source, output)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertEqual(output.read_bytes(), self.whole.read_bytes())
        shardscope("consolidate", self.saved / "step-4", output)
        self.assertNotEqual(output.read_bytes(), self.whole.read_bytes())

    def test_consolidate_refuses(self):
        self.refused(["consolidate"], "CHECKPOINT", "consolidate --help")
        self.refused(["consolidate", self.saved], "FILE", "consolidate --help")
        self.refused(["consolidate", self.saved, "a", "b"], "consolidate --help")
        output = self.folder / "never.safetensors"
        self.refused(["consolidate", self.folder / "none", output], "none", "holds no checkpoint")
        self.refused(["consolidate", self.saved / "step-2", output], "step-2", "holds no checkpoint")
        self.refused(["consolidate", self.saved, "/nowhere/weights.safetensors"], "/nowhere/weights", "cannot be written")
        self.refused(["consolidate", self.damaged(), output], "rank-00001.safetensors", "use another checkpoint")
        self.assertFalse(output.exists())

    def damaged(self):
        copy = self.folder / "damaged"
        if not copy.exists():
            shutil.copytree(self.saved, copy)
            with open(copy / "step-6" / "rank-00001.safetensors", "r+b") as file:
                file.seek(5000)
                file.write(bytes(64))
        return copy

    def test_resume_refuses(self):
        self.refused(self.run_of("--resume", self.folder / "none"), "--resume", "none", "no such file")
        self.refused(self.run_of("--resume", self.folder), str(self.folder), "holds no checkpoint")
        self.refused(self.run_of("--resume", self.saved, "--steps", 6), "--steps 6", "give more")
        self.refused(self.run_of("--resume", self.saved, "--init", self.whole), "--init", "--resume", "run --help")
        self.refused(self.run_of("--resume", self.damaged(), "--steps", 8), "rank-00001", "damaged", "another checkpoint")
        self.refused(self.run_of("--resume", self.saved, "--steps", 8, model="gpt-mini", data=ROOT / "README.md"),
                     "another model", "the checkpoint has inp.weight [64, 10]")
        other = self.folder / "other.npy"
        other.write_bytes(b"")
        self.refused(self.run_of("--resume", self.saved, "--steps", 8, data=other), "other.npy")

    def test_checkpoint_refuses(self):
        self.refused(self.run_of("--keep", 2), "--keep", "--checkpoint")
        self.refused(self.run_of("--checkpoint-every", 2), "--checkpoint-every", "--checkpoint")
        for option in ("--keep", "--checkpoint-every"):
            self.refused(self.run_of("--checkpoint", self.folder / "new", option, 0), option, "above 0")
        self.refused(self.run_of("--checkpoint", self.saved), "another run", "--resume")
        file = self.folder / "file"
        file.write_text("")
        self.refused(self.run_of("--checkpoint", file), str(file), "folder")
        self.assertFalse((self.folder / "new").exists())


if __name__ == "__main__":
    main()
