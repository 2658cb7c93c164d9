"""What is compiled or replayed: its training is as without Shardscope, and the recording says what it does not have.

    tests/attach/run compiled_test
"""
import collections
import json
import unittest

import runs
from compiled_graphs_test import called, spans_of_graphs
from pairs import BLOCKS, folder

STEPS = 3
# OUT HOW: "" for nothing more, "aot" for a backend whose backward is compiled too, "late" for one module of each block, in one graph, after
# the first step, "deep" for DeepCompile's entry, called as DeepSpeed's
# engine calls it, "replay" for a CUDA graph.
SCRIPT = """
import json, sys, types
import torch
import torch.distributed as dist
sys.path.insert(0, TESTS)
import train
from torch.distributed.fsdp import fully_shard

out, how = sys.argv[1:]
torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(7)
model = train.Net()
for block in model.blocks:
    fully_shard(block)
    if how != "late":
        block.compile(backend="aot_eager" if how == "aot" else "eager")
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
losses = []
for index in range(STEPS):
    loss = model(*train.batch(index, dist.get_rank()))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item().hex())
    for block in model.blocks if how == "late" and index == 0 else ():
        block.up.compile(backend="eager", fullgraph=True)
if how == "deep":
    from deepspeed.compile import init_z3
    assert init_z3.init_z3(types.SimpleNamespace(), None, None, {}) == "compiled"
if how == "replay":
    from torch.cuda.graphs import CUDAGraph
    try:
        CUDAGraph.replay(types.SimpleNamespace(_tracker=None, _retained=types.SimpleNamespace(sync_before_fire=False)))
    except (AttributeError, TypeError) as error:
        assert "hook" not in str(error)  # of torch's own: there is no graph
    else:
        raise AssertionError("it was replayed")
with open(f"{out}.{dist.get_rank()}", "w", encoding="utf-8") as file:
    json.dump([losses, train.digest(model.named_parameters())], file)
dist.barrier()
dist.destroy_process_group()
"""
# Beside the script, so that it is found before DeepSpeed's own, of which it has the entry and its parameters.
DEEP = """
def init_z3(engine, backend, compile_config, compile_kwargs, schedule=None):
    return "compiled"
"""
# DeepSpeed's own modules have what the adapters look for.
REAL = """
from deepspeed.compile import init_z1_and_2, init_z3
import torch.cuda.graphs, torch._dynamo.callback
wrapped = [init_z3.init_z3, init_z1_and_2.init_z1_and_2, torch.cuda.graphs.CUDAGraph.replay,
           torch._dynamo.callback.CompilationCallbackHandler.run_start_callbacks, torch._dynamo.callback.CompilationCallbackHandler.run_end_callbacks]
assert [type(each).__name__ for each in wrapped] == ["Wrapper"] * 5, wrapped
from torch._dynamo.output_graph import OutputGraph
assert OutputGraph.install_global_unsafe.__module__ == "torch._dynamo.output_graph" and OutputGraph.install_global_unsafe.__wrapped__
"""

