"""Records what DeepSpeed's stage-3 coordinator decides, in the format of tests/golden/coordinator.json.

usage: record_coordinator.py CASES.json OUT.json     (under the python of launch.ensure_venv)

CASES: {"traces": [{"id", "model", "world", "config"}], "invalidation": [the same with "block_visit_per_iteration"],
"models": {name: what json_models.tree_of reads}}; `config` holds stage-3 keys of zero_optimization, `world` a number or
several. A model is one of build() or of "models", which may have frozen parameters and modules that return some. A case may
also have "register_external": [[module path, parameter path]], output to DeepSpeed before the first iteration. A trace runs
four iterations. A case of "invalidation" may have "overflow_per_iteration" instead of block visits: such a run trains in
fp16, and where that is true the gradients are infinite and the step is skipped. Or it has "evaluate_per_iteration": where
that is true there is a forward in evaluation mode, without gradients, and nothing after it. Ranks are processes of this machine; what they decide must be alike, or the case fails; worlds that
decide alike are one trace. DeepSpeed's own profiler is switched on: "counters" of an iteration are what its
PartitionedParameterProfiler counted, as [count, num_elem] by name (they depend on the world).
"""
import json
import os
import pathlib
import sys
import tempfile
import traceback

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import formula_data
import json_models
import peer_models
import random_trees
from launch import free_port
from wrapped_methods import wrapper_of

COORDINATOR = "_PartitionedParameterCoordinator__"


def mlp(blocks, root, recomputed=False):
    def forward(self, x, y):
        x = self.inp(x)
        for index in self.visit:
            x = checkpoint(self.blk[index], x, use_reentrant=True) if recomputed else self.blk[index](x)
        return F.mse_loss(self.out(x), y)

    class Blk(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln, self.fc1, self.fc2 = nn.LayerNorm(64), nn.Linear(64, 256), nn.Linear(256, 64)

        def forward(self, x):
            return x + self.fc2(F.relu(self.fc1(self.ln(x))))

    model = type(root, (nn.Module,), {"forward": forward})()
    model.inp = nn.Linear(10, 64)
    model.blk = nn.ModuleList(Blk() for _ in range(blocks))
    model.out = nn.Linear(64, 1)
    model.visit = list(range(blocks))
    model.recomputed = set(model.blk) if recomputed else set()
    return model


def freeze(model, names):
    """Of the parameters whose name begins with one of these."""
    for name, param in model.named_parameters():
        param.requires_grad_(not name.startswith(names))
    return model


class MLPSpan(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(10, 100), nn.Linear(100, 5), nn.Linear(5, 1)

    def forward(self, x, y):
        return F.mse_loss(self.fc3(F.relu(self.fc2(F.relu(self.fc1(x))))), y)


def gpt(root, head, blocks=2, width=30, heads=3, vocabulary=59, visit=None):
    """`head`: own, tied, or functional (the token embedding is read in the root's forward)."""
    shape = peer_models.GptShape(layers=blocks, width=width, heads=heads, context=12, vocabulary=vocabulary)
    model = peer_models.torch_model("gpt", shape)
    model.__class__ = type(root, (model.__class__,), {})
    if head == "tied":
        model.head.weight = model.wte.weight
    if head == "functional":
        del model.head
    model.visit = visit or list(range(blocks))

    def forward(tokens, targets):
        x = model.wte(tokens) + model.wpe(torch.arange(tokens.shape[1]))
        for index in model.visit:
            x = model.h[index](x)
        x = model.lnf(x)
        logits = F.linear(x, model.wte.weight) if head == "functional" else model.head(x)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))

    model.forward = forward
    return model


def build(name):
    kind, random, seed = name.rpartition("_random_")
    if random:
        return random_trees.tree(seed) if kind == "mlp" else gpt("GPTRandom", **random_trees.gpt_shape(seed))
    if name == "mlp_reuse":
        model = mlp(2, "MLPReuse")
        model.visit = [0, 1, 0]
        return model
    if name == "gpt_tied_reuse":
        model = gpt("GPTTiedReuse", "tied")
        model.visit = [0, 1, 0]
        return model
    if name in ("mlp_frozen", "mlp_frozen_checkpoint"):
        return freeze(mlp(3, "MLPFrozen", name.endswith("checkpoint")), ("blk.0", "blk.1.fc1", "blk.2.fc2.weight"))
    return {"mlp": lambda: mlp(3, "MLP"), "mlp_visit": lambda: mlp(3, "MLPVisit"), "mlp_span": MLPSpan,
            "gpt": lambda: gpt("GPT", "own"), "gpt_tied": lambda: gpt("GPT", "tied"),
            "gpt_functional": lambda: gpt("GPTFunctional", "functional"),
            "gpt_visit": lambda: gpt("GPTVisit", "own", 3),
            "gpt_functional_visit": lambda: gpt("GPTFunctionalVisit", "functional", 3)}[name]()


