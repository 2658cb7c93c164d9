"""DistributedDataParallel's buckets: every gradient in one, each with the all-reduce that reduces it."""
import collections
import unittest

import runs
from pairs import TRAIN, folder

NO_ID = ("", "4294967295")
ALL_REDUCE, GROUP_COMPLETE = 3, 5
BYTES = 4  # of an element


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
        # DDP begins with one bucket and makes those of its limit after the first backward; what is in them it says one forward later.
        found, _ = self.check(recording, [1, 0, 7, 7])
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


if __name__ == "__main__":
    unittest.main()
