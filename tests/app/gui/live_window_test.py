#!/usr/bin/env python3
"""The real window on a real run, driven by keyboard under Xvfb: a late viewer sees the whole run, pause and step
stop every rank at one gate, a run that was stepped ends with bitwise the same weights, and a dashboard killed
while the run is paused stops it for no longer than the lease.

Usage: live_window_test.py BIN_FOLDER SOURCE_ROOT      exit code 77: Xvfb or xdotool is missing
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BIN, ROOT = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
STEPS = 300
LEASE_S = 10


def fail(text):
    sys.exit(f"FAIL: {text}")


def tensors(path):
    """{name: bytes} of a safetensors file."""
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    return {name: data[begin + of["data_offsets"][0]:begin + of["data_offsets"][1]]
            for name, of in json.loads(data[8:begin]).items() if name != "__metadata__"}


def same_weights(plain, other, what):
    """Fails with which weights of `other` differ, and from which byte on."""
    if plain.read_bytes() == other.read_bytes():
        return
    a, b = tensors(plain), tensors(other)
    differ = [f"{name}: {sum(x != y for x, y in zip(a[name], b[name]))} of {len(a[name])} bytes, from "
              f"{next(i for i, (x, y) in enumerate(zip(a[name], b[name])) if x != y)} on"
              for name in a if name in b and a[name] != b[name]]
    fail(f"{what} ended with other weights: {len(differ)} of {len(a)} differ" + "".join("\n  " + line for line in differ))


class Display:
    def __enter__(self):
        read, write = os.pipe()
        self.process = subprocess.Popen(["Xvfb", "-displayfd", str(write), "-screen", "0", "1600x900x24", "-nolisten", "tcp"],
                                        pass_fds=[write], stderr=subprocess.DEVNULL)
        os.close(write)
        with os.fdopen(read) as pipe:
            self.settings = tempfile.TemporaryDirectory()
            self.environment = {**os.environ, "DISPLAY": ":" + pipe.readline().strip(), "SHARDSCOPE_ROOT": str(ROOT),
                                "XDG_CONFIG_HOME": self.settings.name, "XDG_STATE_HOME": self.settings.name}
        self.environment.pop("WAYLAND_DISPLAY", None)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


class Run:
    """`shardscope run` with its collector at a known place: a path, which no other process can take as it can a free port."""

    def __init__(self, folder, name, environment):
        text = folder / "text.txt"  # not the repository's, which may be edited while the runs go on
        if not text.exists():
            text.write_bytes(b"".join(page.read_bytes() for page in sorted((ROOT / "docs").glob("*.md"))))
        self.endpoint = f"ipc://{folder}/{name}"
        self.weights = folder / f"{name}.safetensors"
        self.recording = folder / f"{name}.zscope"
        self.process = subprocess.Popen(
            [BIN / "shardscope", "run", "--config", ROOT / "samples/stage3.json", "--ranks", "2", "--steps", str(STEPS),
             "--data", text, "--listen", self.endpoint, "--save", self.weights, "--record", self.recording, "--set",
             "zero_optimization.stage3_prefetch_bucket_size=60000"], env=environment, stderr=subprocess.PIPE, text=True)

    def finish(self, timeout):
        try:
            _, errors = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            fail(f"the run did not end within {timeout} s")
        if self.process.returncode != 0:
            fail(f"the run ended with {self.process.returncode}: {errors}")


    def a_rank(self):
        """The process id of the rank that this run's launcher started last."""
        of = {}
        for line in subprocess.run(["ps", "-eo", "pid,ppid,comm"], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[1:]:
            pid, parent, name = line.split(None, 2)
            of.setdefault(int(parent), []).append((int(pid), name))
        found, look = [], [self.process.pid]
        while look:
            for pid, name in of.get(look.pop(), []):
                look.append(pid)
                if name.startswith("zero_train"):
                    found.append(pid)
        if not found:
            fail("the run has no rank")
        return max(found)

    def summary(self, environment):
        return json.loads(subprocess.run([BIN / "shardscope", "summary", "--json", self.recording], stdout=subprocess.PIPE,
                                         env=environment, check=True).stdout)


class Window:
    """Of an endpoint, or of a recording."""

    def __init__(self, folder, source, environment):
        self.dump = folder / f"state-{pathlib.Path(source).name}.json"
        self.environment = environment
        shown = ["--connect", source] if "://" in str(source) else [source]
        self.process = subprocess.Popen([BIN / "shardscope-gui", *shown, "--size", "1600x900", "--state-dump", self.dump],
                                        env=environment)

    def state(self):
        if self.process.poll() is not None:
            fail(f"the window is gone ({self.process.returncode})")
        self.process.send_signal(signal.SIGUSR1)
        time.sleep(0.03)
        try:
            return json.loads(self.dump.read_text())
        except (OSError, json.JSONDecodeError):
            return {}

    def until(self, condition, what, timeout=30):
        deadline = time.monotonic() + timeout
        state = {}
        while time.monotonic() < deadline:
            # The window handles SIGUSR1 once it is up; before that the signal would end it.
            if self.dump.exists():
                state = self.state()
                try:
                    if condition(state):
                        return state
                except (KeyError, TypeError):
                    pass
            time.sleep(0.03)
        fail(f"{what}: {json.dumps(state)}")

    def type(self, text):
        time.sleep(0.5)
        subprocess.run(["xdotool", "type", "--delay", "50", text], env=self.environment, check=True)

    def key(self, name):
        subprocess.run(["xdotool", "key", name], env=self.environment, check=True)

    def close(self):
        self.process.terminate()
        self.process.wait()


def main():
    for tool in ("Xvfb", "xdotool"):
        if shutil.which(tool) is None:
            print(f"SKIP: {tool} is not installed (packages-test.txt)")
            sys.exit(77)
    with tempfile.TemporaryDirectory() as folder_name, Display() as display:
        folder = pathlib.Path(folder_name)
        plain = Run(folder, "plain", display.environment)
        plain.finish(120)

        stepped = Run(folder, "stepped", display.environment)
        time.sleep(2)  # a viewer that joins late
        window = Window(folder, stepped.endpoint, display.environment)
        window.until(lambda s: s["link"] == "live" and s["store"]["steps"] >= 2, "the window is live")
        window.key("space")
        state = window.until(lambda s: s["control"]["paused"], "Space pauses the run")
        gate = state["control"]["gate"]
        for _ in range(4):
            window.key("m")
            state = window.until(lambda s: s["control"]["paused"] and s["control"]["gate"] > gate, "M steps to the next module")
            gate = state["control"]["gate"]
        window.key("e")
        state = window.until(lambda s: s["control"]["paused"] and s["control"]["gate"] == gate + 1, "E steps to the next event")
        gate = state["control"]["gate"]
        window.key("n")  # the rest of this step, of which there may be one gate left
        state = window.until(lambda s: s["control"]["paused"] and s["control"]["gate"] > gate, "N goes to the end of the step")
        gate = state["control"]["gate"]
        window.key("n")  # a whole step: many gates, to just before the next one begins
        window.until(lambda s: s["control"]["paused"] and s["control"]["gate"] > gate + 5, "N steps to the next step")
        # A breakpoint at a module: resumed, the run stops there by itself.
        gate = window.until(lambda s: s["control"]["paused"], "it is paused")["control"]["gate"]
        window.key("ctrl+p")
        window.until(lambda s: "dialog" in s["shows"], "the palette opens")
        window.type("h.1.attn")
        window.until(lambda s: s["shows"].get("dialog") == ["h.1.attn"], "the palette holds the module")
        window.key("Return")
        window.until(lambda s: s["selection"]["kind"] in ("module", "param"), "the module is selected")
        window.key("F9")
        window.until(lambda s: len(s["breakpoints"]["list"]) == 1, "a breakpoint is in the list")
        window.key("space")
        window.until(lambda s: s["control"]["paused"] and s["control"]["gate"] > gate and s["breakpoints"]["stopped"] == 0,
                     "the run stops at its breakpoint, and the list shows it")
        window.key("F9")
        window.until(lambda s: not s["breakpoints"]["list"], "F9 removes it")
        # A note on the live run: kept for a later window, and with its recording.
        window.key("b")
        window.until(lambda s: "dialog" in s["shows"], "B opens the dialog of a note")
        window.type("stopped here")
        window.key("Return")
        noted = window.until(lambda s: [note[2] for note in s["notes"]["list"]] == ["stopped here"], "a note on the live run")
        if noted["notes"]["problem"]:
            fail(f"the note is not kept: {noted['notes']['problem']}")
        window.key("space")
        window.until(lambda s: not s["control"]["paused"], "Space resumes the run")
        stepped.finish(120)
        state = window.until(lambda s: s["link"] == "ended" and s["store"]["steps"] == STEPS, "the late viewer saw every step")
        window.close()
        info = json.loads(subprocess.run([BIN / "shardscope", "info", "--json", stepped.recording], stdout=subprocess.PIPE,
                                         env=display.environment, check=True).stdout)
        if state["store"]["events"] != info["events"] or state["store"]["dropped"] != 0:
            fail(f"the window holds {state['store']['events']} events, the recording {info['events']}")
        same_weights(plain.weights, stepped.weights, "a run that was paused and stepped")
        window = Window(folder, stepped.recording, display.environment)
        window.until(lambda s: s["notes"]["list"] == noted["notes"]["list"], "the recording has the note on the live run")
        if "stopped here" not in pathlib.Path(f"{stepped.recording}.notes.json").read_text():
            fail("the note is not beside the recording")
        window.close()

        # A hang is named while it lasts, above the panels, and by the panel for it.
        hung = Run(folder, "hung", display.environment)
        window = Window(folder, hung.endpoint, display.environment)
        window.until(lambda s: s["link"] == "live" and s["store"]["steps"] >= 20, "the window is live")
        stopped = hung.a_rank()
        os.kill(stopped, signal.SIGSTOP)
        window.until(lambda s: s["hung"] and "banner" in s["panels"], "the hang is named", 60)
        window.key("ctrl+p")
        window.until(lambda s: "dialog" in s["shows"], "the palette opens")
        window.type("show why it hangs")
        window.key("Return")
        window.until(lambda s: "why" in s["panels"], "the panel Why it hangs")
        os.kill(stopped, signal.SIGCONT)
        window.until(lambda s: not s["hung"], "the hang is over")
        window.close()
        hung.process.terminate()
        hung.process.communicate(timeout=60)

        killed = Run(folder, "killed", display.environment)
        window = Window(folder, killed.endpoint, display.environment)
        window.until(lambda s: s["link"] == "live" and s["store"]["steps"] >= 20, "the window is live")
        os.kill(killed.a_rank(), signal.SIGKILL)
        killed.process.communicate(timeout=60)
        state = window.until(lambda s: s["link"] == "ended" and s["analysis"]["partial"] == "", "what was left is analysed")
        summary = killed.summary(display.environment)
        recorded = {row["op"]: row["count"] for row in summary["comm"]["ops"]}
        shown = {name.replace("-", "_"): count for name, count in state["analysis"]["collectives"].items()}
        if shown != recorded or not recorded:
            fail(f"after a rank was killed the window counts {shown}, the recording {recorded}")
        window.close()

        left = Run(folder, "left", display.environment)
        window = Window(folder, left.endpoint, display.environment)
        window.until(lambda s: s["link"] == "live" and s["store"]["steps"] >= 2, "the window is live")
        window.key("space")
        window.until(lambda s: s["control"]["paused"], "Space pauses the run")
        window.process.kill()
        window.process.wait()
        left.finish(LEASE_S + 90)
        summary = left.summary(display.environment)
        if summary["steps"] != STEPS:
            fail(f"{summary['steps']} steps were recorded after the dashboard was killed")
        if summary["step_ms"]["p95"] > 1000 * LEASE_S / 2:
            fail(f"paused time is in the step times: {summary['step_ms']}")
        same_weights(plain.weights, left.weights, "a run whose dashboard was killed")
    print("the window stopped, stepped and let go; the weights are the same")


if __name__ == "__main__":
    main()
