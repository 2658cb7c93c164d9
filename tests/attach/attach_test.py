"""Attached training is the training: bit for bit. And what is recorded of it is what happened.

    tests/attach/run [unittest arguments]
"""
import collections
import unittest

import runs
from pairs import BLOCKS, CASES, GROUPS, TRAIN, Runs, as_double, folder, plain, slow


def setUpModule():
    folder()


def micro_steps_of(case):
    return 2 if "accumulate=2" in case else 1


class Attached(Runs):
    def test_losses_norms_and_weights_are_bitwise_equal(self):
        for case in CASES:
            with self.subTest(case=case):
                attached, _, output = self.attached(*case)
                self.assertEqual(plain(case), attached, output[-2000:])

    def test_no_hook_has_failed_and_no_symbol_differs(self):
        for case in CASES:
            with self.subTest(case=case):
                output = self.attached(*case)[2]
                self.assertNotIn("is off", output)
                self.assertNotIn("not recorded", output)

    @slow
    def test_older_deepspeed(self):
        attached, recording, output = self.attached("zero3", deepspeed="0.19.6")
        self.assertEqual(plain(("zero3",), deepspeed="0.19.6"), attached)
        self.assertNotIn("is off", output)
        self.assertEqual(len(runs.read(recording).of(0, "loss")), 3)

    def test_losses_are_those_of_the_script(self):
        for case in CASES:
            with self.subTest(case=case):
                attached, _, _ = self.attached(*case)
                scale = 2 if case[0] in ("ddp", "fsdp1", "fsdp2") and "accumulate=2" in case else 1
                recording = self.recording(*case)
                for rank in range(2):
                    losses = [as_double(e["v0"]) * scale for e in recording.of(rank, "loss")]
                    self.assertEqual(losses, [float.fromhex(x) for x in attached[rank]["losses"]])

    def test_every_step_and_micro_step_is_there_with_its_phases(self):
        for case in CASES:
            with self.subTest(case=case):
                recording, micro = self.recording(*case), micro_steps_of(case)
                for rank in range(2):
                    self.assertEqual(len(recording.spans_of(rank, "step_begin")), 3)
                    self.assertEqual(len(recording.spans_of(rank, "micro_step_begin")), 3 * micro)
                    phases = collections.Counter(int(s["code"]) for s in recording.spans_of(rank, "phase_begin"))
                    self.assertEqual(phases, {0: 3 * micro, 1: 3 * micro, 3: 3})

    def test_every_begin_has_its_end_and_nothing_is_lost(self):
        for case in CASES:
            with self.subTest(case=case):
                summary = runs.figures(self.attached(*case)[1])
                self.assertEqual(summary["dropped"], 0)
                self.assertEqual(summary["unmatched_ends"]["count"], 0, summary["unmatched_ends"])
                open_ones = [s for s in self.recording(*case).spans if s["open_until_ns"]]
                self.assertEqual(open_ones, [])

    def test_learning_rates_of_the_first_group(self):
        for case in CASES:
            with self.subTest(case=case):
                rate = 2e-3 if "groups=1" in case else 1e-3
                for rank in range(2):
                    rates = [as_double(e["v0"]) for e in self.recording(*case).of(rank, "learning_rate")]
                    self.assertEqual(rates, [rate] * 3)

    def test_waits_for_data_between_micro_steps(self):
        """One before each but the first, of which the run may begin with the forward only, and one that ends the loader."""
        for case in CASES:
            with self.subTest(case=case):
                recording, micro = self.recording(*case), micro_steps_of(case)
                for rank in range(2):
                    begins = [int(s["begin_ns"]) for s in recording.spans_of(rank, "micro_step_begin")]
                    waits = [(int(s["begin_ns"]), int(s["end_ns"])) for s in recording.spans_of(rank, "data_wait_begin")]
                    self.assertIn(len(waits), (3 * micro, 3 * micro + 1))
                    waits = waits[-3 * micro:]
                    for (begin, end), before, after in zip(waits, begins, [*begins[1:], waits[-1][1]]):
                        self.assertTrue(before < begin <= end <= after, (begin, end, before, after))

    def test_a_step_begins_where_its_data_is_waited_for(self):
        """Each but the first, of which nothing says that the data is for it; what ends the loader is in no step."""
        for case in CASES:
            with self.subTest(case=case):
                recording = self.recording(*case)
                for rank in range(2):
                    steps = {s["a"]: (int(s["begin_ns"]), int(s["end_ns"])) for s in recording.spans_of(rank, "step_begin")}
                    waits = [s for s in recording.spans_of(rank, "data_wait_begin") if s["a"] == "0"]
                    self.assertEqual(set(steps), {"0", "1", "2"})
                    self.assertLessEqual({"1", "2", "3"}, {wait["b"] for wait in waits})
                    for wait in waits:
                        begin, end = int(wait["begin_ns"]), int(wait["end_ns"])
                        if wait["b"] in ("1", "2"):
                            self.assertTrue(steps[wait["b"]][0] <= begin <= end < steps[wait["b"]][1], (wait, steps))
                        elif wait["b"] == "3":
                            self.assertGreater(begin, steps["2"][1])

    def test_gradient_norms_of_deepspeed(self):
        for case in CASES:
            if case[0] in ("zero1", "zero2", "zero3"):
                with self.subTest(case=case):
                    attached, _, _ = self.attached(*case)
                    norms = [as_double(e["v0"]) for e in self.recording(*case).of(0, "grad_norm")]
                    self.assertEqual(norms, [float.fromhex(x) for x in attached[0]["norms"]])


