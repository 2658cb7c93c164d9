#!/usr/bin/env python3
"""What ./shardscope installs: of each line of packages*.txt one package that the system has, and no more than
the verb needs. dpkg-query, apt-cache, apt-get and the build are stand-ins."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def names(file: str) -> list[list[str]]:
    """Of each line its alternatives."""
    lines = [line for line in (ROOT / file).read_text().splitlines() if line and not line.startswith("#")]
    return [[name.strip() for name in line.split("|")] for line in lines]


PROGRAMS = names("packages.txt")
TESTS = names("packages-test.txt")


class Packages(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)
        (self.root / "bin").mkdir()
        for name in ("shardscope", "packages.txt", "packages-test.txt"):
            shutil.copy(ROOT / name, self.root / name)
        (self.root / "build/release/bin").mkdir(parents=True)
        (self.root / "build/release/build.ninja").touch()
        (self.root / "tests").mkdir()
        for name in ("build/release/bin/shardscope", "tests/run"):
            self.script(name, "echo started")
        self.script("bin/ninja", "exit 0")
        self.script("bin/id", "echo 0")
        self.script("bin/dpkg-query", f"sed 's/^/installed /' {self.root}/installed")
        self.script("bin/apt-cache", f'grep -qx "$2" {self.root}/lists && printf "$2:\\n  Installed: (none)\\n  Candidate: 1\\n" '
                                     f'|| printf "$2:\\n  Installed: (none)\\n  Candidate: (none)\\n"')
        self.script("bin/apt-get", f'echo "$@" >> {self.root}/apt')

    def tearDown(self):
        self.folder.cleanup()

    def script(self, name: str, text: str):
        (self.root / name).write_text("#!/bin/bash\n" + text + "\n")
        (self.root / name).chmod(0o755)

    def start(self, verb: str, installed: list[str], lists: list[str]) -> tuple[int, str, list[str]]:
        """(exit code, output, what apt-get was to install)"""
        for file, content in (("installed", installed), ("lists", lists)):
            (self.root / file).write_text("".join(name + "\n" for name in content))
        (self.root / "apt").write_text("")
        environment = {key: value for key, value in os.environ.items() if not key.startswith("SHARDSCOPE_")}
        environment["PATH"] = f"{self.root}/bin:/usr/bin:/bin"
        result = subprocess.run([self.root / "shardscope", verb], env=environment, capture_output=True, text=True)
        calls = (self.root / "apt").read_text()
        self.updated = "update" in calls
        found = re.search(r"^install (.*)$", calls, re.M)
        return result.returncode, result.stdout + result.stderr, \
            [word for word in found.group(1).split() if not word.startswith("-")] if found else []

    def everything(self) -> list[str]:
        return [name for line in PROGRAMS + TESTS for name in line if name != "none"]

    def test_demo_installs_what_programs_need(self):
        code, out, chosen = self.start("demo", [], self.everything())
        self.assertEqual(code, 0, out)
        self.assertEqual(chosen, [line[0] for line in PROGRAMS])
        self.assertNotIn("libclang-rt-14-dev", chosen)

    def test_test_installs_both(self):
        code, out, chosen = self.start("test", [], self.everything())
        self.assertEqual(code, 0, out)
        self.assertEqual(chosen, [line[0] for line in PROGRAMS + TESTS])

    def test_other_names_are_chosen_and_optional_ones_left_out(self):
        others = [name for name in self.everything() if not name.endswith("-14-dev") and not name.endswith("-14")]
        code, out, chosen = self.start("test", [], others)
        self.assertEqual(code, 0, out)
        self.assertIn("libclang-rt-dev", chosen)
        self.assertFalse([name for name in chosen if name.endswith("-14")])

    def test_an_installed_alternative_is_enough(self):
        installed = [line[-1] if line[-1] != "none" else line[0] for line in PROGRAMS + TESTS]
        code, out, chosen = self.start("test", installed, self.everything())
        self.assertEqual((code, chosen, self.updated), (0, [], False), out)

    def test_nothing_is_asked_of_the_network_for_optional_ones_alone(self):
        installed = [line[0] for line in PROGRAMS + TESTS if line[-1] != "none"]
        code, out, chosen = self.start("test", installed, [])
        self.assertEqual((code, chosen, self.updated), (0, [], False), out)

    def test_a_package_that_no_list_has_is_named(self):
        lists = [name for name in self.everything() if name != "libdnnl-dev"]
        code, out, chosen = self.start("demo", [], lists)
        self.assertNotEqual(code, 0)
        self.assertIn("libdnnl-dev", out)
        self.assertNotIn("started", out)


if __name__ == "__main__":
    unittest.main()
