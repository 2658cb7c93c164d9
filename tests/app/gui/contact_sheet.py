#!/usr/bin/env python3
"""Draws every panel in every state that it is designed for and puts the pictures on one page.

    contact_sheet.py BUILD_FOLDER OUT_FOLDER [PANEL...]

BUILD_FOLDER holds bin/shardscope-gui and the recorder of the tests; OUT_FOLDER gets the pictures and index.html. To be
looked at after a change to a view: nothing may overlap, be cut without an ellipsis, or be blank."""

import html
import pathlib
import subprocess
import sys

PANELS = ["workspace", "overview", "timeline", "partition", "memory", "communication", "critical_path", "buckets", "stepper", "compare",
          "findings", "messages", "why", "whatif", "inspector", "find", "statistics",
          "flame", "lecture", "notes", "trace_info", "connection", "options"]
RECORDINGS = {"four": ["world=4", "steps=6"], "one": ["world=1", "steps=3"], "empty": ["world=1", "steps=0"],
              "many": ["world=1024", "steps=2", "layers=2"], "long": ["world=4", "steps=3", "long=1"],
              "stage2": ["world=4", "stage=2", "steps=4"], "other": ["world=4", "steps=6", "prefetch=0"]}
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
]


def program(build: pathlib.Path, name: str) -> str:
    for place in (build / "bin" / name, build / "tests" / "app" / "gui" / name):
        if place.exists():
            return str(place)
    sys.exit(f"contact_sheet: {name} is not in {build}; build the targets shardscope-gui and gui_make_recording")


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
    page = ["<!doctype html><title>Contact sheet</title><style>body{background:#222;color:#ddd;font:14px sans-serif}"
            "img{width:100%;border:1px solid #555}figure{display:inline-block;width:48%;margin:0.5%}</style>"]
    failed = 0
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
    (out / "index.html").write_text("\n".join(page))
    print(f"{out / 'index.html'}: {len(panels) * len(STATES)} pictures, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
