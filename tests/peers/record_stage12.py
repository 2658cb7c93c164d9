"""Records layouts, bucket flushes and collectives of DeepSpeed's stages 1 and 2, in the format of tests/golden/stage12.json.

usage: record_stage12.py CASES.json OUT.json     (under the python of launch.ensure_venv)

CASES: {"cases": [{"run", "model", "stage", "world", "gradient_accumulation_steps", "config"}], "models": as of
record_coordinator.py}, or the list alone; `config` holds keys of zero_optimization. Every case is one step; gradients of the
first one are recorded with each layout.
"""
import json
import pathlib
import sys

import torch

import formula_data
import json_models
import record_coordinator
from wrapped_methods import wrapper_of

PARAMETERS = ("id", "name", "shape", "numel")


class Recorder:
    """Wraps the optimizer's methods and deepspeed.comm, all from outside."""

    def __init__(self):
        self.flushes, self.micro, self.trigger = [], 0, "epilogue"
        self.flush, self.base = None, None
        self.elements, self.in_step = None, False

    def slices(self, tensors, ranks):
        offset = lambda tensor: (tensor.data_ptr() - self.base.data_ptr()) // tensor.element_size()
        return [[rank if isinstance(rank, int) else min(rank), offset(tensor), tensor.numel()]
                for tensor, rank in zip(tensors, ranks)]

    def issued(self, op, tensors, **more):
        if self.flush is not None:
            self.flush["collectives"].append({"op": op, "numel": sum(t.numel() for t in tensors), **more})

    def install(self):
        from deepspeed import comm
        from deepspeed.runtime.zero.stage_1_and_2 import DeepSpeedZeroOptimizer as cls
        recorder = self

        wrap = wrapper_of(cls)

        @wrap("reduce_independent_p_g_buckets_and_remove_grads")
        def _(optimizer, inner, param, group):
            recorder.trigger = optimizer.get_param_id(param)
            inner(optimizer, param, group)
            recorder.trigger = "epilogue"

        @wrap("reduce_ipg_grads")
        def _(optimizer, inner, comm_dtype=None):
            (bucket,) = optimizer.ipg_buckets.values()
            recorder.flush = {"micro": recorder.micro, "trigger": recorder.trigger,
                              "params": [param for _, _, param in bucket.params], "elements": int(bucket.elements),
                              "extra_large": bool(optimizer.extra_large_param_to_reduce),
                              "buffer_index": bucket.index, "collectives": []}
            recorder.flushes.append(recorder.flush)
            inner(optimizer, comm_dtype)
            recorder.flush = None

        @wrap("average_tensor")
        def _(optimizer, inner, tensor, dtype):
            recorder.base = tensor
            inner(optimizer, tensor, dtype)

        @wrap("allreduce_and_copy_with_multiple_ranks")
        def _(optimizer, inner, tensors, *a, bucket_ranks=None, **k):
            recorder.issued("all_reduce", tensors, slices=recorder.slices(tensors, bucket_ranks))
            return inner(optimizer, tensors, *a, bucket_ranks=bucket_ranks, **k)

        @wrap("allreduce_and_copy")
        def _(optimizer, inner, tensors, *a, rank=None, **k):
            if rank is not None:
                recorder.issued("reduce", tensors, dst=rank, slices=recorder.slices(tensors, [rank] * len(tensors)))
            return inner(optimizer, tensors, *a, rank=rank, **k)

        @wrap("gradient_reduction_w_predivide")
        def _(optimizer, inner, tensor, dtype):
            if tensor.numel() > 0:
                recorder.issued("all_reduce", [tensor], whole_bucket=True)
            return inner(optimizer, tensor, dtype)

        def count(name):
            inner = getattr(comm, name)

            def counted(tensor, *a, **k):
                if recorder.elements is not None:
                    moved = a[0] if name.startswith("all_gather") else tensor
                    key = name + ("_step" if recorder.in_step else "")
                    recorder.elements[key] = recorder.elements.get(key, 0) + moved.numel()
                return inner(tensor, *a, **k)
            setattr(comm, name, counted)

        for name in ("all_reduce", "reduce", "all_gather_into_tensor", "all_gather"):
            count(name)


def shard(optimizer, rank):
    """What the averaged gradients of this rank's partition add up to."""
    grads = torch.cat([g.double().flatten() for g in optimizer.averaged_gradients[0]])
    elems = int(optimizer.partition_size[0])
    return {"rank": rank, "sum": grads.sum().item(), "l2": grads.norm().item(), "numel_with_padding": elems}


