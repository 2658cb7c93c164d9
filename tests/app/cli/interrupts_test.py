#!/usr/bin/env python3
"""What is ended by a signal or by a closed terminal says so, finishes its recording and compares nothing; what is to
outlive its terminal does.

Usage: interrupts_test.py BIN_FOLDER SOURCE_ROOT [unittest arguments]
"""
import contextlib
import fcntl
import os
import pathlib
import pty
import re
import signal
import socket
import sqlite3
import subprocess
import tempfile
import termios
import time

from command_line import BIN, ENV, ROOT, CommandTest, main, read, said, shardscope

LIMIT_S = 60
# Ends only on a signal.
ENDLESS = ["--ranks", "1", "--model", "mlp", "--data", "golden:mlp", "--steps", "100000000"]
RUN = ["run", "--config", ROOT / "samples/stage0.json", *ENDLESS]


def start(arguments, **how):
    """In a process group of its own, as a shell starts a job."""
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "start_new_session": True, **how}
    return subprocess.Popen([BIN / "shardscope", *map(str, arguments)], env=ENV, text=True, stdin=subprocess.DEVNULL, **how)


def waited_for(what, process=None):
    """Until it is true."""
    until = time.monotonic() + LIMIT_S
    while not what():
        if process is not None and process.poll() is not None:
            raise AssertionError(f"ended with {process.returncode}: {process.communicate()}")
        if time.monotonic() > until:
            raise AssertionError("still waiting")
        time.sleep(0.05)


def has_events(recording):
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(f"file:{recording}?mode=ro", uri=True)) as file:
        return file.execute("SELECT count(*) FROM chunks").fetchone()[0] > 0
    return False