class Modules(Runs):
    """Spans of modules where the framework has no hooks of its own, and inside FSDP2's groups."""

    def test_every_module_once_forward_and_once_backward_inside_its_parent(self):
        for case in (("ddp", "accumulate=2"), ("zero2", "accumulate=2"), ("fsdp2",)):
            with self.subTest(case=case):
                recording, micro = self.recording(*case), 3 * micro_steps_of(case)
                parent = {m["module"]: m["parent"] for m in recording.modules}
                called = {m["module"] for m in recording.modules if m["type"] != "ModuleList"}
                spans = recording.spans_of(0, "module_begin")
                for kind in (0, 1):
                    count = collections.Counter(s["a"] for s in spans if int(s["code"]) == kind)
                    self.assertEqual(count, {module: micro for module in called}, kind)
                for span in spans:
                    outer = parent[span["a"]]
                    while outer in parent and outer not in called:
                        outer = parent[outer]
                    if outer in called:
                        self.assertTrue(any(o["a"] == outer and o["code"] == span["code"]
                                            and int(o["begin_ns"]) <= int(span["begin_ns"])
                                            and int(span["end_ns"]) <= int(o["end_ns"]) for o in spans), span)

    @slow
    def test_recomputed_modules(self):
        for case in (("ddp", "checkpoint=1"), ("fsdp2", "accumulate=2", "checkpoint=1")):
            with self.subTest(case=case):
                self.recomputed(self.recording(*case), 3 * micro_steps_of(case))

    def recomputed(self, recording, micro):
        spans = recording.spans_of(0, "module_begin")
        count = collections.Counter(int(s["code"]) for s in spans)
        self.assertEqual(count, {0: micro * (4 * BLOCKS + 3), 1: micro * (4 * BLOCKS + 3), 2: micro * 4 * BLOCKS})
        # A block's backward includes its recomputation and ends before that of the block before it begins.
        blocks = {m["module"] for m in recording.modules if m["type"] in ("Block", "FSDPBlock")}
        self.assertEqual(len(blocks), BLOCKS)
        backward = sorted((int(s["begin_ns"]), int(s["end_ns"])) for s in spans if int(s["code"]) == 1 and s["a"] in blocks)
        for (_, end), (begin, _) in zip(backward, backward[1:]):
            self.assertLessEqual(end, begin)


