"""Loads our NCCL profiler plugin in the ranks of `shardscope attach`.

NCCL reads the variable when it makes its first communicator, and loads one plugin per process: a plugin (or none)
chosen by the user is kept.
"""
import os

VARIABLE = "NCCL_PROFILER_PLUGIN"
PLUGIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libnccl-profiler-shardscope.so")


def offer():
    """Sets NCCL's variables; call before the first communicator is made."""
    if VARIABLE in os.environ or named_in_file() or not os.path.exists(PLUGIN):
        return
    os.environ[VARIABLE] = PLUGIN
    # Communicators may be made before the run starts: the plugin waits for the run.
    os.environ.setdefault("SHARDSCOPE_NCCL_RUN", "join")


def named_in_file():
    """Whether one of the files from which NCCL takes variables (its user file, then /etc/nccl.conf) names a plugin."""
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
    """Why NCCL's own records are missing; "" if they are not."""
    named = os.environ.get(VARIABLE)
    if named == PLUGIN:
        return ""
    if named is not None or named_in_file():
        return f"{VARIABLE} names another plugin, or none, and NCCL loads one"
    if not os.path.exists(PLUGIN):
        return "this package was built without NCCL's profiler plugin"
    return "NCCL's profiler plugin was not asked for"
