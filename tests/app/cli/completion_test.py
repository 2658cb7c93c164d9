#!/usr/bin/env python3
"""Completions and manual pages name every verb and option that --help has, each asked of the shell itself where it is
installed.

Usage: completion_test.py BIN_FOLDER SOURCE_ROOT [unittest arguments]
"""
import functools
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import command_line
from command_line import shardscope, said

BASH = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_shardscope
printf '%s\\n' "${COMPREPLY[@]}"
"""
# What the script hands to zsh's own functions, which would need a terminal.
ZSH = """
compdef() { }
_describe() { print -rl -- ${(P)4} }
_arguments() {
  print -rl -- "$@"
  [[ "$*" == *'->verb'* ]] || return
  if (( $#words == 1 )); then state=verb; else state=rest; shift words; line=($words); fi
}
source $1; shift
words=("${@[2,-1]}")
local state line
_shardscope
"""


@functools.cache
def help_of(*verb):
    return said(*verb, "--help")


def options_in(text):
    """The options that a help text lists."""
    found = set()
    for names in re.findall(r"^  (-[\w-]+(?:,-[\w-]+)*)", text, re.M):
        found.update(names.split(","))
    return found


def verbs_in(text):
    _, _, listed = text.partition("Subcommands:\n")
    return re.findall(r"^  ([a-z][\w-]*) ", listed, re.M)


def commands():
    """Every verb as the words that are typed, the program itself first."""
    waiting = [()]
    while waiting:
        verb = waiting.pop(0)
        yield verb
        waiting += [(*verb, below) for below in verbs_in(help_of(*verb))]


class Completions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.commands = list(commands())
        assert ("estimate", "zero2") in cls.commands and ("what-if",) in cls.commands, cls.commands
        assert "--ranks" in options_in(help_of("run"))
        for shell in ("bash", "zsh", "fish"):
            (pathlib.Path(cls.folder.name) / shell).write_text(said("completion", shell), encoding="utf-8")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def script(self, shell):
        if shutil.which(shell) is None:
            self.skipTest(f"{shell} is not installed")
        return str(pathlib.Path(self.folder.name) / shell)

    def output(self, *command):
        result = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual(result.stderr, "", command)
        return result.stdout.splitlines()

    def bash(self, *words):
        return {word for word in self.output("bash", "-c", BASH, "bash", self.script("bash"), "shardscope", *words) if word}

    def fish(self, line):
        return {word.partition("\t")[0] for word in
                self.output("fish", "--no-config", "-c", f"source {self.script('fish')}; complete -C '{line}'")}

    def test_bash(self):
        for verb in self.commands:
            self.assertEqual(self.bash(*verb, "-"), options_in(help_of(*verb)), verb)
            self.assertEqual(self.bash(*verb, ""), set(verbs_in(help_of(*verb))), verb)
        self.assertEqual(self.bash("export", "--format", ""), {"chrome", "perfetto", "kineto", "csv", "sqlite", "otlp"})
        self.assertEqual(self.bash("export", "--format", "p"), {"perfetto"})
        self.assertEqual(self.bash("run", "--record", ""), set())  # a file: bash's own
        self.assertEqual(self.bash("attach", "--", "python", "-"), set())  # another program's options

    def test_fish(self):
        self.script("fish")
        for verb in self.commands:
            line = " ".join(("shardscope", *verb))
            wanted = options_in(help_of(*verb))
            self.assertEqual({word for word in self.fish(line + " --") if word.startswith("--")},
                             {option for option in wanted if option.startswith("--")}, verb)
            if verbs_in(help_of(*verb)):
                self.assertEqual(self.fish(line + " "), set(verbs_in(help_of(*verb))), verb)
        self.assertEqual(self.fish("shardscope export --format "), {"chrome", "perfetto", "kineto", "csv", "sqlite", "otlp"})

    def test_zsh(self):
        script = self.script("zsh")
        for verb in self.commands:
            got = self.output("zsh", "-fc", ZSH, "zsh", script, "shardscope", "shardscope", *verb)
            # Of a verb below another the specifications of both are handed over, the deeper ones last.
            last = max((at for at, line in enumerate(got) if line == "-C"), default=0)
            options = {re.match(r"\*?(-[\w-]+)", line)[1] for line in got[last + 1:] if re.match(r"\*?-[\w-]+[=+]?\[", line)}
            self.assertEqual(options, options_in(help_of(*verb)), verb)
            verbs = {line.partition(":")[0] for line in got[last + 1:] if re.match(r"[a-z][\w-]*:", line)}
            self.assertEqual(verbs - {option.lstrip("-") for option in options},
                             set(verbs_in(help_of(*verb))), verb)

    def test_an_unknown_shell_is_refused(self):
        result = shardscope("completion", "tcsh")
        self.assertEqual(result.returncode, 2)
        self.assertIn("tcsh", result.stderr)


class ManualPages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        said("manual", cls.folder.name)
        cls.pages = {path.stem: path for path in pathlib.Path(cls.folder.name).glob("man/man1/*.1")}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def shown(self, page):
        """As a reader sees it, in one line."""
        result = subprocess.run(["groff", "-K", "utf8", "-T", "utf8", "-P", "-bcou", "-man", "-ww", "-rLL=2000n", page],
                                capture_output=True, text=True, timeout=60, check=True)
        self.assertEqual(result.stderr, "", page)
        return result.stdout

    def test_a_page_for_every_verb_with_its_options(self):
        if shutil.which("groff") is None:
            self.skipTest("groff is not installed")
        self.assertEqual(set(self.pages), {"shardscope", *("shardscope-" + verb for verb in verbs_in(help_of()))})
        for verb in commands():
            page = self.pages["-".join(("shardscope", *verb[:1]))]
            shown = self.shown(page)
            # Hyphens that are typed are ASCII's.
            for option in options_in(help_of(*verb)):
                self.assertRegex(shown, rf"(?m)^ *(--?[\w-]+, )*{re.escape(option)}\b", page)
            for below in verbs_in(help_of(*verb)):
                self.assertIn(("shardscope-" if not verb else " ".join(("shardscope", *verb, ""))) + below, shown)

    def test_written_pages_render(self):
        if shutil.which("groff") is None:
            self.skipTest("groff is not installed")
        for page in (command_line.ROOT / "assets/man").glob("*.in"):
            self.assertIn("SEE ALSO", self.shown(page))


class Version(unittest.TestCase):
    def test_build_facts(self):
        said_lines = dict(line.split(maxsplit=1) for line in said("--version").splitlines())
        self.assertRegex(said_lines["shardscope"], r"^\d+\.\d+\.\d+$")
        self.assertRegex(said_lines["commit"], r"^([0-9a-f]{12,}|unknown)$")
        self.assertRegex(said_lines["compiler"], r"^(GCC|Clang) \d+.*, \w+$")
        for library in ("ZeroMQ 4.", "SQLite 3.", "zstd 1.", "CLI11 "):
            self.assertIn(library, said_lines["libraries"])

    def test_the_other_programs_were_built_from_the_same(self):
        first = said("--version").splitlines()
        for program in ("zero_train", "zero_simulate", "shardscope-gui"):
            path = command_line.BIN / program
            if program == "shardscope-gui" and not path.exists():
                continue  # built without the dashboard
            lines = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()
            self.assertEqual(lines[0].split(), [program, first[0].split()[1]])
            self.assertEqual(lines[1:], first[1:4])


if __name__ == "__main__":
    command_line.main()
