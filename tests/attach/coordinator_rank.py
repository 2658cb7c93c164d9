"""One case of tests/golden/coordinator.json, trained as it was recorded, without a recorder: coordinator_rank.py CASE-ID"""
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "peers"))

import deepspeed
import torch
import record_coordinator


def main():
    golden = json.loads((ROOT / "tests" / "golden" / "coordinator.json").read_text(encoding="utf-8"))
    case = next(trace for trace in golden["traces"] if trace["id"] == sys.argv[1])
    torch.set_num_threads(1)
    torch.manual_seed(0)
    deepspeed.init_distributed("gloo")
    model = record_coordinator.model_of(case)
    # torch_adam: an optimizer that DeepSpeed need not compile; what the coordinator decides is the same.
    config = {"train_micro_batch_size_per_gpu": 4,
              "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
              "zero_optimization": {"stage": 3, **case["config"]}}
    engine, *_ = deepspeed.initialize(model=model, config=config, model_parameters=record_coordinator.trained(model))
    for micro in range(4):
        engine.backward(engine(*record_coordinator.batch_of(case, micro, torch.distributed.get_rank())))
        engine.step()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