def ended(pid):
    """Also as a zombie of the process that adopted it."""
    with contextlib.suppress(FileNotFoundError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


class Interrupts(CommandTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def begun(self, arguments, recording):
        """Started, and under way: there are events in its recording."""
        process = start(arguments)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        waited_for(lambda: has_events(recording), process)
        return process

    def check_recording(self, recording):
        info = read("info", recording)
        self.assertEqual((info["problems"], info["complete"]), ([], info["dropped"] + info["lost_messages"] == 0), info)
        self.assertGreater(info["events"], 0)
        self.assertTrue(info["ranks"][0]["finished"], info)

    def test_an_interrupted_run_says_so_and_finishes_its_recording(self):
        signals = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM", signal.SIGQUIT: "SIGQUIT", signal.SIGHUP: "SIGHUP"}
        for number, name in signals.items():
            recording = self.folder / f"{name}.zscope"
            process = self.begun([*RUN, "--record", recording], recording)
            process.send_signal(number)
            _, err = process.communicate(timeout=LIMIT_S)
            self.assertEqual(process.returncode, 128 + number, err)
            self.assertRegex(err, rf"shardscope: interrupted \({name}.*\) after \d+ steps?; {recording} holds what ran until then")
            self.check_recording(recording)

    def test_a_run_whose_terminal_is_closed_finishes_its_recording(self):
        recording = self.folder / "run.zscope"
        master, slave = pty.openpty()
        process = start([*RUN, "--record", recording], stdout=slave, stderr=slave,
                        preexec_fn=lambda: fcntl.ioctl(1, termios.TIOCSCTTY, 0))
        os.close(slave)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        waited_for(lambda: has_events(recording), process)
        os.close(master)  # what was drawn until now is more than it holds: it is not waited for
        process.wait(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 128 + signal.SIGHUP)
        self.check_recording(recording)

    def test_an_interrupted_ab_compares_nothing(self):
        for name, more in (("text", []), ("json", ["--json"])):
            folder = self.folder / name
            process = self.begun(["ab", *RUN[1:], "--set-b", "gradient_clipping=0.5", "--out", folder, *more], folder / "a1.zscope")
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=LIMIT_S)
            self.assertEqual((process.returncode, out), (130, ""), err)
            self.assertIn("ab was interrupted (Ctrl-C) in run A 1/3: nothing is compared", err)
            self.assertEqual([path.name for path in folder.iterdir()], ["a1.zscope"])

    def test_an_interrupted_demo_shows_nothing(self):
        recording = self.folder / "demo.zscope"
        process = self.begun(["demo", "--headless", *ENDLESS, "--out", self.folder], recording)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual((process.returncode, out), (130, ""), err)
        self.assertIn(f"interrupted (Ctrl-C) after", err)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["demo.zscope"])

    def test_what_is_played_ends_as_well(self):
        recording, run = self.folder / "played.zscope", self.folder / "run.zscope"
        endless = ["--model", "mlp", "--ranks", "2", "--steps", "100000000"]
        process = self.begun(["simulate", *endless, "-o", recording], recording)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn(f"interrupted (Ctrl-C) before the simulation's end; {recording} holds what came until then", err)
        said("simulate", "--model", "mlp", "--ranks", "2", "--steps", "4", "-o", run)
        process = start(["what-if", run, "--steps", "1000"])
        self.addCleanup(lambda: process.poll() is None and process.kill())
        waited_for(lambda: self.children(process.pid), process)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual((process.returncode, out), (143, ""), err)
        self.assertIn("interrupted (SIGTERM)", err)

    @staticmethod
    def children(pid):
        return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()

    def test_two_short_recordings_bear_no_verdict(self):
        run = self.folder / "run.zscope"
        said("simulate", "--model", "mlp", "--ranks", "2", "--steps", "2", "-o", run)
        self.assertIn("No verdict: too few measured steps (A 1, B 1;", said("compare", run, run))
        compared = read("compare", run, run)
        self.assertIs(compared["bears_verdict"], False)
        self.assertEqual(compared["measured_steps"], {"a": 1, "b": 1})
        self.assertTrue(compared["verdict"].startswith("No verdict: "), compared["verdict"])

    def test_a_run_names_the_port_it_was_given(self):
        process = start([*RUN, "--listen", "tcp://127.0.0.1:0"])
        self.addCleanup(lambda: process.poll() is None and process.kill())
        line = process.stderr.readline()
        port = int(re.search(r"listening on tcp://127.0.0.1:(\d+)", line)[1])
        self.assertIn(f"shardscope view tcp://127.0.0.1:{port}", line)
        socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S).close()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LIMIT_S)

    def detached(self, *arguments):
        """What it printed about the process in the background, which has no terminal and is its own session."""
        done = shardscope(*arguments, "--detach")
        self.assertEqual(done.returncode, 0, done.stderr)
        output = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
        self.assertEqual(sorted(output), ["log", "pid", "stop", "view"])
        pid = int(output["pid"])
        self.addCleanup(lambda: ended(pid) or os.kill(pid, signal.SIGKILL))
        self.assertEqual(os.getsid(pid), pid)
        self.assertEqual(output["stop"], f"kill {pid}")
        self.assertRegex(output["view"], r"^shardscope view .*tcp://127.0.0.1:[1-9]\d*$")
        for fd in (0, 1, 2):
            self.assertIn(os.readlink(f"/proc/{pid}/fd/{fd}"), ("/dev/null", output["log"]))
        return pid, pathlib.Path(output["log"])

    def test_a_detached_run_goes_on_in_the_background(self):
        recording = self.folder / "run.zscope"
        pid, log = self.detached(*RUN, "--record", recording)
        self.assertEqual(log, pathlib.Path(f"{recording}.log"))
        waited_for(lambda: has_events(recording))
        os.kill(pid, signal.SIGTERM)
        waited_for(lambda: ended(pid))
        self.check_recording(recording)
        self.assertIn("interrupted (SIGTERM) after", log.read_text())
        self.assertRegex(log.read_text(), rf"\d+ events of \d ranks, .*, loss [\d.]+ -> [\d.]+; recorded to {recording}; "
                                          rf"next: shardscope summary {recording}\n")

    def test_a_detached_recorder_goes_on_in_the_background(self):
        recording, log = self.folder / "run.zscope", self.folder / "log"
        pid, at = self.detached("record", recording, "--listen", "tcp://127.0.0.1:0", "--log", log)
        self.assertEqual(at, log)
        os.kill(pid, signal.SIGINT)
        waited_for(lambda: ended(pid))
        self.assertIn("0 events of 0 ranks", log.read_text())
        self.assertIn("no rank came before the recorder ended", said("info", recording))

    def test_what_fails_before_it_is_under_way_fails_in_the_foreground(self):
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        for wrong, named in ((["--set", "zero_optimization.overlap_com=true"], "overlap_com"), (["--resume", "/nowhere"], "--resume /nowhere")):
            failed = shardscope(*RUN, "--detach", *wrong)
            self.assertNotEqual(failed.returncode, 0)
            self.assertEqual(failed.stdout, "")
            self.assertIn(named, failed.stderr)
        self.refused([*RUN, "--detach", "--log", self.folder / "none" / "log"], "--log", "No such file")
        self.refused([*RUN, "--log", "log"], "--log", "--detach")


if __name__ == "__main__":
    main()
