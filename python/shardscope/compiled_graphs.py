"""Calls of the graphs that torch.compile has compiled, a span each: `compiled graph N, forward`, `recompute` or `backward`.

| symbol | event |
|---|---|
| torch._dynamo.output_graph.OutputGraph.install_global_unsafe | a graph has been compiled, by whichever backend: every call of it |
| torch.autograd.graph.Node.register_prehook, register_hook of AOTAutograd's CompiledFunctionBackward | whose backward runs |
| torch._functorch._aot_autograd.runtime_wrappers.call_func_at_runtime_with_args | the call of its compiled backward |

Every compiled graph passes install_global_unsafe: dynamo's bytecode calls it by the global's name. Graphs are numbered as they are
compiled, from 0. The backward of a graph is compiled by AOTAutograd (inductor, aot_eager); that of the backend "eager" is not, and
compiled autograd compiles the whole backward in a graph of its own.
"""
import functools
import sys
import threading
import weakref

from shardscope import _core, _kinds as k, _hooks
from shardscope._hooks import Adapter, Differs
from shardscope._session import session

events = _core.events
PREFIX = "__compiled_fn"  # of the global's name
NODE = "CompiledFunctionBackward"
DEEPEST = 3  # an output that is a view is made from the graph's own one: nodes between the two
PASSES = {k.PASS_FORWARD: "forward", k.PASS_RECOMPUTE: "recompute", k.PASS_BACKWARD: "backward"}


def adapters():
    return [Adapter("compiled graphs", "torch._dynamo.output_graph", install),
            Adapter("compiled graphs, backward", "torch._functorch._aot_autograd.runtime_wrappers", install_backward)]


class Graphs:
    made = 0
    of_node = weakref.WeakKeyDictionary()  # class of the nodes of a graph's backward -> Graph


class Running(threading.local):
    graph = None  # whose backward runs and has not been called yet: its saved tensors may first be recomputed


def install_backward(table):
    table.wrap("call_func_at_runtime_with_args", "f args steal_args disable_amp", before=backward_begins,
               after=lambda name, *_, **__: Graph.span_ended(name), raised=Graph.span_ended)


def backward_begins(*_, **__):
    graph, running.graph = running.graph, None
    return None if graph is None else graph.span_begins(k.PASS_BACKWARD)


running = Running()


def install(table):
    from torch._dynamo import bytecode_transformation
    owner = table.owner("OutputGraph")
    inner = vars(owner).get("install_global_unsafe")
    if inner is None:
        raise Differs(f"{table.module.__name__}.OutputGraph.install_global_unsafe is not there")
    _hooks.check_parameters(f"{table.module.__name__}.OutputGraph.install_global_unsafe", inner, "self name value")
    if not names_graphs_as_expected(owner, bytecode_transformation):
        raise Differs(f"{table.module.__name__}.OutputGraph names compiled graphs in another way")
    adapter = table.adapter

    @functools.wraps(inner)
    def install_global(self, name, value):
        if adapter.on and isinstance(name, str) and name.startswith(PREFIX):
            try:
                value = Graph(adapter).wrapped(value)
            except Exception as error:
                adapter.failed("OutputGraph.install_global_unsafe", error)
        return inner(self, name, value)

    table.replace(owner, "install_global_unsafe", install_global)


def names_graphs_as_expected(owner, bytecode_transformation):
    names = getattr(bytecode_transformation, "COMPILED_FN_PREFIX", None)
    literals = getattr(getattr(getattr(owner, "compile_and_call_fx_graph", None), "__code__", None), "co_consts", ())
    return PREFIX in (names, *(each for each in literals if isinstance(each, str)))


class Graph:
    def __init__(self, adapter):
        self.adapter, self.number = adapter, Graphs.made
        Graphs.made += 1

    def wrapped(self, function):
        """The graph's function with a span around each call. Dynamo must not trace our hooks; its own function is excluded
        already, and is excluded anew around them."""
        from torch._dynamo import disable
        own = getattr(function, "_torchdynamo_orig_callable", function)
        call = _core.Wrapper(own, self.begin, self.ended, self.raised, self.failed, self.adapter.switch)
        return disable(call, reason="do not trace Dynamo-compiled graph")

    def failed(self, error):
        self.adapter.failed(f"compiled graph {self.number}", error)

    def span_begins(self, which):
        """The span's name, for events.span_end(); None while nothing is recorded."""
        if not session.started:
            return None
        name = session.name_id(f"compiled graph {self.number}, {PASSES[which]}")
        events.span_begin(k.COMPUTE, name, 0, 0)
        return name

    @staticmethod
    def span_ended(name):
        if name is not None and session.started:
            events.span_end(k.COMPUTE, name, 0, 0)

    def begin(self, *args, **kwargs):
        around, running.graph = running.graph, None
        return self.span_begins(session.forward_pass()), around

    def ended(self, token, result, *args, **kwargs):
        self.raised(token)
        if token is not None and token[0] is not None:
            self.watch_backward(result)

    @staticmethod
    def raised(token):
        if token is not None:
            running.graph = token[1]
            Graph.span_ended(token[0])

    def watch_backward(self, result):
        if getattr(sys.modules.get("torch._dynamo.compiled_autograd"), "compiled_autograd_enabled", False):
            return
        node = self.node_of(result if isinstance(result, (tuple, list)) else (result,))
        if node is not None:
            node.register_prehook(self.backward_runs)
            node.register_hook(self.backward_ran)

    def backward_runs(self, _):
        running.graph = self if self.adapter.on else None

    @staticmethod
    def backward_ran(*_):
        running.graph = None

    def node_of(self, outputs):
        """The node of this call's backward; None if it needs none. An output may have come from another graph: all nodes of
        one have a class of their own, which is known from its first call."""
        for output in outputs:
            node = getattr(output, "grad_fn", None)
            for _ in range(DEEPEST):
                if node is None:
                    break
                if type(node).__name__ == NODE:
                    if Graphs.of_node.setdefault(type(node), self) is self:
                        return node
                    break
                node = node.next_functions[0][0] if node.next_functions else None
        return None
