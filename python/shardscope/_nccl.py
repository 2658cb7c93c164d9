"""NCCL's profiler plugin of ours, in the ranks of `shardscope attach`.

NCCL reads the variable when it makes its first communicator, and loads one plugin into a process: where the user names one, or
none, that stays.
"""
import os

VARIABLE = "NCCL_PROFILER_PLUGIN"
PLUGIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libnccl-profiler-shardscope.so")


def offer():
    """Ahead of the first communicator."""
    if VARIABLE in os.environ or named_in_file() or not os.path.exists(PLUGIN):
        return
    os.environ[VARIABLE] = PLUGIN
    # Communicators may come before the run has begun: it waits for it.
    os.environ.setdefault("SHARDSCOPE_NCCL_RUN", "join")


def named_in_file():
    """NCCL also takes variables from the first of these files that is there."""
    own = os.environ.get("NCCL_CONF_FILE")
    for path in ([own] if own else [os.path.expanduser("~/.nccl.conf")]) + ["/etc/nccl.conf"]:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                if any(line.strip().startswith(VARIABLE) for line in file):
                    return True
        except OSError:
            continue
    return False


def missing():
    """Why NCCL's own records are not there; "": they are."""
    named = os.environ.get(VARIABLE)
    if named == PLUGIN:
        return ""
    if named is not None or named_in_file():
        return f"{VARIABLE} names another plugin, or none, and NCCL loads one"
    if not os.path.exists(PLUGIN):
        return "this package was built without NCCL's profiler plugin"
    return "NCCL's profiler plugin was not asked for"