# DeepSpeed's own init_z3 over an engine on the CPU, with operators in place of those that need a GPU: of the same schema, and
# called by a compiled graph as DeepCompile's are.
OPERATORS = """
import sys, types
import torch
sys.path.insert(0, TESTS)
import train
import deepspeed
from deepspeed.compile import init_z3, util

def nothing(*_, **__):
    return None

dc = torch.library.Library("dc", "DEF")
for schema in ("allgather_param(Tensor a, int graph_id, int id, ScalarType? dtype = None) -> Tensor",
               "wait_allgather(Tensor a, int graph_id, int id) -> Tensor",
               "release_param(Tensor a, int graph_id, int id, int n_users) -> Tensor",
               "free_tensors(Tensor[] a) -> ()", "end_backward(Tensor a) -> ()",
               *(f"{name}(Tensor a, int graph_id, int id) -> Tensor" for name in
                 ("reduce_grad", "offload_tensor", "reload_tensor", "wait_offload", "wait_reload")),
               "prefetch_params_fused(int graph_id, Tensor[] params, int[] ids, ScalarType[]? dtypes = None) -> ()"):
    dc.define(schema)
    dc.impl(schema.split("(")[0], nothing if schema.endswith("()") else (lambda a, *_: a.clone()), "CompositeExplicitAutograd")
util.dc_handle = types.SimpleNamespace(init=nothing, register_z3_param=nothing, set_persistent=nothing, cleanup=nothing)

torch.set_num_threads(1)
deepspeed.init_distributed("gloo")
model = train.Net()
engine, *_ = deepspeed.initialize(model=model, config={"train_micro_batch_size_per_gpu": train.BATCH, "compile": {"deepcompile": True},
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
    "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0}})
engine.backward(engine(*train.batch(0, torch.distributed.get_rank())))
engine.step()
params = list(model.parameters())[:4]
ids = [param.ds_id for param in params]
init_z3.init_z3(engine, "eager", engine._config.compile_config, {})
util.dc_handle.set_persistent(ids[3])
ops = torch.ops.dc
torch.fx.node.has_side_effect(ops.prefetch_params_fused.default)  # it returns nothing

@torch.compile(backend="aot_eager")
def graph(x):
    one = ops.wait_allgather.default(ops.allgather_param.default(x, 5, ids[0]), 5, ids[0])
    ops.prefetch_params_fused.default(5, [x, x], ids[1:3])
    y = ops.release_param.default(one + 1, 5, ids[0], 2)
    for number in ids[1:3]:
        y = ops.release_param.default(ops.wait_allgather.default(y, 5, number), 5, number, 1)
    return ops.release_param.default(ops.release_param.default(y, 5, ids[0], 2), 5, ids[3], 1)

for _ in range(3):
    graph(torch.ones(3))
torch.distributed.barrier()
"""


def setUpModule():
    for name in ("", "deep"):
        (folder() / f"compiled{name}").mkdir()
        (folder() / f"compiled{name}" / "train_compiled.py").write_text(
            SCRIPT.replace("TESTS", repr(str(runs.HERE))).replace("STEPS", str(STEPS)), encoding="utf-8")
    package = folder() / "compileddeep" / "deepspeed" / "compile"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "init_z3.py").write_text(DEEP, encoding="utf-8")


