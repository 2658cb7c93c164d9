"""The cases of tests/golden/coordinator.json and coordinator_counters.json of as many ranks as these are, and two of modules that
return parameters, trained as they were recorded, without a recorder: coordinator_rank.py. One engine after the other in one
process; cases_of() is their order."""
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "peers"))


FILES = {"coordinator": None, "coordinator_counters": None, "coordinator_returned": ("P00", "P08")}  # None: all of its cases


def cases_of(world):
    """[(model, case)]"""
    chosen = []
    for name, ids in FILES.items():
        golden = json.loads((ROOT / "tests" / "golden" / f"{name}.json").read_text(encoding="utf-8"))
        chosen += [(golden["models"][case["model"]], case) for case in golden["traces"] + golden["invalidation"]
                   if world in case["world"] and (ids is None or case["id"] in ids)]
    return chosen


def iterations_of(case):
    """What was recorded of each of its iterations. A trace's third and fourth were as its second."""
    if "iterations" in case:
        return case["iterations"]
    assert case["second_complete_identical"] and case["third_complete_identical_to_second"]
    return [case["record"], *[case["complete"]] * 3]


def train(model, case):
    import deepspeed
    import torch
    import record_coordinator
    torch.manual_seed(0)
    case = {**case, "tree": model["tree"]} if "tree" in model else case
    model = record_coordinator.model_of(case)
    # torch_adam: an optimizer that DeepSpeed need not compile; what the coordinator decides is the same.
    config = {"train_micro_batch_size_per_gpu": 4,
              "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
              "zero_optimization": {"stage": 3, **case["config"]}}
    engine, *_ = deepspeed.initialize(model=model, config=config, model_parameters=record_coordinator.trained(model))
    visits = case.get("block_visit_per_iteration")
    for micro in range(len(iterations_of(case))):
        if visits:
            model.visit = visits[micro]
        if "tree" in case:
            model.shared["iteration"] = micro
        engine.backward(engine(*record_coordinator.batch_of(case, micro, torch.distributed.get_rank())))
        engine.step()


def main():
    import deepspeed
    import torch
    torch.set_num_threads(1)
    deepspeed.init_distributed("gloo")
    for model, case in cases_of(torch.distributed.get_world_size()):
        train(model, case)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