def model_of(case):
    return json_models.torch_model(case["tree"]) if "tree" in case else build(case["model"])


def batch_of(case, micro, rank, dtype=torch.float32):
    """Input and target of a micro-step, as tensors; vectors in this type."""
    tokens = case["tree"]["input"]["kind"] == "tokens" if "tree" in case else case["model"].startswith("gpt")
    data = formula_data.gpt_batch(micro, rank, 4, 12) if tokens else formula_data.mlp_batch(micro, rank, 4)
    tensors = [torch.from_numpy(array) for array in data]
    return tensors if tokens else [tensor.to(dtype) for tensor in tensors]


def trained(model):
    return [param for param in model.parameters() if param.requires_grad]


class Recorder:
    """Wraps the coordinator's methods, all from outside."""

    def __init__(self):
        self.params = []
        self.ids = {}  # of modules, as DeepSpeed numbers them where none is a leaf
        self.events = None
        self.fetching = None
        self.mode = None
        self.before_step = None
        self.profiler = None

    def with_status(self, name):
        return [p.ds_id for p in self.params if p.ds_status.name == name]

    def counters(self):
        return {name: [counter.count, counter.num_elem]
                for name, counter in sorted(self.profiler.event_counters.items()) if counter.count}

    def note(self, **event):
        if self.events is not None:
            self.events.append({key: value for key, value in event.items() if value != []})

    def install(self):
        from deepspeed.runtime.zero import partitioned_param_coordinator as module
        module.ENABLE_PROFILER = True
        cls = module.PartitionedParameterCoordinator
        get = lambda coordinator, name: getattr(coordinator, COORDINATOR + name)
        recorder = self

        wrap = wrapper_of(cls)

        @wrap("fetch_sub_module")
        def _(coordinator, inner, sub_module, forward):
            before = set(recorder.with_status("AVAILABLE"))
            recorder.fetching = {"gather": [], "wait": [], "prefetch": []}
            own = {p.ds_id for p in module.iter_params(sub_module, recurse=module.z3_leaf_module(sub_module))}
            recorder.own = own
            inner(coordinator, sub_module, forward)
            seen, recorder.fetching = recorder.fetching, None
            completed = sorted(set(recorder.with_status("AVAILABLE")) - before)
            recorder.note(ev="fetch", module=recorder.ids[sub_module], dir="fwd" if forward else "bwd",
                          gather=sorted(seen["gather"]), wait=sorted(seen["wait"]), completed=completed,
                          prefetch=sorted(seen["prefetch"]), inflight_after=recorder.with_status("INFLIGHT"),
                          n_available=get(coordinator, "n_available_params"))

        @wrap(COORDINATOR + "all_gather_params_")
        def _(coordinator, inner, params, forward, quantize=False):
            if recorder.fetching is not None:
                missing = [p.ds_id for p in params if p.ds_status.name == "NOT_AVAILABLE"]
                kind = "gather" if missing and set(missing) <= recorder.own else "prefetch"
                recorder.fetching[kind] += missing
            return inner(coordinator, params, forward, quantize)

        @wrap("_invalidate_trace")
        def _(coordinator, inner):
            order, step = get(coordinator, "submodule_order"), get(coordinator, "step_id")
            before = set(recorder.with_status("AVAILABLE")) | set(recorder.with_status("INFLIGHT"))
            inner(coordinator)
            recorder.note(ev="invalidate", step_id=step, recorded_len=len(order),
                          expected_module=recorder.ids[order[step]] if step < len(order) else None,
                          ids=sorted(before & set(recorder.with_status("NOT_AVAILABLE"))),
                          n_available=get(coordinator, "n_available_params"))

        def released(coordinator, inner, arguments):
            before = set(recorder.with_status("AVAILABLE")) | set(recorder.with_status("INFLIGHT"))
            inner(coordinator, *arguments)
            return sorted(before & set(recorder.with_status("NOT_AVAILABLE")))

        @wrap("release_sub_module")
        def _(coordinator, inner, sub_module, forward=False):
            ids = released(coordinator, inner, (sub_module, forward))
            recorder.note(ev="release", module=recorder.ids[sub_module], dir="fwd" if forward else "bwd", ids=ids,
                          n_available=get(coordinator, "n_available_params"))

        @wrap("release_backward_leftovers")
        def _(coordinator, inner):
            ids = released(coordinator, inner, ())
            if ids:
                recorder.note(ev="release_leftovers", ids=ids, n_available=get(coordinator, "n_available_params"))

        @wrap("release_and_reset_all")
        def _(coordinator, inner, root):
            recorder.before_step = get(coordinator, "n_available_params")
            ids = released(coordinator, inner, (root,))
            if ids:
                recorder.note(ev="release_all", ids=ids, n_available=get(coordinator, "n_available_params"))

        @wrap("reset_step")
        def _(coordinator, inner):
            inner(coordinator)
            recorder.mode = get(coordinator, "trace_mode").name
            recorder.profiler = get(coordinator, "profiler")

        pop = module.InflightParamRegistry.pop

        def popped(registry, param, *default):
            if recorder.fetching is not None:
                recorder.fetching["wait"].append(param.ds_id)
            return pop(registry, param, *default)

        module.InflightParamRegistry.pop = popped


