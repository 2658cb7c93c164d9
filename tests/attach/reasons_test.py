"""Why: reasons of attached DeepSpeed runs, each worked out anew from what DeepSpeed did and from its limits.

    tests/attach/run reasons_test
"""
import collections
import unittest

import runs
from decisions import STOPS, GoldenCases
from pairs import TRAIN, Runs, folder, slow

FULL, EXTRA_LARGE, EPILOGUE, BOUNDARY = "0", "1", "2", "3"
ALL_GATHER, PERSISTENT_CAUSE, PARTITION, CONTEXT = 0, "persistent", "partition", "context"
BACKWARD, OPTIMIZER = "1", "3"  # phases
ELEMS = 25957  # of tests/attach/train.py's model


def setUpModule():
    folder()


class Module:
    """What a module fetches: its own parameters, those that it uses of others, as a leaf those of the modules in it."""

    def __init__(self, model, case, iteration):
        self.modules = {m["id"]: m for m in model["modules"]}
        self.leaves = case["config"].get("leaf_module", {}).get("names", [])
        # Registered when they are first read, in the first forward: what modules return before the release of its reader.
        self.external = case.get("external_params", {}) if iteration > 0 or "tree" in model else {}

    def params(self, number):
        module = self.modules[number]
        inside = [module]
        if module["name"] in self.leaves:
            inside += [m for m in self.modules.values() if m["name"].startswith(module["name"] + ".")]
        return {p["ds_id"] for m in inside for p in m["params"]} | set(self.external.get(str(number), []))


def modes_of(case, index, events):
    """Of each event of an iteration: whether the trace is complete then."""
    complete = index > 0 if "iterations" not in case else case["iterations"][index]["mode"] == "COMPLETE"
    for event in events:
        complete = complete and event["ev"] != "invalidate"
        yield event, complete


def stops(model, case, index, events):
    """Of each fetch the reasons that can be: of two only where no parameter is gathered after it."""
    size = {p["ds_id"]: p["numel"] for p in model["params"]}
    bucket, limit = case["config"]["stage3_prefetch_bucket_size"], case["config"]["stage3_max_live_parameters"]
    for place, (event, complete) in enumerate(modes_of(case, index, events)):
        if event["ev"] != "fetch":
            continue
        prefetched = sum(size[param] for param in event.get("prefetch", []))
        room = limit - (event["n_available"] - prefetched)
        if bucket == 0:
            yield {"disabled"}
        elif not complete:
            yield {"no_trace"}
        elif prefetched < min(room, bucket):
            yield {"end_of_trace"}  # there was room for more
        else:
            later = any(e.get("gather") or e.get("prefetch") for e in events[place + 1:])
            yield {"live_limit" if room < bucket else "bucket_full"} | (set() if later else {"end_of_trace"})


def keeps(model, case, index, iteration):
    """Of each release {parameter: reasons that can be} of what the module has and does not give back. Where modules return
    parameters DeepSpeed marks those as external."""
    of, whole, users = Module(model, case, index), set(iteration["available_at_start"]), collections.defaultdict(set)
    for event in iteration["events"]:
        whole = (whole | set(event.get("completed", []))) - set(event.get("ids", []))
        if event["ev"] == "fetch":
            for param in of.params(event["module"]):
                users[param].add(event["module"])
        elif event["ev"] == "release":
            for param in of.params(event["module"]):
                users[param].discard(event["module"])
            yield {param: why_kept(case, param, users[param]) | ({"external"} if "tree" in model else set())
                   for param in sorted(of.params(event["module"]) & whole)}


def why_kept(case, param, users):
    if users:
        return {"in_use"}
    if param in case["persisted"]:
        return {"persistent"}
    # Of what the trace uses again soon, or has fetched for a later module already.
    return {"already_fetched"} if case["config"]["stage3_max_reuse_distance"] == 0 else {"already_fetched", "reused_soon"}


