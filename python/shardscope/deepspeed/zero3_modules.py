"""DeepSpeed ZeRO stage 3: spans of modules, and the profiler's eight counters of fetches.

| symbol | event |
|---|---|
| DeepSpeedZeRoOffload.{pre,post}_sub_module_{forward,backward}_function | spans of modules |
| PartitionedParameterProfiler.stop_event | the eight fetch_counters |
"""
from shardscope import _core, _kinds as k
from shardscope._session import NO_ID, session
from shardscope.deepspeed.zero3_coordinator import module_hooks

emit = _core.emit
COUNTERS = ("forward_fetch_submit", "forward_fetch_wait", "forward_prefetch_submit", "forward_all_gather",
            "backward_fetch_submit", "backward_fetch_wait", "backward_prefetch_submit", "backward_all_gather")
counters = dict.fromkeys(COUNTERS, (0, 0))


def install_modules(table):
    hooks = module_hooks()
    cls = "DeepSpeedZeRoOffload."
    table.wrap(cls + "pre_sub_module_forward_function", "self sub_module", before=hooks.entering, after=hooks.forward_begins)
    table.wrap(cls + "post_sub_module_forward_function", "self sub_module", before=hooks.span_ends)
    table.wrap(cls + "pre_sub_module_backward_function", "self sub_module", before=hooks.entering, after=hooks.backward_begins)
    table.wrap(cls + "post_sub_module_backward_function", "self sub_module", before=hooks.span_ends)


def install_counters(table):
    table.wrap("PartitionedParameterProfiler.stop_event", "self name num_elem", after=counted)


def counted(_, result, profiler, name, num_elem):
    key = name.lower()
    if key in counters:
        count, elems = counters[key]
        counters[key] = count + 1, elems + num_elem


def emit_counters():
    """At the end of a backward: what its micro-step fetched."""
    for code, name in enumerate(COUNTERS):
        count, elems = counters[name]
        if count:
            emit(k.FETCH_COUNTER, k.HOST, code, session.micro_step, session.step, count, elems, 0)
            counters[name] = (0, 0)
