"""What the hooks of one step take, in place: tests/attach/hook_times.py [--steps N] [--small]     (python of tests/attach/environment)

The time between the call of a wrapped function and the call of the framework's own, and from its return on: caches and all as they are
in training; what is called before and after each collective, and before and after the forward of each module. Means by function without the highest hundredth, in which the machine
did something else, times its calls a step; what the same timers find around a function with no hook is taken off. No medians: most
modules hold no parameters themselves, and the hooks of those that do take many times as long. Where steps vary by more than hooks
take, as on a shared virtual machine, paired steps (overhead.py) show nothing; this does. Not in it: what the hooks cost the framework
afterwards by what they have displaced from the caches, and what the ends of collectives cost the threads that complete them.

--small: a model of the same shape with steps of a tenth, so that modules and parameters, not matrix products, make the step.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
SMALL = {"WIDTH": 16, "LAYERS": 12, "TOKENS": 64}
EMPTY = "a function with no hook"
clock = time.perf_counter_ns


class Timed:
    """A wrapped function: all time in it that is not the framework's own."""

    def __init__(self, make, inner):
        self.took, self.inside = [], []  # `inside`: time in the framework's own, of each open call: modules' are nested
        self.wrapper = make(self.timed(inner))

    def timed(self, inner):
        def original(*args, **kwargs):
            began = clock()
            try:
                return inner(*args, **kwargs)
            finally:
                self.inside[-1] = clock() - began
        return original

    def outer(self):
        def call(*args, **kwargs):
            self.inside.append(0)
            began = clock()
            try:
                return self.wrapper(*args, **kwargs)
            finally:
                self.took.append(clock() - began - self.inside.pop())
        return call


def timed_call(hook, timed, symbol):
    """A hook that torch calls. `timed`: symbol -> what it took."""
    each = timed.setdefault(symbol, Timed(lambda original: None, None))

    def call(*args):
        began = clock()
        hook(*args)
        each.took.append(clock() - began)
    return call


class TimedCalls:
    """In place of a process group's hooks."""

    def __init__(self, inner, timed):
        self.__dict__.update(inner=inner, before=timed_call(inner.before, timed, "a process group's hook before"),
                             after=timed_call(inner.after, timed, "a process group's hook after"))

    def __setattr__(self, name, value):
        setattr(self.inner, name, value)


def mean(values):
    return statistics.fmean(sorted(values)[:max(len(values) * 99 // 100, 1)])


def rank(framework, steps, small, out):
    from shardscope import _core, _hooks  # before torch, whose import lets the hooks in
    timed, wrapped, group_calls = {}, _hooks.wrapped, _core.GroupCalls
    _core.GroupCalls = lambda *arguments: TimedCalls(group_calls(*arguments), timed)

    def watched(adapter, symbol, inner, before, after, raised=None):
        each = timed[symbol] = Timed(lambda original: wrapped(adapter, symbol, original, before, after, raised), inner)
        return _hooks.functools.update_wrapper(each.outer(), inner)

    _hooks.wrapped = watched
    import overhead_rank
    import torch
    from shardscope import modules
    for name in ("_entering", "_leaving"):
        setattr(modules, name, timed_call(getattr(modules, name), timed, f"a module's hook, {name[1:]}"))
    vars(overhead_rank).update(SMALL if small else {})
    torch.set_num_threads(1)
    if framework == "zero3":
        import deepspeed
        deepspeed.init_distributed("gloo")
    else:
        torch.distributed.init_process_group("gloo")
    torch.manual_seed(0)
    model, step = overhead_rank.stepper(framework)
    empty = Timed(lambda original: _core.Wrapper(original, None, None, None, print, _core.Switch()), lambda *args: None)
    call = empty.outer()
    for _ in range(4):  # traces are recorded, memory is looked at in full
        step()
    for each in timed.values():
        each.took.clear()
    walls = []
    for _ in range(steps):
        began = clock()
        step()
        walls.append(clock() - began)
        for _ in range(3):
            call(model, None)
    rows = [(symbol, len(each.took) / steps, mean(each.took)) for symbol, each in timed.items() if each.took]
    facts = {"step": statistics.median(walls), "empty": mean(empty.took), "rows": rows,
             "tensors": len(list(model.parameters())), "modules": len(list(model.modules()))}
    pathlib.Path(f"{out}.{os.environ['RANK']}").write_text(json.dumps(facts), encoding="utf-8")
    torch.distributed.destroy_process_group()


def show(framework, facts):
    empty, step = facts["empty"], facts["step"]
    rows = sorted(((calls * max(took - empty, 0), symbol, calls, took) for symbol, calls, took in facts["rows"]), reverse=True)
    total, calls = sum(row[0] for row in rows), sum(row[2] for row in rows)
    print(f"{framework}: {facts['tensors']} tensors, {facts['modules']} modules, steps of {step * 1e-6:.1f} ms: {total * 1e-6:.2f} ms "
          f"({total / step * 100:.2f} %) in {calls:.0f} calls; the timers' own {empty * 1e-3:.2f} us a call are taken off")
    for took_in_step, symbol, calls, took in rows[:16]:
        print(f"  {took_in_step * 1e-3:8.1f} us  {calls:7.1f} x {(took - empty) * 1e-3:7.2f} us  {symbol}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--rank", nargs=2, metavar=("FRAMEWORK", "OUT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank:
        return rank(options.rank[0], options.steps, options.small, options.rank[1])
    import runs
    runs.build_package()
    with tempfile.TemporaryDirectory(prefix="shardscope-hooks-") as folder:
        out = pathlib.Path(folder) / "rank"
        for framework in ("fsdp2", "zero3"):
            more = ["--small"] if options.small else []
            command = runs.torchrun(pathlib.Path(__file__).resolve(), "--rank", framework, out, "--steps", options.steps, *more)
            runs.finish(runs.start(runs.attach(pathlib.Path(folder) / "run.zscope") + command))
            show(framework, runs.results(out)[0])


if __name__ == "__main__":
    main()
