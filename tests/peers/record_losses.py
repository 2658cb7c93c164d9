"""Records losses and gradient norms of DeepSpeed, in the format of tests/golden/losses.json.

usage: record_losses.py CASES.json OUT.json     (under the python of launch.ensure_venv)

CASES: {"cases": [{"id", "model", "world", "gradient_accumulation_steps"}], "models": as of record_coordinator.py}: stages 0 to
3, eight steps, from the formulas of losses.json.
"""
import json
import pathlib
import sys

import torch

import formula_data
import json_models
import record_coordinator

STEPS = 8


def finish_gathers():
    """DeepSpeed waits only for the last of the gathers that it issues together, which on gloo is a race."""
    from deepspeed import comm
    inner = comm.all_gather_into_tensor

    def finished(*arguments, **named):
        handle = inner(*arguments, **named)
        if handle is not None:
            handle.wait()
        return handle
    comm.all_gather_into_tensor = finished


def train(case, rank):
    import deepspeed
    torch.set_num_threads(1)
    finish_gathers()
    deepspeed.init_distributed("gloo")
    model = record_coordinator.model_of(case)
    with torch.no_grad():
        for index, (name, param) in enumerate(model.named_parameters()):
            param.copy_(torch.from_numpy(formula_data.initial_weight(name, index, tuple(param.shape))))
    parts = case["gradient_accumulation_steps"]
    config = {"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": parts, "gradient_clipping": 1.0,
              "optimizer": {"type": "AdamW", "torch_adam": True,
                            "params": {"lr": 1e-3, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.01}},
              "zero_optimization": {"stage": case["stage"]}, "zero_allow_untested_optimizer": True}
    engine, *_ = deepspeed.initialize(model=model, config=config, model_parameters=record_coordinator.trained(model))
    losses, norms = [], []
    for step in range(STEPS):
        losses.append([])
        for part in range(parts):
            micro = step * parts + part
            loss = engine(*record_coordinator.batch_of(case, micro, rank))
            engine.backward(loss)
            engine.step()
            losses[-1].append(loss.item())
        norm = engine.get_global_grad_norm()
        norms.append(None if norm is None or case["stage"] == 0 else float(norm))
    sums = [0.0, 0.0]
    for param in model.parameters():
        with deepspeed.zero.GatheredParameters([param], enabled=case["stage"] == 3):
            sums[0] += param.detach().double().sum().item()
            sums[1] += param.detach().double().abs().sum().item()
    return losses, norms, sums


def main():
    import deepspeed
    out = {"versions": {"deepspeed": deepspeed.__version__, "torch": torch.__version__ + " CPU, gloo"},
           "how": "as in losses.json; a model's tree is what zero_train reads", "models": {}, "cases": []}
    given = json.loads(pathlib.Path(sys.argv[1]).read_text())
    for name, definition in given.get("models", {}).items():
        out["models"][name] = {"tree": json_models.tree_of(name, definition)}
    for case in given["cases"]:
        stages = {}
        for stage in range(4):
            ranks = record_coordinator.run({**case, **out["models"].get(case["model"], {}), "stage": stage}, train)
            stages[str(stage)] = {"losses": [losses for losses, _, _ in ranks], "grad_norm": ranks[0][1],
                                  "final_param_sum_and_abs_sum": ranks[0][2]}
            print(case["id"], stage, flush=True)
        out["cases"].append({**case, "init": "hash", "stages": stages})
    pathlib.Path(sys.argv[2]).write_text(json.dumps(out, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
