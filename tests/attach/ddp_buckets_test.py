"""DistributedDataParallel's buckets: every gradient in one, each with the all-reduce that reduces it."""
import collections
import json
import unittest

import runs
from pairs import TRAIN, folder

NO_ID = ("", "4294967295")
ALL_REDUCE, GROUP_COMPLETE = 3, 5
BYTES = 4  # of an element
# One rank's part of a run of four steps, in each of which every model is trained: CASE.
SCRIPT = """
import gc, sys, weakref
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def wrapped(model):
    return DistributedDataParallel(model, find_unused_parameters=True, bucket_cap_mb=0.001)


def hook(state, bucket):
    return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(lambda future: future.value()[0])


def main(case):
    torch.manual_seed(7)
    dist.init_process_group("gloo")
    models = [nn.Sequential(*(nn.Linear(16, 16) for _ in range(8))) for _ in range(3 if case == "three" else 1)]
    if case == "alike":
        class Batch(torch.nn.SyncBatchNorm):
            def forward(self, x):
                return x
        models[0].append(Batch(136, affine=False, track_running_stats=False))  # 272 elements, as a layer
        DistributedDataParallel._passing_sync_batchnorm_handle = lambda ddp, module: None  # it takes none on a CPU
    runs = [wrapped(model) for model in models]
    if case == "hooked":
        runs[0].register_comm_hook(None, hook)
    for step in range(4):
        if case == "again" and step == 2:
            runs = [wrapped(models[0])]
        for run in runs:
            run(torch.ones(2, 16)).sum().backward()
        if case == "fault" and step == 1:
            from shardscope import ddp_buckets
            ddp_buckets.state.order.table = 7
        if case == "short" and step == 1:
            from shardscope import ddp_buckets
            ddp_buckets.state.order.table.append(ddp_buckets.state.order.table[0])
    held = [weakref.ref(param) for model in models for param in model.parameters()]
    del run, runs, models
    gc.collect()
    assert not any(ref() is not None for ref in held)
    dist.barrier()
    dist.destroy_process_group()


main(sys.argv[1])
"""


def setUpModule():
    folder()


class Buckets(unittest.TestCase):
    def recorded(self, name, *options):
        """The recording of a run that trained as the plain one did."""
        made, outs = folder() / f"{name}.zscope", [folder() / f"{name}.{how}" for how in ("plain", "attached")]
        runs.finish(runs.start(runs.torchrun(TRAIN, "ddp", outs[0], *options)))
        output = runs.finish(runs.start(runs.attach(made) + runs.torchrun(TRAIN, "ddp", outs[1], *options)))
        self.assertEqual(*map(runs.results, outs))
        self.assertNotIn("is off", output)
        return made, runs.read(made)

    def micro_steps(self, recording, rank):
        """[{bucket: (its parameters, elements, bytes of its all-reduce)}] of each micro-step, and its all-reduces without one."""
        micro = recording.spans_of(rank, "micro_step_begin")
        found, others = [{} for _ in micro], [[] for _ in micro]
        for index, span in enumerate(micro):
            until = int(micro[index + 1]["begin_ns"]) if index + 1 < len(micro) else 1 << 62
            here = [e for e in recording.of(rank, "bucket_add", "bucket_flush", "collective_submitted")
                    if int(span["begin_ns"]) <= int(e["at_ns"]) < until]
            added = collections.defaultdict(list)
            for event in here:
                if event["kind"] == "bucket_add":
                    added[event["a"]].append(event["b"])
                elif event["kind"] == "bucket_flush":
                    self.assertEqual(int(event["code"]), GROUP_COMPLETE)
                    found[index][event["a"]] = [added.pop(event["a"]), int(event["v0"]), None]
                elif int(event["code"]) == ALL_REDUCE and event["b"] in NO_ID:
                    others[index].append(int(event["v0"]))
                elif int(event["code"]) == ALL_REDUCE:
                    self.assertIsNone(found[index][event["b"]][2], "one all-reduce for each bucket")
                    found[index][event["b"]][2] = int(event["v1"])
            self.assertEqual(added, {}, "a bucket that was filled and not reduced")
        return found, others

    def check(self, recording, buckets):
        """`buckets`: how many there are in each micro-step; 0: not known."""
        elems = {p["param"]: int(p["elems"]) for p in recording.params}
        for rank in range(2):
            found, others = self.micro_steps(recording, rank)
            self.assertEqual([len(each) for each in found], buckets)
            for each in filter(None, found):
                self.assertEqual(sorted(p for params, *_ in each.values() for p in params), sorted(elems), "each in exactly one")
                for params, total, reduced in each.values():
                    self.assertEqual(total, sum(elems[p] for p in params))
                    self.assertEqual(reduced, total * BYTES)
        return found, others

    def test_every_parameter_is_in_one_bucket_whose_bytes_are_the_all_reduces(self):
        made, recording = self.recorded("ddp-buckets", "steps=4", "bucket_mb=0.01")
        # DDP begins with one bucket and makes those of its limit after the first backward.
        found, _ = self.check(recording, [1, 7, 7, 7])
        for rank in range(2):
            asked, *logged = [[params for params, *_ in each.values()] for each in self.micro_steps(recording, rank)[0][1:]]
            self.assertEqual([asked] * 2, logged, "the reducer's own table is the one that its logging data has a forward later")
        names = {p["param"]: p["name"] for p in recording.params}
        ready = [[names[p] for p in params] for params, *_ in found[3].values()]
        self.assertIn("last.bias", ready[0], "the backward comes to the last module first")
        self.assertIn("first.weight", ready[-1])
        summary = runs.figures(made)
        self.assertEqual((summary["dropped"], summary["unmatched_ends"]["count"]), (0, 0))

    def test_the_map_of_used_parameters_is_in_no_bucket(self):
        _, recording = self.recorded("ddp-unused", "steps=3", "bucket_mb=0.01", "unused=1")
        # Buckets of such a model are never made anew.
        found, others = self.micro_steps(recording, 0)
        self.assertGreater(len(found[0]), 3)
        self.check(recording, [len(found[0])] * 3)
        for each in others:
            self.assertIn(len(recording.params), each)