class Stage3(GoldenCases):
    """Reasons of the golden cases: DeepSpeed's limits, and what it fetched and released as it was recorded from DeepSpeed."""

    WORLDS = (2, 3)

    @slow
    def test_why_no_more_was_prefetched(self):
        seen = set()

        def compare(world, model, case, index, got, expected):
            possible = list(stops(model, case, index, expected["events"]))
            self.assertEqual(len(got["stops"]), len(possible))
            for place, (reason, reasons) in enumerate(zip(got["stops"], possible)):
                self.assertIn(reason, reasons, place)
                if len(reasons) == 1:
                    seen.add(reason)

        self.check(compare)
        self.assertEqual(seen, set(STOPS) - {"offloaded"})

    @slow
    def test_why_a_parameter_was_kept(self):
        seen = collections.Counter()

        def compare(world, model, case, index, got, expected):
            possible = list(keeps(model, case, index, expected))
            self.assertEqual([sorted(kept) for kept in got["kept"]], [sorted(kept) for kept in possible])
            for place, (kept, reasons) in enumerate(zip(got["kept"], possible)):
                for param, reason in kept.items():
                    self.assertIn(reason, reasons[param], (place, param))
                    seen[reason] += 1

        self.check(compare)
        self.assertEqual(set(seen), {"persistent", "reused_soon", "already_fetched", "in_use", "external"})


class Contexts(Runs):
    def test_parameters_that_a_context_gathers(self):
        """The script gathers all for its digest, after the last step."""
        statuses = self.recording("zero3").table("status")
        for rank in "01":
            of_rank = [s for s in statuses if s["rank"] == rank]
            params = {s["param"] for s in of_rank}
            last = max(index for index, s in enumerate(of_rank) if s["cause"] == PERSISTENT_CAUSE)
            self.assertEqual({s["cause"] for s in of_rank[last + 1:]}, {CONTEXT})
            self.assertEqual({s["param"] for s in of_rank[last + 1:] if s["status"] == "not_available"}, params)
            self.assertNotIn(CONTEXT, {s["cause"] for s in of_rank[:last]})


