"""Turns a rank's events of DeepSpeed stage 3 into those of tests/golden/coordinator.json, whose legend says what each holds."""
import collections
import functools

import coordinator_rank
import runs
from pairs import QUICK, Runs, folder

PREFETCH, PARTITION, INVALIDATION = 1, 5, 6  # causes of a status
MICRO_STEP, PRE_FORWARD, POST_FORWARD, PRE_BACKWARD, POST_BACKWARD, OPTIMIZER = "1", "2", "3", "4", "5", "7"  # gates
NOT_AVAILABLE, IN_FLIGHT, AVAILABLE = range(3)
ALL_GATHER, REDUCE_SCATTER = "0", "1"
STOPS = ["disabled", "no_trace", "end_of_trace", "bucket_full", "live_limit", "offloaded"]
KEEPS = ["persistent", "reused_soon", "already_fetched", "in_use", "external", "not_available"]
COUNTERS = [f"{phase}_{what}" for phase in ("forward", "backward")
            for what in ("fetch_submit", "fetch_wait", "prefetch_submit", "all_gather")]
KINDS = ("gate", "fetch_decision", "release_kept", "param_status", "collective_submitted", "collective_part", "bucket_add",
         "bucket_flush", "trace_invalidated", "fetch_counter")


class Decisions:
    """`iterations`: of each micro-step a dictionary with "events", "available_at_start", "reduce_flushes" and "counters" as in
    the golden files, and with what follows from those: "gathers", {number: [bytes, parameters]} in order and without what is
    gathered in the update, "reduced", the bytes of each reduction in order, "stops", why each fetch prefetched no more, "kept",
    {parameter: why} of each release, and "keeps", (module, parameter, why) of all of them. `releases`: how often each parameter
    was released, wherever that was seen: our runtime's statuses are those of its streams, which may be past the next gate."""

    def __init__(self, recording, rank, models):
        """`models`: those of the golden files, in the order in which the process made them."""
        self.params = [p["ds_id"] for model in models for p in model["params"]]
        self.modules = [m["id"] for model in models for m in model["modules"]]
        self.model_of_param = [index for index, model in enumerate(models) for _ in model["params"]]
        self.model_of_module = [index for index, model in enumerate(models) for _ in model["modules"]]
        if [p["name"] for p in recording.params] != [p["name"] for model in models for p in model["params"]]:
            raise AssertionError("the recording has other parameters than the golden files")
        self.status = {}
        self.iterations = []
        self.releases = collections.Counter()
        self.dir = self.seen = self.invalidation = self.model = None
        self.arrived = []
        self.in_update = False
        self.counters = {}  # (step, micro-step) -> those of the iteration: our runtime's host is ahead of what it counts
        for event in recording.of(rank, *KINDS):
            getattr(self, event["kind"])(event)
        self.end_of_backward()
        for iteration, key in zip(self.iterations, sorted(self.counters)):
            iteration["counters"] = self.counters[key]

    @property
    def now(self):
        return self.iterations[-1]

    def with_status(self, status):
        """Parameters of the model that is trained now. The models before it keep what they have."""
        return sorted(self.params[number] for number, each in self.status.items()
                      if each == status and self.model_of_param[number] == self.model)

    def add(self, **event):
        self.now["events"].append({key: value for key, value in event.items() if value != []})

    def begin(self):
        self.seen = {"gather": [], "prefetch": [], "completed": [], "released": [], "partitioned": [], "kept": {}}

    def gate(self, event):
        kind = event["code"]
        if kind == MICRO_STEP:
            self.end_of_backward()
            self.in_update = False
            self.iterations.append({"events": [], "reduce_flushes": [], "counters": {}, "gathers": {}, "reduced": [],
                                    "stops": [], "kept": [], "keeps": []})
            self.begin()
        elif kind in (PRE_FORWARD, PRE_BACKWARD):
            self.end_of_backward()
            self.begin()
            self.model = self.model_of_module[int(event["b"])]
            self.now.setdefault("available_at_start", self.with_status(AVAILABLE))
            self.dir = "fwd" if kind == PRE_FORWARD else "bwd"
        elif kind in (POST_FORWARD, POST_BACKWARD):
            self.add(ev="release", module=self.modules[int(event["b"])], dir="fwd" if kind == POST_FORWARD else "bwd",
                     ids=sorted(self.seen["released"]))
            self.now["kept"].append(self.seen["kept"])
            self.begin()
        elif kind == OPTIMIZER:
            self.in_update = True

    def release_kept(self, event):
        param, reason = self.params[int(event["b"])], KEEPS[int(event["code"])]
        self.seen["kept"][param] = reason
        self.now["keeps"].append((self.modules[int(event["a"])], param, reason))

    def param_status(self, event):
        number, status, cause = int(event["a"]), int(event["code"]) & 7, int(event["code"]) >> 4
        param = self.params[number]
        self.status[number] = status
        if status == NOT_AVAILABLE and cause not in (PARTITION, INVALIDATION) and self.iterations:
            self.releases[param] += 1
        if self.seen is None:
            return
        if status == IN_FLIGHT:
            self.seen["prefetch" if cause == PREFETCH else "gather"].append(param)
        elif status == AVAILABLE:
            self.seen["completed"].append(param)
        elif cause == INVALIDATION:
            self.invalidation["ids"] = sorted([*self.invalidation.get("ids", []), param])
            self.seen["completed"] = [each for each in self.seen["completed"] if each != param]
        else:
            self.seen["partitioned" if cause == PARTITION else "released"].append(param)

    def trace_invalidated(self, event):
        self.add(ev="invalidate", step_id=int(event["c"]), recorded_len=int(event["v0"]),
                 expected_module=self.modules[int(event["a"])] if event["code"] == "0" else None)
        self.invalidation = self.now["events"][-1]

    def fetch_decision(self, event):
        seen = self.seen
        self.add(ev="fetch", module=self.modules[int(event["a"])], dir=self.dir, gather=sorted(seen["gather"]),
                 completed=sorted(seen["completed"]), prefetch=sorted(seen["prefetch"]),
                 inflight_after=self.with_status(IN_FLIGHT), n_available=int(event["v1"]))
        self.now["stops"].append(STOPS[int(event["code"])])
        self.begin()

    def collective_submitted(self, event):
        if not event["b"] or not self.iterations or self.in_update:
            return  # of no gather and no bucket
        if event["code"] == ALL_GATHER:
            self.now["gathers"][event["a"]] = [int(event["v1"]), []]
        elif event["code"] == REDUCE_SCATTER:
            self.now["reduced"].append(int(event["v1"]))

    def collective_part(self, event):
        if self.iterations and event["a"] in self.now["gathers"]:
            self.now["gathers"][event["a"]][1].append(self.params[int(event["b"])])

    def bucket_add(self, event):
        self.arrived.append(self.params[int(event["b"])])

    def bucket_flush(self, event):
        self.now["reduce_flushes"].append({"after_event": len(self.now["events"]) - 1, "ids_in_arrival_order": self.arrived,
                                           "elements": int(event["v0"])})
        self.arrived = []

    def fetch_counter(self, event):
        of_micro_step = self.counters.setdefault((int(event["b"]), int(event["a"])), {})
        of_micro_step[COUNTERS[int(event["code"])]] = [int(event["c"]), int(event["v0"])]

    def end_of_backward(self):
        """What was released since the last module: by release_backward_leftovers, then by the step."""
        if self.seen is not None:
            if self.seen["released"]:
                self.add(ev="release_leftovers", ids=sorted(self.seen["released"]))
            if self.seen["partitioned"]:
                self.add(ev="release_all", ids=sorted(self.seen["partitioned"]))
            self.seen = None