class Evaluation(Runs):
    """Forwards of an evaluation between two steps, and between two micro-steps of one."""

    CASE = ("zero3", "accumulate=2", "evaluate=1")
    BATCHES, MICRO_STEPS = 4, 6  # of each rank

    @slow
    def test_evaluations_do_not_count_as_micro_steps(self):
        figures = runs.figures(self.attached(*self.CASE)[1])
        trace, evaluated = figures["trace"], figures["eval_trace"]
        self.assertEqual(trace["record"] + trace["complete"], 2 * self.MICRO_STEPS)
        self.assertEqual(evaluated, {"record": 0, "complete": 2 * self.BATCHES})
        steps = [int(e["b"]) for e in self.recording(*self.CASE).of(0, "eval_trace_mode")]
        self.assertEqual(steps, [0, 0, 1, 1], "the step that it follows, or that contains it")

    @slow
    def test_fetch_counters_are_of_a_micro_step_alone(self):
        waits = {}
        for event in self.recording(*self.CASE).of(0, "fetch_counter"):
            if int(event["code"]) == 1:  # forward_fetch_wait: one of each module, whatever was gathered before
                waits[int(event["b"]), int(event["a"])] = int(event["c"])
        self.assertEqual(set(waits), {(step, micro) for step in range(3) for micro in range(2)})
        self.assertEqual(len(set(waits.values())), 1, waits)


class ParamGroups(Runs):
    def test_settings_and_parameters_of_each(self):
        for case in GROUPS:
            with self.subTest(case=case):
                _, made, _ = self.attached(*case)
                few, many = runs.figures(made)["run"]["param_groups"]
                self.assertEqual([(group["lr"], group["weight_decay"], group["betas"]) for group in (few, many)],
                                 [(2e-3, 0.0, [0.9, 0.999]), (1e-3, 0.1, [0.9, 0.999])])
                shapes = {int(row["param"]): row["shape"] for row in runs.read(made).table("params")}
                self.assertEqual(sorted(few["params"] + many["params"]), sorted(shapes))
                for group, dimensions in ((few, 1), (many, 2)):
                    self.assertEqual({len(shapes[param].strip("[]").replace("x", ",").split(",")) for param in group["params"]},
                                     {dimensions})
                if case[0] == "zero2":
                    self.assertEqual([group["padding_elems"] for group in (few, many)],
                                     [-group["elems"] % 4 for group in (few, many)])

    def test_one_group_of_everything_is_not_listed(self):
        self.assertEqual(runs.figures(self.attached("fsdp2")[1])["run"]["param_groups"], [])


class Offloading(Runs):
    @slow
    def test_gradients_go_to_the_host_and_parameters_come_back(self):
        for case in (("zero3", "dtype=bf16", "offload=1"), ("zero2", "dtype=bf16", "offload=1")):
            with self.subTest(case=case):
                recording = self.recording(*case)
                slices = collections.Counter()
                for piece in recording.slices:
                    if int(piece["rank"]) == 0:
                        slices[piece["param"]] += int(piece["elems"])
                moved = collections.defaultdict(collections.Counter)
                for span in recording.spans_of(0, "transfer_begin"):
                    moved[int(span["code"])][span["a"]] += int(span["v0"])
                own = {param: elems for param, elems in slices.items() if elems}
                self.assertEqual(set(moved[1]), set(own))
                for param, elems in own.items():
                    self.assertEqual(moved[1][param], 3 * 2 * elems, "bf16, three steps")
                self.assertGreaterEqual(sum(moved[0].values()), 3 * 2 * sum(own.values()))


class Lanes(Runs):
    def test_copies_of_fsdp2_are_spans_of_named_lanes(self):
        spans = self.recording("fsdp2").spans_of(0, "span_begin")
        lanes = collections.Counter(s["stream"] for s in spans)
        self.assertEqual(sum(lanes.values()), 2 * 3 * (2 * BLOCKS + 1), "each gather has a copy-in and a copy-out")
        self.assertEqual(len(lanes), 2)


