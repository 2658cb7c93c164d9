"""Compiled or replayed code has no hooks inside: emits a message about it, and the time that compiling took.

| symbol | message |
|---|---|
| (compiled_graphs.py) | spans of the calls of compiled graphs |
| torch._dynamo.callback.CompilationCallbackHandler.run_start_callbacks, run_end_callbacks | span `torch.compile` |
| torch._dynamo.symbolic_convert.InstructionTranslator.__init__, torch.nn.Module.compile, before | (modules.py puts torch's own function of a module's call back) |
| torch.cuda.graphs.CUDAGraph.replay | CUDA graphs are replayed |
| deepspeed.compile.init_z1_and_2.init_z1_and_2, init_z3.init_z3 | compiled with DeepCompile; of stage 3 its operators are recorded (deepspeed/deepcompile.py) |
"""
import sys

from shardscope import _core, _kinds as k, _records, _say, compiled_graphs
from shardscope._hooks import Adapter, Differs
from shardscope._session import session

events = _core.events
COMPILED = "what torch.compile compiled runs without the hooks of its modules: each call of a compiled graph is a span"
REPLAYED = "CUDA graphs are replayed: what is in them has no events"
DEEPCOMPILE = "compiled with DeepCompile, which takes DeepSpeed's hooks of modules and gradients out"


def adapters():
    return [Adapter("torch.compile", "torch._dynamo.callback", install_dynamo), *compiled_graphs.adapters(),
            Adapter("modules, before they are traced", "torch._dynamo.symbolic_convert", lambda table:
                    before_tracing(table, "InstructionTranslator.__init__")),
            Adapter("modules, before they are compiled", "torch.nn.modules.module", lambda table: before_tracing(table, "Module.compile")),
            Adapter("CUDA graphs", "torch.cuda.graphs", install_graphs),
            Adapter("DeepCompile, stage 3", "deepspeed.compile.init_z3", lambda table:
                    table.wrap("init_z3", "engine", after=deep_compiled_3)),
            Adapter("DeepCompile, stages 1 and 2", "deepspeed.compile.init_z1_and_2", lambda table:
                    table.wrap("init_z1_and_2", "engine", after=lambda *_, **__: deep_compiled()))]


class Compiling:
    now = False


class Traced:
    any = False  # dynamo has traced something, or it would not be known


def before_tracing(table, symbol):
    try:
        table.wrap(symbol, "self", before=lambda *_, **__: traced())
    except Differs:
        traced()


def traced():
    if not Traced.any:
        Traced.any = True
        modules = sys.modules.get("shardscope.modules")
        if modules is not None:
            modules.by_torch_s_hooks()


def install_dynamo(table):
    handler = "CompilationCallbackHandler."
    table.wrap(handler + "run_start_callbacks", "self", before=compile_begins)
    table.wrap(handler + "run_end_callbacks", "self", before=compile_ended)


def compile_begins(handler, *args, **kwargs):
    Compiling.now = True
    if session.started:
        _say.info(COMPILED)
        events.span_begin(k.HOST, session.name_id("torch.compile"), 0, 0)


def compile_ended(handler, *args, **kwargs):
    Compiling.now = False
    if session.started:
        events.span_end(k.HOST, session.name_id("torch.compile"), 0, 0)


def install_graphs(table):
    table.wrap("CUDAGraph.replay", "self", before=lambda graph: session.started and _say.info(REPLAYED))


def deep_compiled_3(_, result, engine, *args, **kwargs):
    from shardscope.deepspeed import deepcompile
    deep_compiled("" if deepcompile.watch(engine) else "param_status ")


def deep_compiled(more="param_status "):
    """`more`: what else is not recorded."""
    if session.started:
        _say.info(DEEPCOMPILE)
        session.not_recorded(more + "modules fetch_waits prefetches prefetch_reasons release_reasons trace "
                             "fetch_counters buckets flush_reasons collective_parts", DEEPCOMPILE)
