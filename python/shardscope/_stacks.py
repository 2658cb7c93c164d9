"""Stacks of all Python threads, at a viewer's request: read by a thread of ours that only waits for requests.

It holds the GIL while it reads the frames, for a fraction of a millisecond. If native code does not release the GIL,
the frames are read without it, as faulthandler does (src/requests.cpp).
"""
import _thread
import sys
import threading

from shardscope import _core

MOST_FRAMES = 40  # per thread, the innermost
# Their files are not the script's, wherever they are installed: many users run a clone of their framework.
FRAMEWORKS = ("torch", "deepspeed", "accelerate", "transformers", "trl", "megatron", "colossalai", "lightning", "shardscope")


class Answerer:
    def __init__(self, run):
        self.ended = _thread.allocate_lock()
        self.ended.acquire()
        run.answer_requests()
        # Not a threading.Thread: the script may count and join those.
        _thread.start_new_thread(self._loop, ())

    def _loop(self):
        try:
            while (ticket := _core.next_request()) is not None:
                try:
                    text = stacks()
                except Exception as error:
                    text = f"none: {type(error).__name__}: {error}"
                _core.answer(ticket, text)
        finally:
            self.ended.release()

    def end(self):
        """Call before the interpreter exits: a thread that requests its lock would then never get it."""
        _core.end_requests()
        self.ended.acquire(timeout=2)


def stacks():
    """The stacks as text: the main thread first, the innermost call first."""
    own, main = _thread.get_ident(), threading.main_thread().ident
    frames = {ident: frame for ident, frame in sys._current_frames().items() if ident != own}
    names = {ident: thread.name for ident, thread in list(threading._active.items())}
    lines = [f"{len(frames)} Python threads, the innermost call of each first"]
    for ident in sorted(frames, key=lambda each: (each != main, each)):
        lines.append(f"thread {names.get(ident, ident)}:")
        lines += calls(frames[ident])
    return "\n".join(lines)


def calls(frame):
    lines = []
    while frame is not None and len(lines) < MOST_FRAMES:
        code = frame.f_code
        lines.append(f"  {getattr(code, 'co_qualname', code.co_name)} at {short(code.co_filename)}:{frame.f_lineno}")
        frame = frame.f_back
    if frame is not None:
        lines.append("  ...")
    return lines


def short(path):
    """Path of a file of an installed package or framework, without its installation folder."""
    if "/site-packages/" in path:
        return path.rpartition("/site-packages/")[2]
    for name in FRAMEWORKS:
        for folder in getattr(sys.modules.get(name), "__path__", ()):
            if path.startswith(f"{folder}/"):
                return path[len(folder) - len(name):] if folder.endswith(f"/{name}") else f"{name}/{path[len(folder) + 1:]}"
    return path