def describe(model, world):
    modules = [{"id": index, "name": name or "(root)", "type": type(m).__name__,
                "params": [{"name": n, "ds_id": p.ds_id} for n, p in m.named_parameters(recurse=False)],
                **({"checkpoint": True} if m in getattr(model, "recomputed", ()) else {})}
               for index, (name, m) in enumerate(model.named_modules())]
    params = [(n, p) for n, p in model.named_parameters()]
    frozen = lambda p: {} if p.requires_grad else {"trainable": False}
    return {"modules": modules,
            "params": [{"ds_id": p.ds_id, "name": n, "shape": list(p.ds_shape), "numel": p.ds_numel, **frozen(p)}
                       for n, p in params],
            "total_numel": sum(p.ds_numel for _, p in params),
            "partition": {str(world): {"partition_numel": [p.ds_tensor.ds_numel for _, p in params],
                                       "padding": [p.ds_tensor.ds_numel * world - p.ds_numel
                                                   for _, p in params]}}}


def record(case, rank):
    import deepspeed
    torch.set_num_threads(1)
    torch.manual_seed(0)
    recorder = Recorder()
    recorder.install()
    deepspeed.init_distributed("gloo")
    model = model_of(case)
    world = case["world"]
    config = {"train_micro_batch_size_per_gpu": 4,
              "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}},
              "zero_optimization": {"stage": 3, **case["config"]}}
    overflows = case.get("overflow_per_iteration")
    if overflows:
        # DeepSpeed refuses fp16 on the CPU, which computes in it all the same.
        deepspeed.get_accelerator().is_fp16_supported = lambda: True
        config["fp16"] = {"enabled": True, "initial_scale_power": 8}
    engine, *_ = deepspeed.initialize(model=model, config=config, model_parameters=trained(model))
    for module, param in case.get("register_external", []):
        deepspeed.zero.register_external_parameter(model.get_submodule(module), json_models.parameter(model, param))
    recorder.ids = {m: index for index, m in enumerate(model.modules())}
    recorder.params = sorted(model.parameters(), key=lambda p: p.ds_id)
    visits = case.get("block_visit_per_iteration")
    evaluates = case.get("evaluate_per_iteration")
    iterations = []
    for micro in range(len(visits or overflows or evaluates or [None] * 4)):
        if visits:
            model.visit = visits[micro]
        if "tree" in case:
            model.shared["iteration"] = micro
        recorder.events = []
        start = recorder.with_status("AVAILABLE")
        if evaluates and evaluates[micro]:
            engine.eval()
            with torch.no_grad():
                engine(*batch_of(case, micro, rank))
            engine.train()
            iterations.append({"mode": recorder.mode, "available_at_start": start, "events": recorder.events,
                               "available_after_step": recorder.with_status("AVAILABLE"),
                               "counters": recorder.counters()})
            recorder.events = None
            continue
        loss = engine(*batch_of(case, micro, rank, torch.float16 if overflows else torch.float32))
        engine.backward(loss * float("inf") if overflows and overflows[micro] else loss)
        engine.step()
        iterations.append({"mode": recorder.mode, "available_at_start": start, "events": recorder.events,
                           "n_available_before_step": recorder.before_step,
                           "available_after_step": recorder.with_status("AVAILABLE"),
                           "counters": recorder.counters()})
        recorder.events = None
    external = {str(index): sorted(p.ds_id for _, p in m.ds_external_parameters())
                for m, index in recorder.ids.items() if hasattr(m, "ds_id")}
    result = {"persisted": [p.ds_id for p in recorder.params if p.ds_persist],
              "external_params": {key: ids for key, ids in external.items() if ids}, "iterations": iterations}
    return result, describe(model, world)