def comparable(events):
    """Of golden events: of a release the recording has parameters, not DeepSpeed's own count; of a coalesced gather its first
    wait."""
    kept = []
    for event in events:
        event = {key: value for key, value in event.items() if key != "wait"}
        if event["ev"] != "fetch":
            event.pop("n_available", None)
        kept.append(event)
    return kept


def gathers(events, model, world):
    """[bytes, parameters] of each gather of golden events in order: of a fetch, then of the prefetch after it. fp32, padding
    included."""
    part = model["partition"][str(world)]["partition_numel"]
    return [[4 * world * sum(part[param] for param in event[what]), event[what]]
            for event in events for what in ("gather", "prefetch") if event.get(what)]


def bytes_reduced(flushes, model, world):
    """Of each reduce-scatter. fp32, padding included."""
    part = model["partition"][str(world)]["partition_numel"]
    return [4 * world * sum(part[param] for param in flush["ids_in_arrival_order"]) for flush in flushes]


@functools.cache
def decided(world):
    """[[iterations of each case] of each rank]; all cases of as many ranks are trained in one run."""
    path = folder() / f"coordinator{world}.zscope"
    # The files are of 0.19.6. Whoever has not made it yet compares with the environment's own, whose coordinator is the same.
    version = runs.DEEPSPEED if QUICK else "0.19.6"
    runs.finish(runs.start(runs.attach(path) + runs.torchrun(runs.HERE / "coordinator_rank.py", ranks=world), deepspeed=version))
    recording, cases = runs.read(path), coordinator_rank.cases_of(world)
    of_ranks = []
    for rank in range(world):
        left = iter(Decisions(recording, rank, [model for model, _ in cases]).iterations)
        of_ranks.append([[next(left) for _ in coordinator_rank.iterations_of(case)] for _, case in cases])
        if next(left, None) is not None:
            raise AssertionError("more micro-steps than the cases have")
    return of_ranks


class GoldenCases(Runs):
    WORLDS = (1, 2, 3)

    def check(self, compare):
        """compare(world, model, case, index, the recording's, the golden file's) of every iteration of every case on every rank."""
        for world in self.WORLDS:
            for rank, of_cases in enumerate(decided(world)):
                for (model, case), iterations in zip(coordinator_rank.cases_of(world), of_cases, strict=True):
                    for index, (got, expected) in enumerate(zip(iterations, coordinator_rank.iterations_of(case), strict=True)):
                        with self.subTest(case=case["id"], world=world, rank=rank, iteration=index):
                            compare(world, model, case, index, got, expected)
