"""Records losses and gradient norms of DeepSpeed, in the format of tests/golden/losses.json.

usage: record_losses.py CASES.json OUT.json     (under the python of launch.ensure_venv)

CASES: {"cases": [{"id", "model", "world", "gradient_accumulation_steps"}], "models": as of record_coordinator.py}: stages 0 to
3, eight steps, from the formulas of losses.json. A case may also have "init" (hash or sin), "run_stages" (others than 0 to 3)
and "config": keys of DeepSpeed's configuration that differ from those of losses.json, merged into it, of an optimizer only
what differs; for a model whose name ends in _visit "block_visit_per_iteration", the blocks that each micro-step runs. With
fp16 the loss scale after each step is recorded too.
"""
import json
import pathlib
import sys

import torch

import formula_data
import json_models
import record_coordinator

STEPS = 8
ADAMW = {"lr": 1e-3, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.01}
INITIAL = {"hash": formula_data.initial_weight, "sin": formula_data.sine_weight}


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


def reference(case):
    """Losses [rank][step][micro-step] and norms of the same in float64, without DeepSpeed; of AdamW in fp32 only."""
    config = case.get("config", {})
    if any(key not in ("gradient_clipping", "optimizer") for key in config) or "type" in config.get("optimizer", {}):
        return None
    model = record_coordinator.model_of(case)
    fill(model, case)
    model.double()
    settings = {**ADAMW, **config.get("optimizer", {}).get("params", {})}
    optimizer = torch.optim.AdamW(record_coordinator.trained(model), **settings)
    clip, parts, world = config.get("gradient_clipping", 1.0), case["gradient_accumulation_steps"], case["world"]
    losses, norms = [[[] for _ in range(STEPS)] for _ in range(world)], []
    for step in range(STEPS):
        optimizer.zero_grad(set_to_none=False)
        for micro in range(step * parts, (step + 1) * parts):
            visit(model, case, micro)
            for rank in range(world):
                batch = record_coordinator.batch_of(case, micro, rank)
                loss = model(*(part.double() if part.is_floating_point() else part for part in batch))
                (loss / (parts * world)).backward()
                losses[rank][step].append(loss.item())
        gradients = [param.grad for param in record_coordinator.trained(model)]
        norms.append(torch.sqrt(sum((gradient**2).sum() for gradient in gradients)).item())
        if clip > 0:
            for gradient in gradients:
                gradient.mul_(min(1.0, clip / (norms[-1] + 1e-6)))
        optimizer.step()
    return {"losses": losses, "grad_norm": norms}


def fill(model, case):
    with torch.no_grad():
        for index, (name, param) in enumerate(model.named_parameters()):
            param.copy_(torch.from_numpy(INITIAL[case["init"]](name, index, tuple(param.shape))))


def visit(model, case, micro):
    if "block_visit_per_iteration" in case:
        model.visit = case["block_visit_per_iteration"][micro]


def merged(base, changes):
    """`base` with the keys of `changes`, objects key by key."""
    both = dict(base)
    for key, value in changes.items():
        both[key] = merged(base.get(key, {}), value) if isinstance(value, dict) else value
    return both


def train(case, rank):
    import deepspeed
    torch.set_num_threads(1)
    finish_gathers()
    deepspeed.init_distributed("gloo")
    model = record_coordinator.model_of(case)
    fill(model, case)
    parts = case["gradient_accumulation_steps"]
    config = {"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": parts, "gradient_clipping": 1.0,
              "optimizer": {"type": "AdamW", "torch_adam": True, "params": ADAMW},
              "zero_optimization": {"stage": case["stage"]}, "zero_allow_untested_optimizer": True}
    config = merged(config, case.get("config", {}))
    kinds = [kind for kind in ("fp16", "bf16") if config.get(kind, {}).get("enabled")]
    dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}[kinds[0]] if kinds else torch.float32
    # DeepSpeed refuses fp16 on the CPU, which computes in it all the same.
    deepspeed.get_accelerator().is_fp16_supported = lambda: True
    engine, *_ = deepspeed.initialize(model=model, config=config, model_parameters=record_coordinator.trained(model))
    losses, norms, scales = [], [], []
    for step in range(STEPS):
        losses.append([])
        for part in range(parts):
            micro = step * parts + part
            visit(model, case, micro)
            loss = engine(*record_coordinator.batch_of(case, micro, rank, dtype))
            engine.backward(loss)
            engine.step()
            losses[-1].append(loss.item())
        norm = engine.get_global_grad_norm()
        norms.append(None if norm is None or case["stage"] == 0 else float(norm))
        if "fp16" in kinds:
            optimizer = engine.optimizer
            scales.append(float(optimizer.loss_scale_config.cur_scale if case["stage"] == 0 else optimizer.loss_scale))
    sums = [0.0, 0.0]
    for param in model.parameters():
        with deepspeed.zero.GatheredParameters([param], enabled=case["stage"] == 3):
            sums[0] += param.detach().double().sum().item()
            sums[1] += param.detach().double().abs().sum().item()
    return losses, norms, sums, scales


def main():
    import deepspeed
    out = {"versions": {"deepspeed": deepspeed.__version__, "torch": torch.__version__ + " CPU, gloo"},
           "how": "as in losses.json; a model's tree is what zero_train reads", "models": {}, "cases": []}
    given = json.loads(pathlib.Path(sys.argv[1]).read_text())
    for name, definition in given.get("models", {}).items():
        out["models"][name] = {"tree": json_models.tree_of(name, definition)}
    for case in given["cases"]:
        stages = {}
        case = {"init": "hash", **case}
        for stage in case.pop("run_stages", range(4)):
            try:
                ranks = record_coordinator.run({**case, **out["models"].get(case["model"], {}), "stage": stage}, train)
            except RuntimeError as error:
                print(error, "stage", stage, file=sys.stderr)
                continue
            stages[str(stage)] = {"losses": [losses for losses, *_ in ranks], "grad_norm": ranks[0][1],
                                  "final_param_sum_and_abs_sum": ranks[0][2]}
            if case.get("config", {}).get("fp16", {}).get("enabled"):
                stages[str(stage)]["loss_scale"] = ranks[0][3]
            print(case["id"], stage, flush=True)
        result = {**case, "stages": stages}
        exact = reference({**case, **out["models"].get(case["model"], {})})
        out["cases"].append({**result, "reference_float64": exact} if exact else result)
    pathlib.Path(sys.argv[2]).write_text(json.dumps(out, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