def as_trace(result):
    first, second, third, fourth = result.pop("iterations")
    for iteration in (first, second, third, fourth):
        del iteration["mode"]
    return {**result, "record": first, "complete": second, "second_complete_identical": third == second,
            "third_complete_identical_to_second": fourth == third}


def run(case, work):
    """What work(case, rank) returns on each rank, each a process: DeepSpeed numbers parameters for a process's life."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()), WORLD_SIZE=str(case["world"]))
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for rank in range(case["world"]):
            child = os.fork()
            if child == 0:
                os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
                try:
                    pathlib.Path(folder, str(rank)).write_text(json.dumps(work(case, rank)))
                    os._exit(0)
                except BaseException:
                    traceback.print_exc()
                    os._exit(1)
            children.append(child)
        if any([os.waitpid(child, 0)[1] for child in children]):
            raise RuntimeError(f"{case['id']}: a rank failed")
        return [json.loads(pathlib.Path(folder, str(rank)).read_text()) for rank in range(case["world"])]


def decided(case):
    ranks = run(case, record)
    if any(other != ranks[0] for other in ranks):
        raise RuntimeError(f"{case['id']}: the ranks decide differently")
    return ranks[0]


def decided_in_all(case):
    """The one result of all worlds of a case, and its model with the partitions of each."""
    worlds = case["world"] if isinstance(case["world"], list) else [case["world"]]
    results, models = zip(*(decided({**case, "world": world}) for world in worlds))
    if len(worlds) > 1:
        for result in results:
            for iteration in result["iterations"]:
                del iteration["counters"]
        if any(other != results[0] for other in results):
            raise RuntimeError(f"{case['id']}: the worlds decide differently; record them one by one")
    for model in models[1:]:
        models[0]["partition"].update(model["partition"])
    return results[0], models[0], worlds


def main():
    import deepspeed
    cases = json.loads(pathlib.Path(sys.argv[1]).read_text())
    trees = {name: json_models.tree_of(name, definition) for name, definition in cases.get("models", {}).items()}
    out = {"versions": {"deepspeed": deepspeed.__version__, "torch": torch.__version__ + " CPU, gloo"},
           "legend": {"counters": "of DeepSpeed's PartitionedParameterProfiler in one iteration, [count, num_elem] by "
                                  "name, only those counted; fetch_* in partition elements, the others in whole ones",
                      "tree": "of a model: the module tree as zero_train reads it; where it says that a module returns "
                              "parameters, DeepSpeed's module returned them beside its result, and a functional_linear "
                              "around it used what was returned",
                      "trainable": "false for a parameter without requires_grad; missing for the others",
                      "register_external": "[module, parameter] told to zero.register_external_parameter before the "
                                           "first iteration",
                      "evaluate_per_iteration": "where true, the iteration is a forward under engine.eval() and no_grad: "
                                                "no backward and no step; available_after_step is at its end",
                      "the rest": "as in coordinator.json"}, "models": {}, "traces": [], "invalidation": []}
    for kind in ("traces", "invalidation"):
        for case in cases.get(kind, []):
            tree = {"tree": trees[case["model"]]} if case["model"] in trees else {}
            try:
                result, model, worlds = decided_in_all({**case, **tree})
            except RuntimeError as error:
                print(error, file=sys.stderr)
                continue
            known = out["models"].setdefault(case["model"], {**tree, **model})
            known["partition"].update(model["partition"])
            result["mode_after_reset_per_iteration"] = [i["mode"] for i in result["iterations"]]
            if kind == "traces":
                del result["mode_after_reset_per_iteration"]
                result = as_trace(result)
            out[kind].append({**case, "world": worlds, **result})
            print(case["id"], flush=True)
    pathlib.Path(sys.argv[2]).write_text(json.dumps(out, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
