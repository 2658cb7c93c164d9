#!/usr/bin/env python3
"""Runs the script of the report page in Node.js, with a page that only notes what is written on its axis.

Usage: report_axis_test.py ROOT; exits with 77 (skipped) where there is no node.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop()) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[3]
SCRIPT = ROOT / "assets" / "report" / "report.js"
# What report.js asks of a page: data, a canvas of 1000 pixels whose context notes texts, and keys.
PAGE = """
const length = Number(process.argv[1]), zooms = Number(process.argv[2]);
let written = [];
const handlers = {};
const noted = new Proxy({measureText: () => ({width: 40}), fillText: (text, x, y) => { if (y === 14) written.push(text); }},
                        {get: (target, name) => name in target ? target[name] : () => {}, set: () => true});
const plain = () => ({addEventListener: (name, f) => { handlers[name] = f; }, getContext: () => noted, style: {}, dataset: {},
                      clientWidth: 1000, setAttribute() {}, hidden: true});
const data = {names: ["work"], steps: [{length, path: [], ranks: [["rank 0", ["compute", 0, 0, 1, 0, 0]]]}]};
globalThis.document = {body: {}, documentElement: {classList: {toggle() {}}}, createElement: plain, querySelectorAll: () => [],
                       getElementById: () => ({textContent: JSON.stringify(data)}), querySelector: plain};
globalThis.window = globalThis;
globalThis.getComputedStyle = () => ({fontFamily: "sans-serif", getPropertyValue: () => ""});
globalThis.ResizeObserver = class { observe() {} };
globalThis.matchMedia = () => ({addEventListener() {}});
globalThis.addEventListener = () => {};
eval(require("fs").readFileSync(0, "utf8"));
const press = key => { written = []; handlers.keydown({key, preventDefault() {}}); };
press("0");
const whole = written;
for (let i = 0; i < zooms; ++i) press("+");  // the middle stays where it is
console.log(JSON.stringify({whole, zoomed: written}));
"""


@unittest.skipUnless(shutil.which("node"), "there is no node")
class Axis(unittest.TestCase):
    def marks(self, length_ns, zooms):
        done = subprocess.run(["node", "-e", PAGE, str(length_ns), str(zooms)], input=SCRIPT.read_text(encoding="utf-8"),
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_a_whole_step_has_short_marks(self):
        self.assertEqual(self.marks(1_024_000_000, 0)["whole"][:3], ["0", "0.2 s", "0.4 s"])

    def test_marks_that_lie_close_differ(self):
        for zooms in range(1, 22, 4):
            marks = self.marks(1_024_000_000, zooms)["zoomed"]
            with self.subTest(zooms=zooms, marks=marks):
                self.assertGreater(len(marks), 2)
                self.assertEqual(len(set(marks)), len(marks))


if __name__ == "__main__":
    if not shutil.which("node"):
        sys.exit(77)
    unittest.main()