class ClosedForms(Runs):
    """FSDP2 with B blocks and S micro-steps, gradients reduced in each, resharded after the forward."""

    def gathers_and_reductions(self, *case):
        recording = self.recording(*case)
        ops = collections.Counter(int(e["code"]) for e in recording.of(0, "collective_submitted")
                                  if e["b"] not in ("", "4294967295"))
        return recording, ops[0], ops[1], len(recording.of(0, "prefetch_issued"))

    def test_resharded(self):
        recording, gathers, reductions, prefetches = self.gathers_and_reductions("fsdp2")
        self.assertEqual(runs.figures(recording.path)["run"]["config"]["fully_shard"],
                         {"groups": BLOCKS + 1, "reshard_after_forward": True, "root_reshard_after_forward": False})
        micro = 3
        self.assertEqual((gathers, reductions, prefetches),
                         (micro * (2 * BLOCKS + 1), micro * (BLOCKS + 1), micro * BLOCKS))

    @slow
    def test_kept(self):
        """Without resharding every group is gathered once in a step: in its forward."""
        recording, gathers, reductions, prefetches = self.gathers_and_reductions("fsdp2", "reshard=0")
        self.assertIs(runs.figures(recording.path)["run"]["config"]["fully_shard"]["reshard_after_forward"], False)
        self.assertEqual((gathers, reductions, prefetches), (3 * (BLOCKS + 1), 3 * (BLOCKS + 1), 0))

    @slow
    def test_shards_that_are_replicated(self):
        """HSDP: four ranks, two shards of each of two replicas. Each reduction is then averaged over the replicas."""
        made, out = folder() / "hsdp.zscope", folder() / "hsdp"
        runs.finish(runs.start(runs.torchrun(TRAIN, "fsdp2", f"{out}.plain", "replicas=2", ranks=4)))
        output = runs.finish(runs.start(runs.attach(made) + runs.torchrun(TRAIN, "fsdp2", out, "replicas=2", ranks=4)))
        self.assertEqual(runs.results(f"{out}.plain", 4), runs.results(out, 4))
        self.assertNotIn("is off", output)
        recording = runs.read(made)
        for rank in range(4):
            ops = collections.Counter(int(e["code"]) for e in recording.of(rank, "collective_submitted") if e["b"] not in ("", "4294967295"))
            self.assertEqual((ops[0], ops[1], ops[3]), (3 * (2 * BLOCKS + 1), 3 * (BLOCKS + 1), 3 * (BLOCKS + 1)))
            self.assertEqual(len(recording.of(rank, "prefetch_issued")), 3 * BLOCKS)

    def test_synchronous_collectives_of_fsdp2_hide_behind_nothing(self):
        """On gloo each call returns when its collective has ended, whatever module's span is around it."""
        for rank in runs.figures(self.attached("fsdp2")[1])["ranks"]:
            self.assertGreater(rank["time_ms"]["exposed_comm"], 0)
            self.assertLess(rank["overlap_pct"], 1)

    def test_bytes_of_gathers_follow_from_the_layout(self):
        recording, *_ = self.gathers_and_reductions("fsdp2")
        whole = {int(p["param"]): 2 * int(p["shard_elems"]) for p in recording.params}
        parts = collections.defaultdict(list)
        for event in recording.of(0, "collective_part"):
            parts[event["a"]].append(int(event["b"]))
        checked = 0
        for event in recording.of(0, "collective_submitted"):
            if event["a"] in parts and int(event["code"]) == 0:
                self.assertEqual(int(event["v1"]), 4 * sum(whole[p] for p in parts[event["a"]]))
                checked += 1
        self.assertEqual(checked, 3 * (2 * BLOCKS + 1))

    def test_slices_are_every_element_once(self):
        for case in (("fsdp2",), ("zero3",), ("zero2", "accumulate=2")):
            recording = self.recording(*case)
            owned = collections.Counter()
            for piece in recording.slices:
                owned[piece["param"]] += int(piece["elems"])
            self.assertEqual(dict(owned), {p["param"]: int(p["elems"]) for p in recording.params}, case)


if __name__ == "__main__":
    unittest.main()