class Compiled(unittest.TestCase):
    def attached(self, how=""):
        """(the recording's path, what each rank wrote); made once."""
        script = folder() / f"compiled{how if how == 'deep' else ''}" / "train_compiled.py"
        made, out = folder() / f"compiled-{how}.zscope", folder() / f"compiled-{how}.out"
        if not made.exists():
            output = runs.finish(runs.start(runs.attach(made) + runs.torchrun(script, out, how)))
            self.assertNotIn("is off", output)
        return made, [json.loads((folder() / f"{out.name}.{rank}").read_text(encoding="utf-8")) for rank in range(2)]

    def messages(self, made, rank):
        return [row["text"] for row in runs.read(made).table("messages") if row["rank"] == str(rank)]

    def test_training_is_bit_for_bit_the_plain_one(self):
        for how in ("", "aot", "late"):
            with self.subTest(how=how):
                out = folder() / f"compiled{how}.plain"
                runs.finish(runs.start(runs.torchrun(folder() / "compiled" / "train_compiled.py", out, how)))
                self.assertEqual(runs.results(out), self.attached(how)[1])

    def test_each_call_of_blocks_is_a_span_in_both_passes_if_both_are_compiled(self):
        calls = STEPS * BLOCKS  # one graph of all blocks: their parameters are its inputs
        for how, passes in (("", ["forward"]), ("aot", ["forward", "backward"])):
            with self.subTest(how=how):
                made, _ = self.attached(how)
                for rank in range(2):
                    self.assertEqual(called(made, rank), {(0, each): calls for each in passes})
                    # Inside a block's own span in the forward, and inside the phase in the backward.
                    recording = runs.read(made)
                    blocks = [s for s in recording.spans_of(rank, "module_begin") if s["a"] in self.blocks_of(made) and s["code"] == "0"]
                    backwards = [s for s in recording.spans_of(rank, "phase_begin") if s["code"] == "1"]
                    for _, name, begin, end in spans_of_graphs(made, rank):
                        around = [s for s in (blocks if name == "forward" else backwards)
                                  if int(s["begin_ns"]) <= begin and end <= int(s["end_ns"])]
                        self.assertEqual(len(around), 1)

    def test_modules_beside_those_that_are_compiled_later_have_their_spans(self):
        """Until dynamo traces something, calls of modules have a wrapper that it could not trace."""
        made, _ = self.attached("late")
        modules = {m["module"]: m["path"].rpartition(".")[2] for m in runs.read(made).modules}
        for rank in range(2):
            spans = collections.Counter((modules[s["a"]], s["code"]) for s in runs.read(made).spans_of(rank, "module_begin"))
            for name, steps in (("norm", STEPS), ("down", STEPS), ("up", 1)):
                self.assertEqual([spans[name, kind] for kind in "01"], [steps * BLOCKS] * 2, name)

    @staticmethod
    def blocks_of(made):
        return {m["module"] for m in runs.read(made).modules if m["type"] in ("Block", "FSDPBlock")}

    def test_compiling_is_a_span_and_gathers_go_on(self):
        made, _ = self.attached()
        recording = runs.read(made)
        for rank in range(2):
            compiling = [s for s in recording.spans_of(rank, "span_begin") if s["stream"] == "host"]
            self.assertGreaterEqual(len(compiling), 1)
            self.assertEqual([s["open_until_ns"] for s in compiling if s["open_until_ns"]], [])
            first_step = recording.spans_of(rank, "step_begin")[0]
            for span in compiling:
                self.assertTrue(int(first_step["begin_ns"]) <= int(span["begin_ns"]) <= int(span["end_ns"]) <= int(first_step["end_ns"]),
                                "the blocks are compiled in the first step, and never again")
            ops = collections.Counter(int(e["code"]) for e in recording.of(rank, "collective_submitted") if e["b"] not in ("", "4294967295"))
            self.assertEqual((ops[0], ops[1]), (STEPS * (2 * BLOCKS + 1), STEPS * (BLOCKS + 1)))
            self.assertTrue(any("torch.compile" in text for text in self.messages(made, rank)))
            self.assertFalse(any("DeepCompile" in text or "CUDA graphs" in text for text in self.messages(made, rank)))

    def test_deep_compile_takes_back_what_its_hooks_would_record(self):
        without = runs.figures(self.attached()[0])["run"]
        made, _ = self.attached("deep")
        compiled = runs.figures(made)["run"]
        gone = set(without["records"]) - set(compiled["records"])
        self.assertEqual(gone, {"modules", "param_status", "fetch_waits", "prefetches", "release_reasons", "buckets", "flush_reasons",
                                "collective_parts"})
        why = {what: row["why"] for row in compiled["not_recorded"] for what in row["what"]}
        for what in gone:
            self.assertIn("DeepCompile", why[what])
        self.assertTrue(any("DeepCompile" in text for text in self.messages(made, 0)))

    def test_parameters_in_deep_compiled_graphs(self):
        """Of the second and the third call: in the first one the graph is traced as well."""
        script, made = folder() / "compiled" / "operators.py", folder() / "compiled-operators.zscope"
        script.write_text(OPERATORS.replace("TESTS", repr(str(runs.HERE))), encoding="utf-8")
        output = runs.finish(runs.start(runs.attach(made) + runs.torchrun(script)))
        self.assertNotIn("is off", output)
        run = runs.figures(made)["run"]
        self.assertIn("param_status", run["records"])
        self.assertNotIn("modules", run["records"])
        recording = runs.read(made)
        for rank in range(2):
            fetch, prefetch, persistent, release = 0, 1, 2, 4
            absent, coming, there = 0, 1, 2
            events = [(int(e["a"]), int(e["code"]) & 7, int(e["code"]) >> 4) for e in recording.of(rank, "param_status")]
            one_call = [(0, coming, fetch), (0, there, fetch), (1, coming, prefetch), (2, coming, prefetch), (1, there, fetch),
                        (1, absent, release), (2, there, fetch), (2, absent, release), (0, absent, release)]
            self.assertEqual(events[-2 * len(one_call):], 2 * one_call)
            self.assertEqual([event[1:] for event in events if event[0] == 3][-1], (there, persistent))

    def test_a_replayed_graph_is_said(self):
        made, _ = self.attached("replay")
        for rank in range(2):
            self.assertTrue(any("CUDA graphs are replayed" in text for text in self.messages(made, rank)))

    def test_symbols_are_those_of_the_real_packages(self):
        script = folder() / "compiled" / "real.py"
        script.write_text(REAL, encoding="utf-8")
        output = runs.finish(runs.start(runs.attach(folder() / "compiled-real.zscope") + [runs.PYTHON, script]), expected=None)
        self.assertNotIn("Error", output)
        self.assertNotIn("is off", output)


if __name__ == "__main__":
    unittest.main()
