"""Runs `shardscope ... --json` for what the reader library cannot do: simulating settings, comparing runs."""
import json
import os
import shutil
import subprocess
import warnings

from shardscope import _programs


class CommandError(RuntimeError):
    """The command is missing or failed; the message is its error output."""


def program():
    """Path of the package's own program, else of the one in PATH."""
    own = os.path.join(_programs.FOLDER, "shardscope")
    found = own if os.access(own, os.X_OK) else shutil.which("shardscope")
    if found is None:
        raise CommandError(f"shardscope: neither {own} nor on the PATH: install a package with the programs, or put the "
                           "folder of the built ones on the PATH")
    return found


def ask(*arguments, codes=(0,)):
    """Runs the command and returns its JSON output. `codes`: exit codes of a valid answer; any other code, or no
    output, raises CommandError with its error output. Its warnings become Python warnings."""
    done = subprocess.run([program(), *map(str, arguments), "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8", errors="replace", check=False)
    words = done.stderr.strip()
    if done.returncode not in codes or not done.stdout.strip():
        raise CommandError(words or f"shardscope {arguments[0]}: exit code {done.returncode}")
    if words:
        warnings.warn(words, stacklevel=3)
    return json.loads(done.stdout)
