"""The command `shardscope` with --json, for what the reader's library does not hold: playing settings, comparing runs."""
import json
import os
import shutil
import subprocess
import warnings

from shardscope import _programs


class CommandError(RuntimeError):
    """The command is not there, or says that it cannot do it: its words."""


def program():
    """The package's own program where it has one, else that of the PATH."""
    own = os.path.join(_programs.FOLDER, "shardscope")
    found = own if os.access(own, os.X_OK) else shutil.which("shardscope")
    if found is None:
        raise CommandError(f"shardscope: neither {own} nor on the PATH: install a package with the programs, or put the "
                           "folder of the built ones on the PATH")
    return found


def ask(*arguments, codes=(0,)):
    """What it prints with --json. `codes`: exit codes of an answer; with another, or without an answer, its words are
    raised. What it warns of beside an answer is a warning here."""
    done = subprocess.run([program(), *map(str, arguments), "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8", errors="replace", check=False)
    words = done.stderr.strip()
    if done.returncode not in codes or not done.stdout.strip():
        raise CommandError(words or f"shardscope {arguments[0]}: exit code {done.returncode}")
    if words:
        warnings.warn(words, stacklevel=3)
    return json.loads(done.stdout)
