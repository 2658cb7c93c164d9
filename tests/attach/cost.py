"""What a hook costs: PYTHONPATH=build/release/attach-package python tests/attach/cost.py

Prints nanoseconds, best of several loops: an event from Python, before a run (discarded) and within one, a gate; and what wrapping adds
to a method, with a hook before it, and with begin and end of a span."""
import tempfile
import time

from shardscope import _core, _hooks, _kinds as k

CALLS, REPEATS = 100_000, 9


class Framework:
    def method(self, a, b):
        return a


def best(function):
    """Nanoseconds of processor time of a call, the loop's own included."""
    times = []
    for _ in range(REPEATS):
        begin = time.thread_time_ns()
        for _ in range(CALLS):
            function()
        times.append((time.thread_time_ns() - begin) / CALLS)
    return min(times)


def wrapped(before, after):
    adapter = _hooks.Adapter("cost", __name__, None)
    method = _hooks.wrapped(adapter, "method", Framework.method, before, after)
    return type("Wrapped", (Framework,), {"method": method})()


def main():
    events = _core.events
    event = lambda: events.module_begin(0, 1, 0)
    plain = Framework()
    empty = best(lambda: None)
    call = best(lambda: plain.method(1, 2))
    print(f"event, no run        {best(event) - empty:7.0f} ns")
    run = _core.Run(run_id="cost", model="none", device="", hardware="", versions="", config_json="{}", rank=0, world=1,
                    local_world=1, stage=0, param_bytes=4, grad_bytes=4, master_bytes=0, framework="", records=0)
    run.add_module(parent=k.NO_ID, path="", type="Model", hooks=True)
    with tempfile.TemporaryDirectory() as folder:
        run.start(endpoint=f"ipc://{folder}/none", detail=k.PARAMS, key_file="none", linger_s=0.0)
        print(f"event                {best(event) - empty:7.0f} ns")
        print(f"gate                 {best(lambda: _core.gate(k.GATE_PRE_FORWARD, 0)) - empty:7.0f} ns")
        hook = wrapped(lambda self, a, b: None, None)
        print(f"wrapped, empty hook  {best(lambda: hook.method(1, 2)) - call:7.0f} ns more")
        begin = lambda self, a, b: events.module_begin(0, 1, 0)
        end = lambda token, result, self, a, b: events.module_end(0, 1, 0)
        span = wrapped(begin, end)
        print(f"wrapped, two events  {best(lambda: span.method(1, 2)) - call:7.0f} ns more")
        run.finish(0, "done")
        run.close()
    adapter = _hooks.Adapter("off", __name__, None)
    adapter.on = False
    off = type("Off", (Framework,), {"method": _hooks.wrapped(adapter, "method", Framework.method, begin, end)})()
    print(f"wrapped, turned off  {best(lambda: off.method(1, 2)) - call:7.0f} ns more")


if __name__ == "__main__":
    main()
