"""DeepSpeed ZeRO stage 3: spans of modules, and the profiler's eight counters of fetches.

| symbol | event |
|---|---|
| DeepSpeedZeRoOffload.{pre,post}_sub_module_{forward,backward}_function | spans of modules |
| PartitionedParameterProfiler.stop_event | the eight fetch_counters |
| PartitionedParameterProfiler.reset_events, at each root forward | resets them: an evaluation's fetches belong to no micro-step |
"""
from shardscope import _core
from shardscope._session import session
from shardscope.deepspeed.zero3_coordinator import module_hooks

counters = _core.FetchCounters()


def install_modules(table):
    hooks = module_hooks()
    cls = "DeepSpeedZeRoOffload."
    table.wrap(cls + "pre_sub_module_forward_function", "self sub_module", before=hooks.entering, after=hooks.forward_begins)
    table.wrap(cls + "post_sub_module_forward_function", "self sub_module", before=hooks.span_ends)
    table.wrap(cls + "pre_sub_module_backward_function", "self sub_module", before=hooks.entering, after=hooks.backward_begins)
    table.wrap(cls + "post_sub_module_backward_function", "self sub_module", before=hooks.span_ends)


def install_counters(table):
    table.wrap("PartitionedParameterProfiler.stop_event", "self name num_elem", after=counters.counted)
    table.wrap("PartitionedParameterProfiler.reset_events", "self", after=lambda *a: counters.clear())


def emit_counters():
    """At the end of a backward: emits the fetch counters of its micro-step."""
    counters.emit(session.micro_step, session.step)
