#!/usr/bin/env python3
"""Draws every panel in every state that it is designed for and puts the pictures on one page.

    contact_sheet.py BUILD_FOLDER OUT_FOLDER [PANEL...]

BUILD_FOLDER holds bin/shardscope-gui and the recorder of the tests; OUT_FOLDER gets the pictures and index.html. To be
looked at after a change to a view: nothing may overlap, be cut without an ellipsis, or be blank. With zero_train built, and
Xvfb and xdotool installed, also of a run that is live, paused, hung or lost."""

import html
import itertools
import json
import pathlib
import shutil
import subprocess
import sys

import contact_sheet_live

PANELS = ["workspace", "overview", "timeline", "partition", "memory", "communication", "critical_path", "buckets", "stepper", "compare",
          "findings", "messages", "why", "whatif", "inspector", "find", "statistics",
          "flame", "lecture", "notes", "trace_info", "connection", "options"]
RECORDINGS = {"four": ["world=4", "steps=6"], "one": ["world=1", "steps=3"], "empty": ["world=1", "steps=0"],
              "many": ["world=1024", "steps=2", "layers=2"], "long": ["world=4", "steps=3", "long=1"],
              "micro": ["world=4", "steps=4", "micro_steps=4"], "stage2": ["world=4", "stage=2", "steps=4"], "other": ["world=4", "steps=6", "prefetch=0"]}
# Name, recordings, options. The first is what a person with a laptop sees.
STATES = [
    ("1280x720", ["four", "other"], ["--size", "1280x720"]),
    ("1280x720 light", ["four", "other"], ["--size", "1280x720", "--theme", "light"]),
    ("3840x2160, scale 1", ["four", "other"], ["--size", "3840x2160", "--scale", "1"]),
    ("3840x2160, scale 2", ["four", "other"], ["--size", "3840x2160", "--scale", "2"]),
    ("640x400", ["four", "other"], ["--size", "640x400"]),
    ("no step yet", ["empty"], ["--size", "1280x720"]),
    ("one rank", ["one"], ["--size", "1280x720"]),
    ("1,024 ranks", ["many"], ["--size", "1280x720"]),
    ("long names", ["long"], ["--size", "1280x720"]),
    ("stage 2", ["stage2"], ["--size", "1280x720"]),
    ("colour-blind, protanopia", ["four", "other"],
     ["--size", "1280x720", "--theme", "dark-colour-blind", "--vision", "protanopia"]),
    ("colour-blind light, deuteranopia", ["four", "other"],
     ["--size", "1280x720", "--theme", "light-colour-blind", "--vision", "deuteranopia"]),
    ("protanopia", ["four", "other"], ["--size", "1280x720", "--vision", "protanopia"]),
    ("deuteranopia", ["four", "other"], ["--size", "1280x720", "--vision", "deuteranopia"]),
    ("tritanopia", ["four", "other"], ["--size", "1280x720", "--vision", "tritanopia"]),
    ("micro-steps", ["micro"], ["--size", "1280x720"]),
    ("damaged recording", ["damaged"], ["--size", "1280x720"]),
]
# Of panels that are empty until something is chosen: name, and the place in four.zscope that the picture is of.
USED = {
    "timeline": [("a range measured, hits marked", "#measured=140ms-180ms&range=120ms-230ms&at=150ms&find=reduce")],
    "partition": [("a parameter", "#at=150ms&rank=1&param=transformer.h.2.mlp.c_fc.weight")],
    "stepper": [("between two gates", "#at=150ms&rank=2")],
    "communication": [("a range measured", "#measured=80ms-230ms&range=70ms-240ms")],
    "buckets": [("a range measured", "#measured=80ms-230ms&range=70ms-240ms&at=200ms")],
    "inspector": [("a parameter", "#at=150ms&rank=1&param=transformer.h.2.mlp.c_fc.weight"), ("a module", "#at=150ms&rank=1&module=transformer.h.2.mlp"),
                  ("a rank", "#at=150ms&rank=2"), ("a step", "#at=150ms&step=2")],
    "find": [("words", "#find=all-gather"), ("nothing found", "#find=nothing like it")],
    "statistics": [("words", "#find=all-gather"), ("of modules", "#find=h.2")],
    "flame": [("words, one step", "#range=80ms-160ms&find=mlp")],
    "lecture": [("in the middle of a step", "#at=150ms")],
    "notes": [("notes", "#at=150ms")],
    "overview": [("a step", "#at=150ms&step=2")],
}
NOTES = {"format": "shardscope notes", "version": 1, "run_id": "synthetic-1", "notes": [
    {"id": "1", "begin_ns": 90_000_000, "text": "the first gathers are late", "rank": 1, "colour": "red"},
    {"id": "2", "begin_ns": 140_000_000, "end_ns": 180_000_000, "text": "backward waits for the link", "colour": "yellow"},
    {"id": "3", "begin_ns": 200_000_000, "text": ""}]}