def record(case, rank):
    import deepspeed
    torch.set_num_threads(1)
    deepspeed.init_distributed("gloo")
    recorder = Recorder()
    recorder.install()
    model = record_coordinator.model_of(case)
    parameters = list(model.parameters())
    with torch.no_grad():
        for index, (name, param) in enumerate(model.named_parameters()):
            param.copy_(torch.from_numpy(formula_data.initial_weight(name, index, tuple(param.shape))))
    arrival = []
    for index, param in enumerate(parameters):
        param.register_post_accumulate_grad_hook(lambda _, index=index: arrival.append(index))
    parts = case["gradient_accumulation_steps"]
    config = {"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": parts,
              "optimizer": {"type": "AdamW", "torch_adam": True, "params": {"lr": 1e-3}},
              "zero_optimization": {"stage": case["stage"], **case["config"]}, "zero_allow_untested_optimizer": True}
    engine, *_ = deepspeed.initialize(model=model, config=config, model_parameters=parameters)
    optimizer = engine.optimizer
    recorder.flushes, recorder.elements = [], {}
    for recorder.micro in range(parts):
        arrival.clear()
        engine.backward(engine(*record_coordinator.batch_of(case, recorder.micro, rank)))
        if recorder.micro + 1 == parts:
            gradients = shard(optimizer, rank)
        recorder.in_step = True
        engine.step()
        recorder.in_step = False
    ids = lambda params: [optimizer.get_param_id(param) for param in params]
    ranks = range(case["world"])
    offsets = lambda table: {str(r): {str(param): int(at) for param, at in table[0][r].items()} for r in ranks}
    order = ids(optimizer.round_robin_bit16_groups[0])
    layout = {"model": case["model"], "world": case["world"],
              "round_robin_gradients": case["config"].get("round_robin_gradients", False),
              "flat_size": optimizer.bit16_groups_flat[0].numel(), "partition_size": int(optimizer.partition_size[0]),
              "order": order, "index_map": [order.index(index) for index in range(len(order))],
              "param_to_partition_ids": {str(p): owners for p, owners in optimizer.param_to_partition_ids[0].items()},
              "grad_start_offset": offsets(optimizer.grad_start_offset),
              "insertion_offset": offsets(optimizer.grad_partition_insertion_offset)}
    mine = {"rank": rank, "padding": int(optimizer.groups_padding[0]),
            "params_in_partition": ids(optimizer.params_in_partition[0]), "first_offset": int(optimizer.first_offset[0])}
    parameters = [dict(zip(PARAMETERS, (index, name, list(param.shape), param.numel())))
                  for index, (name, param) in enumerate(model.named_parameters())]
    tree = {"tree": case["tree"]} if "tree" in case else {}
    return {"layout": layout, "rank": mine, "gradients": gradients, "flushes": recorder.flushes,
            "elements": recorder.elements, "model": {**tree, "params": parameters, "grad_arrival_order": arrival}}


def add(out, case, ranks):
    """The ranks' accounts of one case, which must be alike, into the file."""
    alike = ("layout", "flushes", "elements", "model")
    if any(other[key] != ranks[0][key] for other in ranks for key in alike):
        raise RuntimeError(f"run {case['run']}: the ranks decide differently")
    first = ranks[0]
    out["models"].setdefault(case["model"], first["model"])
    if out["models"][case["model"]] != first["model"]:
        raise RuntimeError(f"run {case['run']}: another order of gradients than before")
    layout = {**first["layout"], "ranks": [rank["rank"] for rank in ranks]}
    key = f"gas{case['gradient_accumulation_steps']}"
    for known in out["layouts"]:
        if all(known[name] == value for name, value in layout.items()):
            layout = known
            break
    else:
        out["layouts"].append(layout)
    layout.setdefault("grad_shard_first_step", {})[key] = [rank["gradients"] for rank in ranks]
    out["sequences"].append({"seq": case["run"], "flushes": first["flushes"]})
    output = {key: value for key, value in case.items() if key != "tree"}
    out["runs"].append({**output, "flush_seq": case["run"], "comm_elements_per_rank": first["elements"]})


def main():
    import deepspeed
    out = {"versions": {"deepspeed": deepspeed.__version__, "torch": torch.__version__ + " CPU, gloo"},
           "legend": "as in stage12.json", "models": {}, "layouts": [], "sequences": [], "runs": []}
    given = json.loads(pathlib.Path(sys.argv[1]).read_text())
    given = given if isinstance(given, dict) else {"cases": given}
    models = given.get("models", {})
    for case in given["cases"]:
        if case["model"] in models:
            case["tree"] = json_models.tree_of(case["model"], models[case["model"]])
        try:
            add(out, case, record_coordinator.run({"id": f"run {case['run']}", **case}, record))
        except RuntimeError as error:
            print(error, file=sys.stderr)
            continue
        print("run", case["run"], flush=True)
    pathlib.Path(sys.argv[2]).write_text(json.dumps(out, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
