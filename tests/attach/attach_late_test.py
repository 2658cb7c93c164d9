"""shardscope.attach(MODEL) of one that trains already, and detach(MODEL): the steps between are recorded, no bit differs."""
import unittest

import runs
from pairs import folder

ENDED_BY_ERROR, END_IS_BOUND = 0x4000, 0x8000  # of a collective's code
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


# Attached three times, with collectives in flight at the ends: FIRST SECOND THIRD are endpoints. Then what the session does itself.
AGAIN = """
import sys, threading, types, weakref
import torch
from torch._C._distributed_c10d import HookOpName
import torch.distributed as dist
import shardscope


def step():
    run(torch.ones(2, 16)).sum().backward()
    optimizer.step()


class Future:  # whose callback waits for the GIL: it runs when the test says so
    def __init__(self, complete, error=None):
        self.complete, self.error = complete, error

    def done(self):
        return self.complete

    def value(self):
        if self.error:
            raise RuntimeError(self.error)  # a new one: its trace would hold this future

    def add_done_callback(self, callback):
        self.callback = callback


class Work:
    def __init__(self, error=None, answers=True, future=None, complete=True):
        self.error, self.answers, self.future, self.complete = error, answers, future, complete

    def is_completed(self):
        if not self.answers:
            raise RuntimeError("no answer")
        return self.complete

    def exception(self):
        return self.error

    def wait(self):
        pass

    def get_future(self):
        if self.future is None:
            raise RuntimeError("none")
        return self.future


def issue(number, elements, work, asynchronous, name=HookOpName.REDUCE_SCATTER):
    calls = collectives._groups[id(dist.group.WORLD)].calls
    call = types.SimpleNamespace(name=name, op_id=number, input_tensors=[torch.ones(elements)], output_tensors=[],
                                 async_op=asynchronous, work=work)
    calls.before(call)
    calls.after(call)


first, second, third = sys.argv[1:]
dist.init_process_group("gloo")
rank, store = dist.get_rank(), dist.distributed_c10d._get_default_store()
run = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 16))
optimizer = torch.optim.SGD(run.parameters(), lr=1e-3)
shardscope.attach(run, endpoint=first, run_id="first")
step()
from shardscope import collective_calls, collectives, phases
from shardscope._session import session
if rank == 0:
    work = dist.reduce_scatter_tensor(torch.ones(7), torch.ones(14), async_op=True)  # a Work without a future
# Complete, failed, running, and complete behind one that runs.
late = [Future(True), Future(True, "it failed"), Future(False), Future(True)]
references = [sys.getrefcount(future) for future in late]
for index, future in enumerate(late):
    issue(-10 - index, 21 + index, Work(future=future), True, HookOpName.BROADCAST)
phases.state.within = True
shardscope.detach(run)
if rank == 1:  # its counterpart is of no recording
    store.wait(["attached"])
    work = dist.reduce_scatter_tensor(torch.ones(7), torch.ones(14), async_op=True)  # a Work without a future
    work.wait()
shardscope.attach(run, endpoint=second, run_id="second")
assert not phases.state.within
assert session.memory.not_recorded.__closure__[0].cell_contents is session
store.set("attached", "1")
work.wait()


del index, future
assert [sys.getrefcount(future) for future in late] == references, "held on to"
for future in late:
    future.callback(future)
issue(-1, 13, Work(answers=False), True)
issue(-2, 15, Work(error=RuntimeError("it failed")), False)
issue(-3, 16, Work(), False)
# As where torch's functions are wrapped, before PyTorch 2.14.
calls = collectives._groups[id(dist.group.WORLD)].calls
raises = collective_calls.Call(HookOpName.REDUCE_SCATTER, [torch.ones(17)], [], calls)
raises.op_id = -4
calls.before(raises)
calls.after(raises)
collective_calls.failed(raises)
# As those of a group without a description: the collectives after them keep the numbers that they have on ranks outside it.
calls.apart = True
issue(-5, 18, Work(), False)
calls.apart = False
issue(-6, 19, Work(), False)
# One that never reports that it is complete is held until its call has returned, later ones of its kind not at all.
silent = [Work(complete=False) for _ in range(3)]
held = [weakref.ref(work) for work in silent]
for number in (-7, -8, -9):
    issue(number, 41, silent.pop(0), False)
    assert (held[-number - 7]() is None) == (number != -7), "its buffers could not be used again"
session.poll()
assert held[0]() is None
# What another thread reads, and what is read within a backward, ends no phase.
loader = torch.utils.data.DataLoader(list(range(4)))
for index in range(2):
    step()
loss = run(torch.ones(2, 16)).sum()
loss.register_hook(lambda gradient: (next(iter(loader)), None)[1])
loss.backward()
assert session.phase is not None
reader = threading.Thread(target=lambda: next(iter(loader)))
reader.start()
reader.join()
assert session.phase is not None
for _ in range(2):
    next(iter(loader))  # two loaders of one micro-step
assert (session.phase, session.waits_for) == (None, 1)
optimizer.step()
shardscope.detach(run)
dist.barrier()
# The script ends without detach(): with one whose callback has not run, and one that was not queried since it completed.
shardscope.attach(run, endpoint=third, run_id="third")
step()
dist.barrier()
issue(-20, 31, Work(future=Future(True)), True, HookOpName.BROADCAST)
work = Work(complete=False)
issue(-21, 32, work, True)
dist.destroy_process_group()
work.complete = True
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

    def test_a_collective_in_flight_between_two_recordings(self):
        again = folder() / "attached_again.py"
        again.write_text(AGAIN, encoding="utf-8")
        recordings = [folder() / f"late-{name}.zscope" for name in ("first", "second", "third")]
        endpoints = [f"ipc://{recording}.sock" for recording in recordings]
        collectors = [runs.start([runs.SHARDSCOPE, "record", recording, "--listen", endpoint])
                      for recording, endpoint in zip(recordings, endpoints)]
        for collector in collectors:
            self.addCleanup(collector.kill)
        runs.finish(runs.start(runs.torchrun(again, *endpoints)))
        for collector in collectors:
            runs.finish(collector)
        for rank in range(2):
            with self.subTest("at detach()", rank=rank):
                spans = {span["v0"]: span for span in runs.read(recordings[0]).spans_of(rank, "collective_begin")}
                at_end = {v0: int(spans[v0]["c"]) & (END_IS_BOUND | ENDED_BY_ERROR) for v0 in ("21", "22")}
                self.assertEqual(at_end, {"21": END_IS_BOUND, "22": END_IS_BOUND | ENDED_BY_ERROR})
                self.assertEqual([bool(spans[v0]["open_until_ns"]) for v0 in ("21", "22", "23")], [False, False, True])
                self.assertNotIn("24", spans, "it never began")
                self.assertTrue({"21", "22", "23", "24"}.isdisjoint(
                    span["v0"] for span in runs.read(recordings[1]).spans_of(rank, "collective_begin")))
            with self.subTest("at the end of the script", rank=rank):
                spans = {span["v0"]: span for span in runs.read(recordings[2]).spans_of(rank, "collective_begin")}
                self.assertEqual([spans[v0]["open_until_ns"] for v0 in ("31", "32")], ["", ""])
                self.assertEqual([int(spans[v0]["c"]) & END_IS_BOUND for v0 in ("31", "32")], [END_IS_BOUND, END_IS_BOUND])
        events = runs.read(recordings[1])
        self.assertEqual(runs.figures(recordings[1])["unmatched_ends"]["count"], 0)
        for rank in range(2):
            submitted = events.of(rank, "collective_submitted")
            self.assertGreater(len(submitted), 2)
            spans = events.spans_of(rank, "collective_begin")
            self.assertEqual(len(spans), len(submitted))
            self.assertEqual([span for span in spans if span["open_until_ns"]], [])
            by_error = {span["v0"]: bool(int(span["c"]) & ENDED_BY_ERROR) for span in spans}
            self.assertEqual([by_error[elements] for elements in ("13", "15", "16", "17")], [True, True, False, True])
            sequence = {span["v0"]: int(span["a"]) for span in spans}
            self.assertEqual((sequence["18"], sequence["19"]), (0xFF000000, sequence["17"] + 1))
            waits = [(e["a"], e["b"]) for e in events.spans_of(rank, "data_wait_begin")]
            self.assertEqual(waits, [("1", "2"), ("1", "2")])


if __name__ == "__main__":
    unittest.main()