class Cases(unittest.TestCase):
    def run_of(self, case):
        """(flushed buckets of rank 0 in each micro-step, why none are recorded or "", output)."""
        script, made = folder() / "ddp_cases.py", folder() / f"ddp-case-{case}.zscope"
        script.write_text(SCRIPT, encoding="utf-8")
        output = runs.finish(runs.start(runs.attach(made) + runs.torchrun(script, case)))
        recording = runs.read(made)
        begins = [int(span["begin_ns"]) for span in recording.spans_of(0, "micro_step_begin")]
        flushed = collections.Counter(sum(begin <= int(e["at_ns"]) for begin in begins) for e in recording.of(0, "bucket_flush"))
        lacks = runs.figures(made)["run"]["not_recorded"]
        why = [each["why"] for each in lacks if "buckets" in json.dumps(each["what"])]
        return [flushed[index + 1] for index in range(len(begins))], *why[:1], output

    def test_a_model_that_is_wrapped_anew_has_its_buckets(self):
        flushed, output = self.run_of("again")
        self.assertEqual(flushed, [8] * 4, output)

    def test_of_three_models_no_bucket_is_recorded(self):
        flushed, why, output = self.run_of("three")
        self.assertIn("several models", why)
        self.assertEqual(sum(flushed), 0, output)

    def test_what_is_not_known_has_its_reason(self):
        for case, word in (("hooked", "a communication hook"), ("alike", "a SyncBatchNorm's")):
            with self.subTest(case=case):
                flushed, why, output = self.run_of(case)
                self.assertIn(word, why)
                self.assertEqual(sum(flushed), 0, output)

    def test_buckets_that_a_backward_has_not_reduced(self):
        flushed, why, output = self.run_of("short")
        self.assertIn("has not reduced every bucket", why)
        self.assertEqual(flushed, [8, 8, 0, 0], output)

    def test_a_fault_in_buckets_leaves_the_rest_recorded(self):
        flushed, why, output = self.run_of("fault")
        self.assertIn("a hook of DistributedDataParallel's buckets is off", why)
        self.assertEqual(flushed, [8, 8, 0, 0], output)
        self.assertIn("DistributedDataParallel's buckets: the hook of", output)


if __name__ == "__main__":
    unittest.main()
