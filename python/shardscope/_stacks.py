"""Where every Python thread of this process is, when a viewer asks: by a thread of ours that waits for nothing else.

It holds the GIL while it reads the frames, a fraction of a millisecond. Where native code does not release the GIL, the
frames are read without it, as faulthandler does (src/requests.cpp).
"""
import _thread
import sys
import threading

from shardscope import _core

MOST_FRAMES = 40  # of a thread, the innermost
# Whose files are none of the script's, wherever they are installed: many have a clone of their framework.
FRAMEWORKS = ("torch", "deepspeed", "accelerate", "transformers", "trl", "megatron", "colossalai", "lightning", "shardscope")


class Answerer:
    def __init__(self, run):
        self.ended = _thread.allocate_lock()
        self.ended.acquire()
        run.answer_requests()
        # Not a threading.Thread: those of the script are its own to count and to join.
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
        """Before the interpreter ends: a thread that wants its lock then does not get it back."""
        _core.end_requests()
        self.ended.acquire(timeout=2)


def stacks():
    """The main thread first, in each the innermost call first."""
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
    """A file of an installed package or of a framework without the folder that it is installed in."""
    if "/site-packages/" in path:
        return path.rpartition("/site-packages/")[2]
    for name in FRAMEWORKS:
        for folder in getattr(sys.modules.get(name), "__path__", ()):
            if path.startswith(f"{folder}/"):
                return path[len(folder) - len(name):] if folder.endswith(f"/{name}") else f"{name}/{path[len(folder) + 1:]}"
    return path
