"""Answers window_driver.sh about the state that a window has written: a program that stays, since starting Python for
each question takes longer than the window needs to answer.

Reads a line for each question, PID TAB SECONDS TAB EXPRESSION: the expression over the state `s`. With PID 0 it is
evaluated over the last dump, else new ones are requested until it holds, for so many seconds. Answers with "yes" or "no" and
the number of lines that follow."""

import json
import os
import pathlib
import signal
import sys
import time

STATE = pathlib.Path(sys.argv[1])


def state() -> dict:
    return json.loads(STATE.read_text())


def version() -> tuple:
    """Differs after each dump, which is a new file."""
    found = STATE.stat()
    return found.st_ino, found.st_mtime_ns


def request(pid: int, until: float) -> dict:
    """A dump that is newer than this call. Raises when the window is gone."""
    seen, before = version(), state()["shows"]["requests"][0]
    os.kill(pid, signal.SIGUSR1)
    while time.monotonic() < until:
        time.sleep(0.005)
        if version() == seen:
            continue
        seen, now = version(), state()
        if now["shows"]["requests"][0] != before:
            return now
    return state()


def answer(pid: int, seconds: float, expression: str) -> tuple[bool, str]:
    until = time.monotonic() + seconds
    held = "nothing was dumped"
    while True:
        try:
            s = request(pid, min(until, time.monotonic() + 2)) if pid else state()
            held = eval(expression, {"s": s})
            if not pid or held:
                return True, str(held)
        except ProcessLookupError:
            return False, "the window is gone"
        except Exception as failed:  # a key that is not there yet
            held = f"{type(failed).__name__}: {failed}"
            if not pid:
                return False, held
        if time.monotonic() > until:
            return False, str(held)
        time.sleep(0.02)


for line in sys.stdin:
    pid, seconds, expression = line.rstrip("\n").split("\t", 2)
    held, text = answer(int(pid), float(seconds), expression)
    lines = text.split("\n")
    print("yes" if held else "no", len(lines))
    print("\n".join(lines), flush=True)