class Buckets(Runs):
    def flushes(self, *case):
        """(recording, the size of a bucket, [(flush, elements of its largest gradient)])"""
        recording = self.recording(*case)
        size = {p["param"]: int(p["elems"]) for p in recording.params}
        limit = next((int(each.removeprefix("bucket=")) for each in case if each.startswith("bucket=")), 5000)
        largest, found = collections.Counter(), []
        for event in recording.of(0, "bucket_add", "bucket_flush"):
            if event["kind"] == "bucket_add":
                largest[event["a"]] = max(largest[event["a"]], size[event["b"]])
            else:
                found.append((event, largest[event["a"]]))
        return recording, limit, found

    def reasons(self, *case, micro_steps=3):
        recording, limit, flushes = self.flushes(*case)
        backward = [s for s in recording.spans_of(0, "phase_begin") if s["code"] == BACKWARD]
        self.assertEqual(len(backward), micro_steps)
        for span in backward:
            here = [(e, largest) for e, largest in flushes if int(span["begin_ns"]) <= int(e["at_ns"]) <= int(span["end_ns"])]
            self.assertEqual(sum(int(e["v0"]) for e, _ in here), ELEMS, "every gradient is reduced")
            *before, (last, _) = here
            self.assertEqual(last["code"], EPILOGUE)
            self.assertEqual(last["b"], "", "no gradient made it")
            for event, largest in before:
                self.assertEqual(event["code"], EXTRA_LARGE if largest > limit else FULL, event)
                self.assertNotEqual(event["b"], "")
        return {e["code"] for e, _ in flushes}

    def test_full_and_epilogue(self):
        for case, micro_steps in ((("zero2", "accumulate=2"), 6), (("zero3",), 3)):
            with self.subTest(case=case):
                self.assertEqual(self.reasons(*case, micro_steps=micro_steps), {FULL, EPILOGUE})

    @slow
    def test_gradients_larger_than_a_bucket(self):
        for stage in ("zero1", "zero2", "zero3"):
            with self.subTest(stage=stage):
                self.assertEqual(self.reasons(stage, "bucket=1000"), {FULL, EXTRA_LARGE, EPILOGUE})

    def waits_and_gathers(self, *case, steps=3):
        recording, _, flushes = self.flushes(*case)
        waits = recording.spans_of(0, "reduce_wait_begin")
        # Where there is no second stream the host reduces at each flush: DeepSpeed issue 8364.
        self.assertEqual([(w["a"], int(w["v0"])) for w in waits], [(e["a"], 4 * int(e["v0"])) for e, _ in flushes])
        for wait, (flush, _) in zip(waits, flushes):
            self.assertLessEqual(int(flush["at_ns"]), int(wait["begin_ns"]))
        ends = [int(s["end_ns"]) for s in recording.spans_of(0, "phase_begin") if s["code"] == OPTIMIZER]
        updates = recording.spans_of(0, "optimizer_begin")
        self.assertEqual((len(ends), len(updates)), (steps, steps))
        gathers = [e for e in recording.of(0, "collective_submitted") if int(e["code"]) == ALL_GATHER]
        flat = -(-ELEMS // 4) * 4  # padded to ranks and alignment
        for update, end in zip(updates, ends):
            closing = [e for e in gathers if int(update["end_ns"]) <= int(e["at_ns"]) <= end]
            self.assertEqual(sum(int(e["v1"]) for e in closing), 4 * flat, "after the update every rank has all parameters again")
            gathers = [e for e in gathers if e not in closing]
        self.assertEqual(gathers, [])

    def test_waits_that_serialize_and_the_closing_gather(self):
        self.waits_and_gathers("zero2", "accumulate=2")

    @slow
    def test_the_same_of_stage_1_and_small_buckets(self):
        for stage in ("zero1", "zero2"):
            with self.subTest(stage=stage):
                self.waits_and_gathers(stage, "bucket=1000")


class Stage0(Runs):
    """Gradients are reduced once a step, in the order of the model's parameters, a bucket whenever it holds more than the limit."""

    @slow
    def test_buckets_of_every_step_by_closed_form(self):
        for options, micro in ((("accumulate=2",), 2), (("whole_bucket=4000",), 1)):
            with self.subTest(options=options):
                limit = int(options[0].partition("=")[2]) if "bucket" in options[0] else 500_000_000
                recording = self.trained("zero0", *options)
                expected, held = [[]], 0
                for param in recording.params:
                    expected[-1].append((param["param"], int(param["elems"])))
                    held += int(param["elems"])
                    if held > limit:
                        expected.append([])
                        held = 0
                expected = [bucket for bucket in expected if bucket]
                self.assertEqual(len(expected) > 1, limit == 4000)
                for rank in range(2):
                    self.check(recording, rank, expected, limit, micro)

    def trained(self, *case):
        """The recording of a run that trained as the plain one did."""
        name = "stage0-" + "-".join(case)
        made, out = folder() / f"{name}.zscope", folder() / name
        runs.finish(runs.start(runs.torchrun(TRAIN, case[0], f"{out}.plain", *case[1:])))
        output = runs.finish(runs.start(runs.attach(made) + runs.torchrun(TRAIN, case[0], out, *case[1:])))
        self.assertEqual(runs.results(f"{out}.plain"), runs.results(out))
        self.assertNotIn("is off", output)
        return runs.read(made)

    def check(self, recording, rank, expected, limit, micro):
        events = recording.of(rank, "bucket_add", "bucket_flush", "collective_submitted")
        steps = recording.spans_of(rank, "step_begin")
        last = [s for s in recording.spans_of(rank, "micro_step_begin") if int(s["a"]) == micro - 1]
        self.assertEqual((len(steps), len(last)), (len(steps), len(steps)))
        self.assertGreater(len(steps), 0)
        for span in last:
            inside = [e for e in events if int(span["begin_ns"]) <= int(e["at_ns"]) <= int(span["end_ns"])]
            made, added, of_bucket = [], collections.defaultdict(list), {}
            for event in inside:
                if event["kind"] == "bucket_add":
                    added[event["a"]].append((event["b"], int(event["v0"])))
                elif event["kind"] == "bucket_flush":
                    elems = sum(size for _, size in added[event["a"]])
                    self.assertEqual(int(event["v0"]), elems)
                    self.assertEqual(event["code"], FULL if elems > limit else BOUNDARY)
                    made.append(added[event["a"]])
                    of_bucket[event["a"]] = 4 * elems
                elif event["b"] in of_bucket:
                    self.assertEqual(int(event["v1"]), of_bucket.pop(event["b"]), "one all-reduce of the bucket's bytes")
            self.assertEqual(made, expected)
            self.assertEqual(of_bucket, {})
        flushes = [e for e in events if e["kind"] == "bucket_flush"]
        self.assertEqual(len(flushes), len(steps) * len(expected), "none elsewhere")


if __name__ == "__main__":
    unittest.main()
