"""One rank of a peer's run: DeepSpeed, PyTorch DDP or FSDP2 on the CPU over gloo.

usage: peer_rank.py JOBS.json   (RANK, WORLD_SIZE and MASTER_ADDR in the environment)

JOBS: a list, run one after the other, each in a process of its own: DeepSpeed numbers parameters for a process's life.
A job: {"port": rendezvous, "peer": "deepspeed" | "ddp" | "fsdp2", "model": "mlp" | "gpt" | "gpt_tied", "shape": {...},
"config": DeepSpeed configuration, "groups": parameter groups of DeepSpeed's optimizer, "evaluation": {"interval", "batches"}
(DeepSpeed only: after so many steps, forwards of the first so many batches), "batches": see batch(), "copies": data-parallel groups, "steps": N, "out": folder,
"observe": bool}. Steps go to OUT/rankR.steps as they end, one line each: time of CLOCK_MONOTONIC in seconds, losses of the
micro-steps, norm of the gradient. With "observe", what DeepSpeed decided goes to OUT/rankR.json.
"""
import contextlib
import json
import os
import pathlib
import sys
import time
import traceback

import torch
import torch.distributed as dist

import formula_data
import peer_models
from peer_observer import Observer


def batch(job, micro, rank):
    """Of micro-step `micro`: of the configured size, or of job["batches"] ([samples, tokens of each]) in turn, from another one
    on each rank."""
    rows = job["config"]["train_micro_batch_size_per_gpu"]
    context = job["shape"]["context"]
    if sizes := job.get("batches"):
        rows, context = sizes[(micro + rank) % len(sizes)]
    if job["model"] == "mlp":
        arrays = formula_data.mlp_batch(micro, rank, rows)
    else:
        arrays = formula_data.gpt_batch(micro, rank, rows, context)
    tensors = [torch.from_numpy(array) for array in arrays]
    if job["model"] == "mlp" and job["config"].get("bf16", {}).get("enabled", False):
        tensors[0] = tensors[0].bfloat16()
    return tensors


def build(job):
    model = peer_models.torch_model(job["model"], peer_models.shape_of(job))
    with torch.no_grad():
        for index, (name, param) in enumerate(model.named_parameters()):
            param.copy_(torch.from_numpy(formula_data.initial_weight(name, index, tuple(param.shape))))
    return model


def adamw(params, config):
    given = config["optimizer"]["params"]
    return torch.optim.AdamW(params, lr=given["lr"], betas=tuple(given["betas"]), eps=given["eps"],
                             weight_decay=given["weight_decay"], fused=True)


def groups_of(job, model):
    """The parameters, or in the groups of shardscope.param_groups, by the dimensions that these name."""
    rules = job.get("groups")
    if not rules:
        return model.parameters()
    groups = [{"params": [], **{key: rule[key] for key in ("lr", "weight_decay", "betas", "eps") if key in rule}}
              for rule in rules]
    for param in model.parameters():
        taker = next(i for i, rule in enumerate(rules) if param.dim() <= rule.get("max_dims", param.dim()))
        groups[taker]["params"].append(param)
    return groups


class ModelParallelUnit:
    """What Megatron hands to DeepSpeed: this rank's data-parallel group, and its peers at the same place of the others."""

    def __init__(self, copies):
        self.data = self.group_of(copies)
        self.model = self.group_of([sorted(peers) for peers in zip(*copies)])

    @staticmethod
    def group_of(all_ranks):
        made = [(ranks, dist.new_group(ranks)) for ranks in all_ranks]  # collective: every rank makes all of them
        return next(group for ranks, group in made if dist.get_rank() in ranks)

    def get_data_parallel_group(self):
        return self.data

    def get_data_parallel_rank(self):
        return dist.get_rank(self.data)

    def get_data_parallel_world_size(self):
        return dist.get_world_size(self.data)

    def get_model_parallel_group(self):
        return self.model

    def get_model_parallel_rank(self):
        return dist.get_rank(self.model)

    def get_model_parallel_world_size(self):
        return dist.get_world_size(self.model)


