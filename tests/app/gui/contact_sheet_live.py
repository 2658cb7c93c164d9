"""States of a run that is going on, for the contact sheet: live, paused, a hang, a lost connection; and what only a window
has: menus, dialogs, a simulation.

A run of two small ranks is started with its collector at a path. Pictures are taken by further viewers; a lost
connection is seen only by a window that was connected, so that one is real: Xvfb keeps its screen in a file."""

import os
import pathlib
import signal
import struct
import subprocess
import time
import zlib

# The panels that differ from those of a recording.
PANELS = ["workspace", "timeline", "partition", "memory", "stepper", "why", "connection"]
SIZE = "1280x720"


def write_png(path: pathlib.Path, screen: pathlib.Path) -> None:
    """A screen as Xvfb keeps it (XWD, 32 bits a pixel) as PNG."""
    data = screen.read_bytes()
    header = struct.unpack(">25I", data[:100])
    size, width, height, line, colours = header[0], header[4], header[5], header[12], header[19]
    rows = []
    for y in range(height):
        at = size + 12 * colours + y * line
        row = data[at:at + 4 * width]
        rgb = bytearray(3 * width)
        rgb[0::3], rgb[1::3], rgb[2::3] = row[2::4], row[1::4], row[0::4]
        rows.append(b"\0" + bytes(rgb))

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(b"".join(rows))) + chunk(b"IEND", b""))


class Live:
    def __init__(self, root: pathlib.Path, shardscope: str, gui: str, out: pathlib.Path):
        self.root, self.shardscope, self.gui, self.out = root, shardscope, gui, out.resolve()
        self.started: list[subprocess.Popen] = []
        self.environment = {**os.environ, "SHARDSCOPE_ROOT": str(root), "XDG_CONFIG_HOME": str(self.out / "config")}
        self.environment.pop("WAYLAND_DISPLAY", None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self.started):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)

    def start(self, command, **options) -> subprocess.Popen:
        process = subprocess.Popen([str(part) for part in command], env=self.environment, start_new_session=True,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
        self.started.append(process)
        return process

    def run(self, name: str, *more) -> tuple[str, subprocess.Popen]:
        """A training at an endpoint; returns that."""
        endpoint = f"ipc://{self.out / name}"
        return endpoint, self.start([self.shardscope, "run", "--config", self.root / "samples/stage3.json", "--ranks", "2",
                                     "--steps", "100000", "--model", "gpt-mini", "--listen", endpoint, "--record",
                                     self.out / f"{name}.zscope", *more])

    def pictures(self, state: str, *source) -> list[tuple[str, str, bool]]:
        """(panel, picture, whether it was made) of every panel that differs."""
        made = []
        for panel in PANELS:
            picture = f"{panel}-{state.replace(' ', '_')}.png"
            done = subprocess.run([self.gui, *source, "--panel", panel, "--screenshot", str(self.out / picture), "--size", SIZE],
                                  env=self.environment, capture_output=True, text=True, check=False, timeout=120)
            made.append((panel, picture, done.returncode == 0))
        return made

    def window(self, *source) -> tuple[pathlib.Path, subprocess.Popen]:
        """A real window; returns the file of its screen and its process."""
        read, write = os.pipe()
        folder = self.out / f"screen{len(self.started)}"
        folder.mkdir(exist_ok=True)
        self.start(["Xvfb", "-displayfd", str(write), "-screen", "0", f"{SIZE}x24", "-nolisten", "tcp", "-fbdir",
                    folder], pass_fds=[write])
        os.close(write)
        with os.fdopen(read) as pipe:
            self.environment["DISPLAY"] = ":" + pipe.readline().strip()
        window = self.start([self.gui, *source, "--size", SIZE])
        time.sleep(8)
        return folder / "Xvfb_screen0", window

    def key(self, *keys: str) -> None:
        subprocess.run(["xdotool", "mousemove", "640", "300", "key", *keys], env=self.environment, check=True)
        time.sleep(3)

    def palette(self, words: str) -> None:
        self.key("ctrl+p")
        subprocess.run(["xdotool", "type", "--delay", "40", words], env=self.environment, check=True)
        time.sleep(1)
        self.key("Return")


def opened(live: Live):
    """Yields (state, pictures) of what only a window shows, on a recording: dialogs, menus, a simulation."""
    def shown(name: str):
        picture = f"window-{name.replace(' ', '_')}.png"
        write_png(live.out / picture, screen)
        return name, [("workspace", picture, True)]

    screen, window = live.window(live.out / "four.zscope")
    live.key("ctrl+p")
    yield shown("palette")
    live.key("Escape")
    live.key("question")
    yield shown("keys and colours")
    live.key("Escape")
    live.key("F6", "Tab")
    live.key("F4")
    yield shown("tool tip by keyboard")
    live.key("Escape")
    for name, command in (("go to", "go to step"), ("open", "open recording"), ("connect", "connect to a run"), ("export", "export trace chrome"),
                          ("note", "note here")):
        live.palette(command)
        yield shown(f"dialog {name}")
        live.key("Escape")
    live.palette("show what if")
    # The box of overlap_comm: the same settings are not simulated again.
    subprocess.run(["xdotool", "mousemove", "212", "187", "click", "1"], env=live.environment, check=True)
    live.palette("what if: simulate")
    time.sleep(12)
    yield shown("what if simulated")
    window.terminate()
    window.wait(10)
    screen, window = live.window()
    yield shown("first page")
    window.terminate()
    window.wait(10)


def states(live: Live):
    """Yields (state, pictures) one after the other."""
    endpoint, run = live.run("live")
    time.sleep(10)
    yield "live", live.pictures("live", "--connect", endpoint)
    screen, _ = live.window("--connect", endpoint)
    live.key("space")
    yield "paused", live.pictures("paused", "--connect", endpoint)
    write_png(live.out / "window-paused.png", screen)
    yield "paused, the window", [("workspace", "window-paused.png", True)]
    live.key("space")
    os.killpg(run.pid, signal.SIGKILL)
    time.sleep(8)
    write_png(live.out / "window-lost.png", screen)
    yield "lost connection, the window", [("workspace", "window-lost.png", True)]
    _, hung = live.run("hung", "--fault", "rank=1,step=30,kind=return")
    hung.wait(90)
    yield "hang", live.pictures("hang", str(live.out / "hung.zscope"))
