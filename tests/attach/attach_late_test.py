"""shardscope.attach(MODEL) of one that trains already, and detach(MODEL): the steps between are recorded, no bit differs."""
import unittest

import runs
from pairs import folder

FRAMEWORKS = ("zero0", "zero2", "zero3", "fsdp2", "fsdp1", "ddp")
# Two steps, attached two steps, one step. FRAMEWORK ENDPOINT OUT ...: of several frameworks one after the other.
SCRIPT = """
import json, sys
import torch
import torch.distributed as dist
sys.path.insert(0, TESTS)
import train


def steps(framework):
    torch.manual_seed(7)
    model = train.Net()
    if framework.startswith("zero"):
        import deepspeed
        deepspeed.init_distributed("gloo")
        config = {"train_micro_batch_size_per_gpu": train.BATCH, "gradient_clipping": 1.0,
                  "zero_optimization": {"stage": int(framework[-1]), "reduce_bucket_size": 5000,
                                        "stage3_param_persistence_threshold": 40},
                  "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}}}
        run, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)

        def step(x, y):
            run.backward(run(x, y))
            run.step()

        def weights():
            with deepspeed.zero.GatheredParameters(list(model.parameters()), enabled=framework == "zero3"):
                return train.digest(model.named_parameters())
        return run, step, weights
    if not dist.is_initialized():
        dist.init_process_group("gloo")
    if framework == "ddp":
        run = torch.nn.parallel.DistributedDataParallel(model)
    elif framework == "fsdp1":
        from torch.distributed.fsdp import FullyShardedDataParallel
        from torch.distributed.fsdp.wrap import ModuleWrapPolicy
        run = FullyShardedDataParallel(model, auto_wrap_policy=ModuleWrapPolicy({train.Block}), device_id=torch.device("cpu"))
    else:
        from torch.distributed.fsdp import fully_shard
        for block in model.blocks:
            fully_shard(block)
        run = fully_shard(model)
    optimizer = torch.optim.AdamW(run.parameters(), lr=1e-3)

    def step(x, y):
        run(x, y).backward()
        optimizer.step()
        optimizer.zero_grad()

    def weights():
        if framework == "fsdp1":
            with FullyShardedDataParallel.summon_full_params(run):
                return train.digest(run.named_parameters())
        return train.digest(model.named_parameters())
    return run, step, weights


def main(arguments):
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    while arguments:
        framework, endpoint, out, *arguments = arguments
        run, step, weights = steps(framework)
        for index in range(5):
            if endpoint != "none" and index in (2, 4):
                import shardscope
                if index == 2:
                    refused, things = [], [endpoint, run.module if framework == "ddp" else object()]
                    things += [run.blocks[0]] if framework == "fsdp2" else []
                    for thing in things:
                        try:
                            shardscope.attach(thing)
                        except (TypeError, ValueError) as error:
                            refused.append(str(error))
                    assert len(refused) == len(things), refused
                    shardscope.attach(run, endpoint=endpoint, run_id=framework)
                else:
                    shardscope.detach(run)
            step(*train.batch(index, dist.get_rank()))
        with open(f"{out}.{dist.get_rank()}", "w", encoding="utf-8") as file:
            json.dump(weights(), file)
    dist.barrier()
    dist.destroy_process_group()


main(sys.argv[1:])
"""


def setUpModule():
    script().write_text(SCRIPT.replace("TESTS", repr(str(runs.HERE))), encoding="utf-8")


def script():
    return folder() / "late.py"


def trained(*arguments):
    return runs.finish(runs.start(runs.torchrun(script(), *arguments)))


class Late(unittest.TestCase):
    def test_two_steps_are_recorded_and_weights_are_bitwise_equal(self):
        plain = {name: folder() / f"late-{name}.plain" for name in FRAMEWORKS}
        trained(*(word for name, out in plain.items() for word in (name, "none", out)))
        for name in FRAMEWORKS:
            with self.subTest(framework=name):
                recording, endpoint, out = (folder() / f"late-{name}.{end}" for end in ("zscope", "sock", "out"))
                collector = runs.start([runs.SHARDSCOPE, "record", recording, "--listen", f"ipc://{endpoint}"])
                self.addCleanup(collector.kill)  # where the training fails
                output = trained(name, f"ipc://{endpoint}", out)
                runs.finish(collector)
                self.assertEqual(runs.results(out), runs.results(plain[name]), output[-2000:])
                self.assertNotIn("is off", output)
                self.assertNotIn("not recorded:", output)
                summary = runs.figures(recording)
                self.assertEqual((summary["dropped"], summary["steps"], summary["unmatched_ends"]["count"]), (0, 2, 0))
                self.assertGreater(summary["comm"]["elements_per_step"], 0)
                events = runs.read(recording)
                for rank in range(2):
                    self.assertEqual(len(events.of(rank, "loss")), 2)
                    self.assertEqual(len(events.spans_of(rank, "step_begin")), 2)
                self.assertEqual(len(events.params), len({row["name"] for row in events.params}))


if __name__ == "__main__":
    unittest.main()
