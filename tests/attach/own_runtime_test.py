"""DeepSpeed 3, attached, and our own runtime under DeepSpeed compatibility, on the same model, weights and data: every fetch,
prefetch, release and flush of every micro-step, in order, with bytes and reasons. Both sides are read from their recordings;
tests/peers/compare.py compares more cases with what an observer of its own sees of DeepSpeed.

    tests/attach/run own_runtime_test
"""
import json
import unittest

import runs
from decisions import Decisions
from pairs import folder

import compare
from cases import Case, job_of, name_of
from differences import deviation
from own_events import as_double

CASES = [Case("mlp", 3, 2, 1, "fp32", "persist_100"), Case("gpt", 3, 2, 3, "fp32"), Case("gpt_tied", 3, 3, 1, "fp32", "persist_100")]


def setUpModule():
    folder()


def model_of(recording):
    """Its tables as a model of the golden files, with paths in the place of DeepSpeed's numbers."""
    return {"params": [{"ds_id": p["name"], "name": p["name"]} for p in recording.params],
            "modules": [{"id": m["path"]} for m in recording.modules]}


def comparable(iteration):
    """Our runtime's statuses are those of its streams, DeepSpeed's those of its host: of both what the host decides is compared."""
    return {"visits": [(e["ev"], e["module"], e["dir"], e.get("n_available")) for e in iteration["events"] if "module" in e],
            "gathers": [[size, sorted(params)] for size, params in iteration["gathers"].values()],
            "flushes": [(flush["ids_in_arrival_order"], flush["elements"]) for flush in iteration["reduce_flushes"]],
            "counters": {name: counted for name, counted in iteration["counters"].items() if counted[0]},
            "keeps": sorted(iteration["keeps"]), "reduced": iteration["reduced"],
            "stops": iteration["stops"]}


class OwnRuntime(unittest.TestCase):
    def sides(self, case):
        """Recordings of DeepSpeed and of our runtime."""
        here = folder() / name_of(case)
        (here / "deepspeed").mkdir(parents=True)
        port = runs.free_port()
        job = {**job_of(case, here / "deepspeed"), "port": port, "observe": False}
        (here / "jobs.json").write_text(json.dumps([job]), encoding="utf-8")
        made = here / "deepspeed.zscope"
        command = [runs.PYTHON, "-m", "torch.distributed.run", "--nproc-per-node", case.world, "--master-port", port,
                   runs.ROOT / "tests" / "peers" / "peer_rank.py", here / "jobs.json"]
        runs.finish(runs.start(runs.attach(made) + command))
        compare.run_own(runs.BUILD, case, here / "own")
        return runs.read(made), runs.read(here / "own" / "run.zscope")

    def test_the_same_decisions_with_the_same_bytes_for_the_same_reasons(self):
        for case in CASES:
            theirs, ours = self.sides(case)
            for rank in range(case.world):
                decided = [Decisions(each, rank, [model_of(each)]) for each in (theirs, ours)]
                both = [each.iterations for each in decided]
                self.assertEqual(len(both[0]), len(both[1]))
                self.assertEqual(len(both[0]), compare.STEPS * case.parts)
                self.assertEqual(decided[0].releases, decided[1].releases, name_of(case))
                for index, (their, our) in enumerate(zip(*([*map(comparable, side)] for side in both))):
                    for what in their:
                        with self.subTest(case=name_of(case), rank=rank, iteration=index, what=what):
                            self.assertEqual(our[what], their[what])
                losses = [[as_double(e["v0"]) for e in each.of(rank, "loss")] for each in (ours, theirs)]
                self.assertLess(deviation(*losses), compare.BOUNDS[case.dtype]["loss"])


if __name__ == "__main__":
    unittest.main()
