"""The decisions of DeepSpeed's coordinator in an attached run are those that were recorded from DeepSpeed itself
(tests/golden/coordinator.json, which golden_check compares with our own planner): every fetch, prefetch, wait and release
of every micro-step, in order."""
import json
import pathlib
import tempfile
import unittest

import runs

GOLDEN = json.loads((runs.ROOT / "tests" / "golden" / "coordinator.json").read_text(encoding="utf-8"))
FETCH, PREFETCH, RELEASE, PARTITION = 0, 1, 4, 5
PRE_FORWARD, POST_FORWARD, PRE_BACKWARD, POST_BACKWARD = "2", "3", "4", "5"
KINDS = ("gate", "fetch_decision", "param_status")
MICRO_STEP = "1"


def setUpModule():
    runs.build_package()


def ids(values):
    return sorted(values)


class Reader:
    """Turns a rank's events into those of the golden file, with its parameters' ids."""

    def __init__(self, recording, rank, model):
        by_name = {p["name"]: p["ds_id"] for p in model["params"]}
        self.ids = {int(p["param"]): by_name[p["name"]] for p in recording.params}
        self.own = {m["id"]: {p["ds_id"] for p in m["params"]} for m in model["modules"]}
        self.status = dict.fromkeys(by_name.values(), 0)
        self.iterations = []
        self.dir = None
        self.seen = None
        for event in recording.of(rank, *KINDS):
            getattr(self, event["kind"])(event)
        self.end_of_backward()

    def add(self, **event):
        self.iterations[-1].append({key: value for key, value in event.items() if value != []})

    def begin(self):
        self.seen = {"gather": [], "prefetch": [], "completed": [], "wait": [], "released": [], "partitioned": []}

    def gate(self, event):
        kind, module = event["code"], event["b"]
        if kind == MICRO_STEP:
            self.end_of_backward()
            self.iterations.append([])
            self.begin()
        elif kind in (PRE_FORWARD, PRE_BACKWARD):
            self.end_of_backward()
            self.begin()
            self.dir = "fwd" if kind == PRE_FORWARD else "bwd"
        elif kind in (POST_FORWARD, POST_BACKWARD):
            self.add(ev="release", module=int(module), dir="fwd" if kind == POST_FORWARD else "bwd",
                     ids=ids(self.seen["released"]))
            self.begin()

    def param_status(self, event):
        param, status, cause = self.ids[int(event["a"])], int(event["code"]) & 7, int(event["code"]) >> 4
        if self.seen is not None:
            if status == 1:
                self.seen["prefetch" if cause == PREFETCH else "gather"].append(param)
            elif status == 2:
                self.seen["completed"].append(param)
            else:
                self.seen["partitioned" if cause == PARTITION else "released"].append(param)
        self.status[param] = status

    def fetch_decision(self, event):
        module, seen = int(event["a"]), self.seen
        # Waited for: of the module's own parameters those that became available in this fetch.
        wait = [p for p in seen["completed"] if p in self.own[module]]
        self.add(ev="fetch", module=module, dir=self.dir, gather=ids(seen["gather"]), wait=ids(wait),
                 completed=ids(seen["completed"]), prefetch=ids(seen["prefetch"]),
                 inflight_after=ids(p for p, status in self.status.items() if status == 1), n_available=int(event["v1"]))
        self.begin()

    def end_of_backward(self):
        """What was released since the last module: by release_backward_leftovers, then by the step."""
        if self.seen is not None:
            if self.seen["released"]:
                self.add(ev="release_leftovers", ids=ids(self.seen["released"]))
            if self.seen["partitioned"]:
                self.add(ev="release_all", ids=ids(self.seen["partitioned"]))
            self.seen = None


def without_counts(events):
    """Of a release the recording has parameters, not DeepSpeed's own count; of a coalesced gather its first wait."""
    kept = []
    for event in events:
        event = dict(event)
        if event["ev"] != "fetch":
            event.pop("n_available", None)
        event.pop("wait", None)
        kept.append(event)
    return kept


class Coordinator(unittest.TestCase):
    def check(self, name):
        case = next(trace for trace in GOLDEN["traces"] if trace["id"] == name)
        model = GOLDEN["models"][case["model"]]
        with tempfile.TemporaryDirectory(prefix="shardscope-attach-") as folder:
            path = pathlib.Path(folder) / "run.zscope"
            runs.finish(runs.start(runs.attach(path) + runs.torchrun(runs.HERE / "coordinator_rank.py", name),
                                   deepspeed="0.19.6"))
            recording = runs.Recording(path)
            for rank in range(2):
                got = Reader(recording, rank, model).iterations
                self.assertEqual(len(got), 4)
                for index, expected in enumerate((case["record"], case["complete"], case["complete"], case["complete"])):
                    with self.subTest(rank=rank, iteration=index):
                        self.assertEqual(without_counts(got[index]), without_counts(expected["events"]))

    def test_prefetches_within_limits(self):
        self.check("T01")

    def test_reuse_distance(self):
        self.check("T04")


if __name__ == "__main__":
    unittest.main()
