"""A rank of tests/attach/overhead.py: trains, every other step with one watcher; writes OUT.RANK.

    overhead_rank.py FRAMEWORK WATCHER PAIRS WIDTH OUT      FRAMEWORK: fsdp2 or zero3; WATCHER: shardscope, profiler, comms_logger

A plain step is one in which every class is as its framework left it: the wrappers are taken out, not only turned off. Which of a
pair comes first changes from pair to pair, so that what drifts counts to neither.
"""
import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

WIDTH, LAYERS, TOKENS = 256, 8, 512


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(1024, WIDTH)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True)
                                    for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, 1024)

    def forward(self, tokens):
        x = self.embedding(tokens[:, :-1])
        for layer in self.layers:
            x = layer(x)
        return nn.functional.cross_entropy(self.head(x).flatten(0, 1), tokens[:, 1:].flatten())


def stepper(framework):
    model = Model()
    torch.manual_seed(0)
    tokens = torch.randint(1024, (TOKENS // 64, 65))
    if framework == "zero3":
        import deepspeed
        config = {"train_micro_batch_size_per_gpu": len(tokens), "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
                  "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 500000, "reduce_bucket_size": 1000000,
                                        "stage3_param_persistence_threshold": 300}}
        engine, *_ = deepspeed.initialize(model=model, config=config)

        def step():
            engine.backward(engine(tokens))
            engine.step()
        return model, step
    from torch.distributed.fsdp import fully_shard
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step():
        model(tokens).backward()
        optimizer.step()
        optimizer.zero_grad()
    return model, step


class Shardscope:
    """Takes the wrappers out of their classes and torch's global hooks of modules out of its tables, and puts them back."""

    def __init__(self):
        from shardscope import _hooks
        self.hooks = _hooks
        module = torch.nn.modules.module
        self.tables = [(table, dict(table)) for table in (module._global_forward_pre_hooks, module._global_forward_hooks,
                                                          module._global_forward_hooks_always_called)]
        self.wrapped = [(owner, name, vars(owner)[name], own, before) for owner, name, own, before in _hooks._undo]
        self.on = True

    def set(self, on):
        if on == self.on:
            return
        self.on = on
        for table, hooks in self.tables:
            table.clear()
            table.update(hooks if on else {})
        for owner, name, value, own, before in self.wrapped if on else reversed(self.wrapped):
            if on or own:
                setattr(owner, name, value if on else before)
            else:
                delattr(owner, name)
        for adapters in self.hooks._adapters_of.values():
            for adapter in adapters:
                adapter.on = on


class Profiler:
    def set(self, on):
        if on:
            self.profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
            self.profiler.start()
        elif hasattr(self, "profiler"):
            self.profiler.stop()
            del self.profiler


class CommsLogger:
    def __init__(self):
        import deepspeed.comm as comm
        comm.configure(enabled=True, prof_all=True, verbose=False)
        self.logger = comm.comms_logger if hasattr(comm, "comms_logger") else comm.comm.comms_logger

    def set(self, on):
        self.logger.enabled = self.logger.prof_all = on


def main():
    global WIDTH
    framework, watcher, pairs, WIDTH, out = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
    torch.set_num_threads(1)
    if framework == "zero3":
        import deepspeed
        deepspeed.init_distributed("gloo")
    else:
        dist.init_process_group("gloo")
    torch.manual_seed(0)
    model, step = stepper(framework)
    step()  # after it all hooks are there
    watch = {"shardscope": Shardscope, "profiler": Profiler, "comms_logger": CommsLogger}[watcher]()
    for on in (True, False, True, False):  # warm, traces recorded
        watch.set(on)
        step()
    rows = []
    for pair in range(pairs):
        for on in ((True, False) if pair % 2 else (False, True)):
            watch.set(on)
            dist.barrier()
            wall, cpu = time.perf_counter_ns(), time.process_time_ns()
            step()
            rows.append({"pair": pair, "on": on, "wall_ns": time.perf_counter_ns() - wall, "cpu_ns": time.process_time_ns() - cpu})
    watch.set(watcher == "shardscope")
    facts = {"params": sum(getattr(p, "ds_numel", None) or p.numel() for p in model.parameters()), "tensors": len(list(model.parameters())),
             "modules": len(list(model.modules()))}
    with open(f"{out}.{os.environ['RANK']}", "w", encoding="utf-8") as file:
        json.dump({"rows": rows, **facts}, file)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
