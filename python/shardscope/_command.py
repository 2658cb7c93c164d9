"""The command `shardscope` with --json, for what the reader's library does not hold: playing settings, comparing runs."""
import json
import os
import shutil
import subprocess

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
    """What it prints with --json. `codes`: exit codes of an answer; with another its words are raised."""
    done = subprocess.run([program(), *map(str, arguments), "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace", check=False)
    if done.returncode not in codes:
        raise CommandError(done.stderr.strip() or f"shardscope {arguments[0]}: exit code {done.returncode}")
    return json.loads(done.stdout)
