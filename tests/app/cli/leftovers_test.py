#!/usr/bin/env python3
"""What a process that was killed has left is removed by the next one; what somebody holds, or is not ours, stays.

Usage: leftovers_test.py BIN_FOLDER SOURCE_ROOT [unittest arguments]
"""
import contextlib
import fcntl
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from command_line import BIN, ENV, ROOT, CommandTest, main, said, shardscope

LIMIT_S = 60


def waited_for(what):
    until = time.monotonic() + LIMIT_S
    while not (found := what()):
        if time.monotonic() > until:
            raise AssertionError("still waiting")
        time.sleep(0.05)
    return found


def family(pid):
    """It and all that it started."""
    with contextlib.suppress(FileNotFoundError):
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [pid] + [member for child in children for member in family(int(child))]
    return []


def ended(pid):
    """Also as a zombie of the process that adopted it. The first thread is one while others still end; the last closes the files."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z" \
            and len(list(pathlib.Path(f"/proc/{pid}/task").iterdir())) == 1
    return True


def environment_of(pid):
    with contextlib.suppress(OSError):
        return dict(entry.split("=", 1) for entry in pathlib.Path(f"/proc/{pid}/environ").read_text().split("\0") if "=" in entry)
    return {}


class Leftovers(CommandTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()
        self.env = {**ENV, "TMPDIR": str(self.temporary)}

    def run_options(self, steps):
        return [BIN / "shardscope", "run", "--config", ROOT / "samples/stage0.json", "--ranks", "2", "--model", "mlp", "--data",
                "golden:mlp", "--steps", str(steps), "--set", "gradient_clipping=0.5"]

    def test_where_no_rank_came_no_recording_is_left(self):
        recording = self.folder / "none.zscope"
        attach = ["attach", "--record", recording]
        interpreter = shutil.which("python3")
        script = self.folder / "launcher"
        script.write_text(f"#!{sys.executable}\n")
        script.chmod(0o755)
        for command, said_of_python in ((["python3", "-c", "print(1)"], f"`python3` starts {interpreter}: {interpreter} -m pip"),
                                        ([script], f"`{script}` starts {sys.executable}: "), (["true"], "ran (python -m pip")):
            for _ in range(2):  # the same command again is not refused
                done = shardscope(*attach, "--", *command)
                self.assertEqual(done.returncode, 0, done.stderr)
                for words in (said_of_python, "FSDP1", "Megatron-Core", "Colossal-AI"):
                    self.assertIn(words, done.stderr)
                self.assertEqual([file.name for file in self.folder.glob("none.zscope*")], [])
        self.refused([*attach, "--", "/nowhere/program"], "/nowhere/program")
        self.assertFalse(recording.exists())
        said("simulate", "--model", "mlp", "--ranks", "1", "--steps", "2", "-o", recording)
        self.assertEqual(shardscope(*attach, "--overwrite", "--", "true").returncode, 0)
        self.assertTrue(recording.exists())  # what was there before is not its own
        empty = said("summary", recording)
        self.assertEqual(empty.splitlines()[0].split(), ["events", "0"])
        self.assertIn("shardscope attach", empty)
        for word in ("ZeRO-0", "step time", "trace"):
            self.assertNotIn(word, empty)
        findings = said("findings", recording)
        self.assertIn("Nothing is recorded", findings)
        self.assertNotIn("whole copy", findings)

    def test_the_next_run_removes_what_a_killed_one_left(self):
        process = subprocess.Popen(self.run_options(100000000), env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: process.poll() is None and process.kill())

        def shared():
            """Where Open MPI's segments of this run are, once both ranks have theirs."""
            for member in family(process.pid):
                folder = environment_of(member).get("OMPI_MCA_btl_vader_backing_directory")
                if folder and len(list(pathlib.Path(folder).glob("*segment*"))) == 2:
                    return pathlib.Path(folder)
            return None

        segments = waited_for(shared)
        # The configuration, and what Open MPI keeps of the run.
        ours = waited_for(lambda: found if len(found := list(self.temporary.glob("shardscope-*"))) == 2 else None)
        self.assertEqual(len(list(self.temporary.glob("shardscope-*/ompi.*"))), 1)
        # A folder that somebody holds, one that is somebody else's, and one that only looks like it.
        held, other = self.temporary / "shardscope-held", self.temporary / "shardscope-mine"
        held.mkdir()
        other.mkdir()
        (other / "notes").write_text("kept")
        with open(held / ".held", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # While it runs another one leaves its folders alone.
            subprocess.run(self.run_options(1), env=self.env, check=True, capture_output=True)
            self.assertTrue(all(path.exists() for path in [segments, *ours]))
            members = family(process.pid)
            self.assertGreaterEqual(len(members), 4)  # itself, mpirun, two ranks
            for member in members:
                os.kill(member, signal.SIGSTOP)  # so that none cleans up after another
            for member in members:
                os.kill(member, signal.SIGKILL)
            process.wait()
            waited_for(lambda: all(ended(member) for member in members))
            self.assertTrue(all(path.exists() for path in [segments, *ours]))
            subprocess.run(self.run_options(1), env=self.env, check=True, capture_output=True)
            self.assertFalse(any(path.exists() for path in [segments, *ours]))
            self.assertEqual(list(self.temporary.glob("ompi.*")), [])
            self.assertEqual(sorted(path.name for path in self.temporary.glob("shardscope-*")), [held.name, other.name])

    def test_a_collector_leaves_no_socket_files(self):
        sockets = self.folder / "sockets"
        sockets.mkdir()
        process = subprocess.Popen([BIN / "shardscope", "record", self.folder / "run.zscope", "--listen", f"ipc://{sockets}/run"],
                                   env=ENV, stderr=subprocess.PIPE, text=True)
        self.assertIn("listening on", process.stderr.readline())
        self.assertEqual(len(list(sockets.iterdir())), 3)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LIMIT_S)
        self.assertEqual(list(sockets.iterdir()), [])

    def test_a_save_that_fails_leaves_nothing(self):
        weights = self.folder / "weights.safetensors"
        partial = pathlib.Path(f"{weights}.partial")
        partial.symlink_to("/dev/full")  # there is no room
        failed = subprocess.run([BIN / "zero_train", "--model", "mlp", "--data", "golden:mlp", "--steps", "1", "--save", weights],
                                env=ENV, capture_output=True, text=True)
        self.assertNotEqual(failed.returncode, 0)
        self.assertIn("No space left", failed.stderr)
        self.assertFalse(os.path.lexists(partial))

    def test_an_export_removes_what_a_killed_one_left(self):
        recording, out = self.folder / "run.zscope", self.folder / "out.json"
        said("simulate", "--model", "mlp", "--ranks", "2", "--steps", "2", "-o", recording)
        gone = subprocess.Popen(["true"])
        gone.wait()
        left, alive, other = (pathlib.Path(f"{out}.part{end}") for end in (gone.pid, os.getpid(), "y"))
        for path in (left, alive, other):
            path.write_text("half of it")
        said("export", recording, "-o", out)
        self.assertEqual([path.exists() for path in (out, left, alive, other)], [True, False, True, True])


if __name__ == "__main__":
    main()
