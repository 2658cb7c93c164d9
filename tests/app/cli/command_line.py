"""The programs under test, run as a user runs them. Test files of this folder take BIN_FOLDER SOURCE_ROOT [unittest
arguments]."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

BIN = pathlib.Path(sys.argv[1])
ROOT = pathlib.Path(sys.argv[2])
ENV = {**os.environ, "SHARDSCOPE_ROOT": str(ROOT)}
for name in ("DISPLAY", "WAYLAND_DISPLAY"):
    ENV.pop(name, None)
# Where ranks of `run` compute if a test does not say; the CPU if this is not set.
DEVICE = os.environ.get("SHARDSCOPE_TEST_DEVICE")


def processes_below(launcher):
    """Folders of /proc of the processes that `launcher` started, and that those started, by what their parents are."""
    parents, folders = {}, {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            folders[int(folder.name)] = folder
        except OSError:
            continue
    def below(pid):
        while pid > 1 and pid != launcher:
            pid = parents.get(pid, 0)
        return pid == launcher
    return [folder for pid, folder in folders.items() if pid != launcher and below(pid)]


def shardscope(*arguments, timeout=120, stderr=subprocess.PIPE):
    """How it ended and what it said, whether it failed or not. `stderr`: a file open for appending takes each write whole; a pipe
    takes 4,096 bytes at once, and another process's line may stand between two such pieces."""
    if DEVICE and arguments[0] == "run" and "--device" not in arguments:
        arguments = (*arguments, "--device", DEVICE)
    return subprocess.run([BIN / "shardscope", *map(str, arguments)], env=ENV, timeout=timeout, text=True,
                          stdout=subprocess.PIPE, stderr=stderr, stdin=subprocess.DEVNULL)


def said(*arguments):
    """Its standard output; it must not fail."""
    result = shardscope(*arguments)
    if result.returncode != 0:
        raise AssertionError(f"{arguments}: {result.stderr}")
    return result.stdout


def read(*arguments):
    """What it says with --json."""
    return json.loads(said(*arguments, "--json"))


def summary_of_run(recording, *options):
    """Trains with these options of `run` into a recording; its summary."""
    said("run", *options, "--record", recording, "--overwrite")
    return read("summary", recording)


def train(folder, name, stage, ranks, *more, steps=6, model="mlp", data="golden:mlp"):
    """Trains with a sample's configuration; the recording and its summary."""
    recording = pathlib.Path(folder) / f"{name}.zscope"
    return recording, summary_of_run(recording, "--config", ROOT / f"samples/stage{stage}.json", "--ranks", ranks, "--model",
                                     model, "--data", data, "--steps", steps, *more)


def print_config(zero, world, ours=None, model=None, **root):
    """zero_train --print-config of a configuration with this zero_optimization."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"train_micro_batch_size_per_gpu": 1, "zero_optimization": zero, "shardscope": ours or {}, **root}, file)
        file.flush()
        return subprocess.run([BIN / "zero_train", "--config", file.name, *(("--model", model) if model else ()),
                               "--print-config", str(world)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


class CommandTest(unittest.TestCase):
    def refused(self, arguments, *words):
        """What, value, what to do; exit code not zero; nothing on standard output. What it said."""
        result = shardscope(*arguments)
        self.assertNotEqual(result.returncode, 0, arguments)
        self.assertEqual(result.stdout, "", arguments)
        self.assertTrue(result.stderr.startswith("shardscope: "), result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)
        return result.stderr


class OneLineErrors(CommandTest):
    def refused(self, arguments, *words, temporary=None):
        """In one line, all of them."""
        with unittest.mock.patch.dict(ENV, {"TMPDIR": str(temporary)} if temporary else {}):
            printed = super().refused(arguments, *words)
        self.assertEqual(printed.count("\n"), 1, printed)
        return printed


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
