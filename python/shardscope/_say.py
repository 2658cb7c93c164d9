"""The package's messages: to standard error, and to the recording if there is one; each text once."""
import sys

_said = set()
_kept = []  # messages from before the run started
sink = None  # f(severity, text) of the run


def warning(text):
    _say(1, text, True)


def recorded_warning(text):
    """Of an error that the script itself gets, or handles."""
    _say(1, text, False)


def recorded_each_time(text):
    """Also if it is the text of an earlier one."""
    _emit(1, text)


def info(text):
    _say(0, text, False)


def _say(severity, text, aloud):
    if text in _said:
        return
    _said.add(text)
    if aloud:
        print(f"shardscope: {text}", file=sys.stderr, flush=True)
    _emit(severity, text)


def _emit(severity, text):
    if sink is None:
        _kept.append((severity, text))
    else:
        sink(severity, text)


def flush_to(new_sink):
    """Sends messages to the run from now on, earlier ones first."""
    global sink
    sink = new_sink
    for severity, text in _kept:
        sink(severity, text)
    _kept.clear()
