"""Records what DeepSpeed's estimators and its loss scaler answer, in the formats of estimator.json and loss_scale.json.

usage: record_formulas.py estimator|loss_scale FIRST COUNT OUT.json     (under the python of launch.ensure_venv)

Case N is drawn from N: parameter counts over the whole range that models have and far beyond, layers that keep nothing,
many nodes, any factor; windows, hystereses and minima down to what the scaler takes, with overflows rare, frequent and in
bursts.
"""
import contextlib
import io
import json
import pathlib
import random
import sys

ROWS = {"zero2": [(False, True, None), (False, False, None)],
        "zero3": [(True, True, True), (True, True, False), (False, True, True), (False, True, False),
                  (False, False, True), (False, False, False)]}  # offload_param, offload_optimizer, zero_init


def estimated(case):
    """(bytes of host and GPU of each row in print order, what is printed)."""
    from deepspeed.runtime.zero import stage3, stage_1_and_2
    inputs = {"total_params": case["params"], "num_gpus_per_node": case["gpus_per_node"], "num_nodes": case["nodes"],
              "additional_buffer_factor": case["additional_buffer_factor"]}
    printed = io.StringIO()
    if case["kind"] == "zero2":
        with contextlib.redirect_stdout(printed):
            stage_1_and_2.estimate_zero2_model_states_mem_needs_all_cold(**inputs)
        needs = [stage_1_and_2.estimate_zero2_model_states_mem_needs(**inputs, cpu_offload=optimizer)
                 for _, optimizer, _ in ROWS["zero2"]]
    else:
        inputs["largest_layer_params"] = case["largest_layer_params"]
        with contextlib.redirect_stdout(printed):
            stage3.estimate_zero3_model_states_mem_needs_all_cold(**inputs)
        needs = [stage3.estimate_zero3_model_states_mem_needs(**inputs, cpu_offload=optimizer, cpu_offload_params=param,
                                                              zero_init=init)[:2]
                 for param, optimizer, init in ROWS["zero3"]]
    return needs, printed.getvalue().splitlines()


def estimator_case(number):
    draw = random.Random(f"estimator {number}")
    params = int(10 ** draw.uniform(0, 15)) + draw.randrange(100)
    case = {"id": f"F{number}", "kind": draw.choice(["zero2", "zero3", "zero3"]), "model": f"drawn {number}", "params": params,
            "largest_layer_params": draw.choice([0, 1, params, draw.randrange(params + 1)]),
            "gpus_per_node": draw.choice([1, 2, 3, 4, 5, 7, 8, 16, 72]), "nodes": draw.choice([1, 1, 2, 3, 7, 11, 96, 1000]),
            "additional_buffer_factor": draw.choice([1.5, 1.0, 0.1, 2.75, round(draw.uniform(0.01, 9), 3)]),
            "formula": "deepspeed-0.19"}
    needs, lines = estimated(case)
    name = lambda offloaded: "cpu" if offloaded else "none"
    case["header_lines"] = lines[1:3]
    case["rows"] = []
    for (param, optimizer, init), (cpu, gpu), line in zip(ROWS[case["kind"]], needs, lines[4:]):
        zero3 = case["kind"] == "zero3"
        figures = [figure.strip().removesuffix("GB") for figure in line.split("|")[:2]]
        case["rows"].append({"offload_param": name(param) if zero3 else None, "offload_optimizer": name(optimizer),
                             "zero_init": int(init) if zero3 else None, "cpu_gib": figures[0], "gpu_gib": figures[1],
                             "cpu_bytes": cpu, "gpu_bytes": gpu})
    return case


def overflows(draw, count):
    """"1" where a step overflows: with any frequency, now and then in bursts."""
    often = draw.choice([0, 0.02, 0.1, 0.3, 0.6, 0.95, 1])
    text = ""
    while len(text) < count:
        burst = draw.randrange(1, 12) if draw.random() < 0.05 else 0
        text += "1" * burst or ("1" if draw.random() < often else "0")
    return text[:count]


def loss_scale_case(number):
    from deepspeed.runtime.fp16 import loss_scaler
    draw = random.Random(f"loss scale {number}")
    case = {"id": f"F{number}", "name": f"drawn {number}", "initial_scale_power": draw.choice([0, 1, 4, 8, 16, 32]),
            "loss_scale_window": draw.choice([1, 1, 2, 3, 5, 10, 100, 1000]), "hysteresis": draw.choice([0, 1, 1, 2, 2, 3, 7]),
            "consecutive_hysteresis": draw.random() < 0.4, "min_loss_scale": draw.choice([1, 1, 0.25, 4, 3, 1000, 65536]),
            "overflow": overflows(draw, draw.randrange(1, 200))}
    scaler = loss_scaler.DynamicLossScaler(
        init_scale=2**case["initial_scale_power"], scale_window=case["loss_scale_window"],
        min_scale=case["min_loss_scale"], delayed_shift=case["hysteresis"],
        consecutive_hysteresis=case["consecutive_hysteresis"])
    case.update(steps=len(case["overflow"]), scale_after=[], hysteresis_after=[], raises_at_step=None)
    for step, overflow in enumerate(case["overflow"]):
        try:
            scaler.update_scale(overflow == "1")
        except Exception as error:  # DeepSpeed raises no narrower class
            if "already at minimum" not in str(error):
                raise
            case["raises_at_step"] = step
            break
        case["scale_after"].append(float(scaler.cur_scale))
        case["hysteresis_after"].append(scaler.cur_hysteresis)
    return {**case, "final_last_overflow_iter": scaler.last_overflow_iter, "final_cur_iter": scaler.cur_iter}


def main():
    kind, first, count, path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    import deepspeed
    import logging
    logging.disable(logging.INFO)
    if kind == "loss_scale":
        # The scaler asks for its rank when it reports an overflow; there is one.
        deepspeed.comm.get_rank = lambda: 0
    record = {"estimator": estimator_case, "loss_scale": loss_scale_case}[kind]
    out = {"versions": {"deepspeed": deepspeed.__version__}, "legend": f"as in {kind}.json",
           "cases": [record(number) for number in range(first, first + count)]}
    pathlib.Path(path).write_text(json.dumps(out, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