class DeepSpeed:
    def __init__(self, job, model):
        import deepspeed
        deepspeed.init_distributed("gloo")
        unit = ModelParallelUnit(job["copies"]) if job.get("copies") else None
        self.observer = Observer(job["observe"], unit and unit.data)
        self.engine, *_ = deepspeed.initialize(model=model, config=job["config"], model_parameters=groups_of(job, model), mpu=unit)
        self.observer.start(self.engine)

    def micro_step(self, data, last):
        self.observer.micro_step()
        loss = self.engine(*data)
        self.engine.backward(loss)
        self.engine.step()
        return loss

    def evaluate(self, batches):
        """As scripts do between two steps."""
        self.observer.evaluation()
        self.engine.eval()
        with torch.no_grad():
            for data in batches:
                self.observer.evaluation_batch()
                self.observer.evaluated(self.engine(*data).item())
        self.engine.train()

    def grad_norm(self):
        norm = self.engine.get_global_grad_norm()
        return None if norm is None else float(norm)


class Torch:
    """DDP, or FSDP2 with one group per block as its documentation advises."""

    def __init__(self, job, model):
        dist.init_process_group("gloo")
        self.observer = Observer(False)
        bf16 = job["config"].get("bf16", {}).get("enabled", False)
        self.autocast = contextlib.nullcontext()
        self.parts = job["config"].get("gradient_accumulation_steps", 1)
        if job["peer"] == "ddp":
            self.model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
            if bf16:
                self.autocast = torch.autocast("cpu", dtype=torch.bfloat16)
        else:
            from torch.distributed.device_mesh import init_device_mesh
            from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
            mesh = init_device_mesh("cpu", (dist.get_world_size(),))
            policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16) \
                if bf16 else MixedPrecisionPolicy()
            for block in model.h if hasattr(model, "h") else model.blk:
                fully_shard(block, mesh=mesh, mp_policy=policy)
            self.model = fully_shard(model, mesh=mesh, mp_policy=policy)
        self.clip = job["config"].get("gradient_clipping", 1.0)
        self.optimizer = adamw(self.model.parameters(), job["config"])

    def micro_step(self, data, last):
        with self.autocast:
            loss = self.model(*data)
        (loss / self.parts).backward()
        if last:
            # As DeepSpeed does by default.
            self.norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
        return loss

    def grad_norm(self):
        norm = self.norm.full_tensor() if hasattr(self.norm, "full_tensor") else self.norm
        return float(norm)


def train(job, rank):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    os.environ["MASTER_PORT"] = str(job["port"])
    peer = (DeepSpeed if job["peer"] == "deepspeed" else Torch)(job, build(job))
    parts = job["config"].get("gradient_accumulation_steps", 1)
    evaluation = job.get("evaluation")
    place = next((group.index(rank) for group in job.get("copies") or [] if rank in group), rank)
    out = pathlib.Path(job["out"])
    with open(out / f"rank{rank}.steps", "w", buffering=1) as steps:
        for step in range(job["steps"]):
            losses = []
            for i in range(parts):
                micro = step * parts + i
                losses.append(peer.micro_step(batch(job, micro, place), i + 1 == parts).item())
            steps.write(json.dumps([time.monotonic(), losses, peer.grad_norm()]) + "\n")
            if evaluation and (step + 1) % evaluation["interval"] == 0:
                peer.evaluate([batch(job, micro, place) for micro in range(evaluation["batches"])])
    if job["observe"]:
        (out / f"rank{rank}.json").write_text(json.dumps(peer.observer.report()))
    dist.barrier()
    dist.destroy_process_group()


def main():
    jobs = json.loads(pathlib.Path(sys.argv[1]).read_text())
    rank = int(os.environ["RANK"])
    if len(jobs) == 1:
        train(jobs[0], rank)
        return
    import deepspeed  # noqa: F401  once for all the processes to come
    failed = False
    for job in jobs:
        child = os.fork()
        if child == 0:
            try:
                train(job, rank)
                sys.stdout.flush()
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        failed |= os.waitpid(child, 0)[1] != 0
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
