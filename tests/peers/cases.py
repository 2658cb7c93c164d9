"""The cases that compare.py runs: models, stages, numbers of ranks, and the settings of each.

A case's `settings` is a name of the table: "" or words joined by "+", each a key of SETTINGS, "groups", "evaluation",
"context_7", "lengths" or "copies".
"""
import collections

import peer_models

STEPS = 5
LIMITS = {"mlp": (20000, 60000), "gpt": (6000, 15000), "gpt_tied": (6000, 15000)}  # buckets; live parameters
# Keys of zero_optimization that a case adds.
SETTINGS = {"round_robin": {"round_robin_gradients": True},
            "persist_100": {"stage3_param_persistence_threshold": 100}}
# Parameter groups: as everybody trains a GPT, with another rate too.
GROUPS = [{"name": "no_decay", "max_dims": 1, "weight_decay": 0.0, "lr": 2e-3}, {"name": "decay", "weight_decay": 0.1}]
# After the second and the fourth of five steps, so that a step follows each; two batches, of which the first one comes
# after a backward and the second after another evaluation.
EVALUATION = {"interval": 2, "batches": 2}
SHORT = 7  # of the model's context of 12, in context_7
# Of the micro-steps of a rank, in turn, from another of them on each rank: [samples, tokens of each]; as
# shardscope.micro_batches.shapes.
LENGTHS = [[4, 12], [1, 5], [3, 9], [2, 1], [4, 7]]
# Ranks that train one copy of the model each, as Megatron's data-parallel groups: neighbours are model-parallel peers.
COPIES = [[0, 2], [1, 3]]

Case = collections.namedtuple("Case", "model stage world parts dtype settings", defaults=[""])


def cases():
    for model in ("mlp", "gpt"):
        for stage in range(4):
            for world in (1, 2, 4):
                yield Case(model, stage, world, 1, "fp32")
            yield Case(model, stage, 2, 3, "fp32")
            yield Case(model, stage, 2, 1, "bf16")
            yield Case(model, stage, 3, 1, "fp32")
        for stage in (1, 2):
            for world in (2, 3):
                yield Case(model, stage, world, 3, "fp32", "round_robin")
        for world, parts in ((1, 1), (2, 1), (3, 1), (2, 3)):
            yield Case(model, 3, world, parts, "fp32", "persist_100")
    for model in ("mlp", "gpt"):
        for stage in range(4):
            for world, parts in ((1, 1), (2, 3), (3, 1)):
                yield Case(model, stage, world, parts, "fp32", "groups")
            yield Case(model, stage, 2, 1, "bf16", "groups")
    for stage in range(4):
        yield Case("gpt_tied", stage, 2, 1, "fp32")
        yield Case("gpt_tied", stage, 3, 3, "fp32")
    yield Case("gpt_tied", 3, 3, 1, "fp32", "persist_100")
    yield from evaluated()
    for stage in range(4):
        yield Case("gpt", stage, 2, 3, "fp32", "context_7")
        yield Case("gpt", stage, 2, 3, "fp32", "lengths")
    yield Case("gpt", 3, 3, 1, "fp32", "lengths")
    for stage in range(4):
        yield Case("gpt", stage, 4, 3, "fp32", "copies")
    yield Case("mlp", 3, 4, 1, "fp32", "copies+persist_100")


def evaluated():
    for model in ("mlp", "gpt"):
        for stage in range(3):
            yield Case(model, stage, 2, 1, "fp32", "evaluation")
        for world, parts in ((1, 1), (2, 1), (2, 3), (3, 1)):
            yield Case(model, 3, world, parts, "fp32", "evaluation")
        yield Case(model, 3, 2, 1, "bf16", "evaluation")
        yield Case(model, 3, 2, 3, "fp32", "evaluation+persist_100")
    yield Case("gpt_tied", 3, 3, 1, "fp32", "evaluation")


def has(case, word):
    return word in case.settings.split("+")


def without(case, word):
    """The same case but for one of its settings."""
    return case._replace(settings="+".join(each for each in case.settings.split("+") if each != word))


def name_of(case):
    settings = f"-{case.settings}" if case.settings else ""
    return f"{case.model}-stage{case.stage}-world{case.world}-gas{case.parts}-{case.dtype}{settings}"


def place_of(case, rank):
    """Which of the ranks of its copy a rank is."""
    return next(group.index(rank) for group in COPIES if rank in group) if has(case, "copies") else rank


def copy_size(case):
    """Ranks that train one copy of the model."""
    return len(COPIES[0]) if has(case, "copies") else case.world


def zero_settings(case):
    return {key: value for word in case.settings.split("+") for key, value in SETTINGS.get(word, {}).items()}


def config_of(case):
    bucket, live = LIMITS[case.model]
    zero = {"stage": case.stage}
    if case.stage in (1, 2):
        zero["reduce_bucket_size"] = bucket
    if case.stage == 3:
        zero.update(reduce_bucket_size=bucket, stage3_prefetch_bucket_size=bucket, stage3_max_live_parameters=live,
                    stage3_max_reuse_distance=0, stage3_param_persistence_threshold=0)
    zero.update(zero_settings(case))
    settings = {"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": case.parts,
                "gradient_clipping": 1.0, "zero_optimization": zero,
                "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "betas": [0.9, 0.999], "eps": 1e-8,
                                                          "weight_decay": 0.01, "torch_adam": True}}}
    if case.dtype == "bf16":
        settings["bf16"] = {"enabled": True}
    return settings


def job_of(case, folder):
    """What peer_rank.py is to do for a case."""
    return {"peer": "deepspeed", "model": case.model, "shape": vars(peer_models.GOLDEN_GPT), "config": config_of(case),
            "groups": GROUPS if has(case, "groups") else None, "evaluation": EVALUATION if has(case, "evaluation") else None,
            "batches": [[4, SHORT]] if has(case, "context_7") else LENGTHS if has(case, "lengths") else None,
            "copies": COPIES if has(case, "copies") else None, "steps": STEPS, "observe": True, "out": str(folder)}