def program(build: pathlib.Path, name: str) -> str:
    for place in (build / "bin" / name, build / "tests" / "app" / "gui" / name):
        if place.exists():
            return str(place)
    sys.exit(f"contact_sheet: {name} is not in {build}; build the targets shardscope-gui and gui_make_recording")


def noted(out: pathlib.Path) -> None:
    """The recording of four ranks with notes beside it."""
    recording = out / "noted.zscope"
    shutil.copyfile(out / "four.zscope", recording)
    (out / "noted.zscope.notes.json").write_text(json.dumps(NOTES))


def used(gui: str, out: pathlib.Path, panel: str, page: list[str]) -> tuple[int, int]:
    """Adds the pictures of a panel with something chosen in it; returns how many there are and how many failed."""
    failed = 0
    for state, place in USED.get(panel, []):
        picture = f"{panel}-{state.replace(' ', '_').replace(',', '')}.png"
        done = subprocess.run([gui, str(out / "noted.zscope"), "--panel", panel, "--at", place, "--screenshot", str(out / picture),
                               "--size", "1280x720"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            failed += 1
            print(f"{picture}: {done.stderr.strip()}", file=sys.stderr)
        page.append(f"<figure><figcaption>{html.escape(state)}</figcaption><a href='{picture}'>"
                    f"<img loading=lazy src='{picture}'></a></figure>")
    return len(USED.get(panel, [])), failed


def damage(whole: pathlib.Path, damaged: pathlib.Path) -> None:
    """A recording with a hole, and without its end, as after a full disk."""
    data = bytearray(whole.read_bytes())
    data[len(data) // 2:len(data) // 2 + 4096] = bytes(4096)
    damaged.write_bytes(data[:len(data) * 9 // 10])


def live_states(build: pathlib.Path, out: pathlib.Path, gui: str, page: list[str]) -> tuple[int, int]:
    """Adds the pictures of runs that go on; returns how many there are and how many failed."""
    shardscope = build / "bin" / "shardscope"
    if not (build / "bin" / "zero_train").exists() or not shardscope.exists() or not shutil.which("Xvfb") or not shutil.which("xdotool"):
        print("contact_sheet: without live runs: they need the target programs, Xvfb and xdotool", file=sys.stderr)
        return 0, 0
    made = failed = 0
    with contact_sheet_live.Live(pathlib.Path(__file__).resolve().parents[3], str(shardscope), gui, out) as live:
        for state, pictures in itertools.chain(contact_sheet_live.opened(live), contact_sheet_live.states(live)):
            page.append(f"<h2>{html.escape(state)}</h2>")
            for panel, picture, done in pictures:
                made, failed = made + 1, failed + (not done)
                page.append(f"<figure><figcaption>{html.escape(panel)}</figcaption><a href='{picture}'>"
                            f"<img loading=lazy src='{picture}'></a></figure>")
    return made, failed


def main() -> int:
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    build, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    panels = sys.argv[3:] or PANELS
    out.mkdir(parents=True, exist_ok=True)
    gui, recorder = program(build, "shardscope-gui"), program(build, "gui_make_recording")
    for name, options in RECORDINGS.items():
        recording = out / f"{name}.zscope"
        if not recording.exists():
            subprocess.run([recorder, recording, *options], check=True)
    damage(out / "four.zscope", out / "damaged.zscope")
    noted(out)
    page = ["<!doctype html><title>Contact sheet</title><style>body{background:#222;color:#ddd;font:14px sans-serif}"
            "img{width:100%;border:1px solid #555}figure{display:inline-block;width:48%;margin:0.5%}</style>"]
    failed = chosen = 0
    for panel in panels:
        page.append(f"<h2>{html.escape(panel)}</h2>")
        for state, recordings, options in STATES:
            picture = f"{panel}-{state.replace(' ', '_').replace(',', '')}.png"
            command = [gui, *(str(out / f"{name}.zscope") for name in recordings), "--panel", panel, "--screenshot",
                       str(out / picture), *options]
            if panel == "workspace":
                command += ["--layout", "Watch"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                failed += 1
                print(f"{picture}: {done.stderr.strip()}", file=sys.stderr)
            page.append(f"<figure><figcaption>{html.escape(state)}</figcaption><a href='{picture}'>"
                        f"<img loading=lazy src='{picture}'></a></figure>")
        made, used_failed = used(gui, out, panel, page)
        chosen, failed = chosen + made, failed + used_failed
    live, live_failed = live_states(build, out, gui, page)
    failed += live_failed
    (out / "index.html").write_text("\n".join(page))
    print(f"{out / 'index.html'}: {len(panels) * len(STATES) + chosen + live} pictures, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
