#!/usr/bin/env python3
"""`export --format otlp` beside the published schema: a decoder that knows the messages of opentelemetry-proto and
nothing of what writes them.

Usage: otlp_test.py BIN_FOLDER SOURCE_ROOT [unittest arguments]
"""
import collections
import csv
import json
import os
import pathlib
import pty
import re
import tempfile
import time

from command_line import ROOT, CommandTest, main, said, shardscope, train

# opentelemetry-proto 1.x: trace/v1/trace.proto, resource/v1/resource.proto, common/v1/common.proto, with the names of
# protobuf's JSON mapping. [..]: repeated.
SCHEMA = {
    "TracesData": {"resourceSpans": ["ResourceSpans"]},
    "ResourceSpans": {"resource": "Resource", "scopeSpans": ["ScopeSpans"], "schemaUrl": "string"},
    "Resource": {"attributes": ["KeyValue"], "droppedAttributesCount": "uint32"},
    "ScopeSpans": {"scope": "InstrumentationScope", "spans": ["Span"], "schemaUrl": "string"},
    "InstrumentationScope": {"name": "string", "version": "string", "attributes": ["KeyValue"],
                             "droppedAttributesCount": "uint32"},
    "Span": {"traceId": "id16", "spanId": "id8", "traceState": "string", "parentSpanId": "id8", "flags": "uint32",
             "name": "string", "kind": "SpanKind", "startTimeUnixNano": "fixed64", "endTimeUnixNano": "fixed64",
             "attributes": ["KeyValue"], "droppedAttributesCount": "uint32", "events": ["Event"],
             "droppedEventsCount": "uint32", "links": ["Link"], "droppedLinksCount": "uint32", "status": "Status"},
    "Event": {"timeUnixNano": "fixed64", "name": "string", "attributes": ["KeyValue"], "droppedAttributesCount": "uint32"},
    "Link": {"traceId": "id16", "spanId": "id8", "traceState": "string", "attributes": ["KeyValue"],
             "droppedAttributesCount": "uint32", "flags": "uint32"},
    "Status": {"message": "string", "code": "StatusCode"},
    "KeyValue": {"key": "string", "value": "AnyValue"},
    "AnyValue": {"stringValue": "string", "boolValue": "bool", "intValue": "int64", "doubleValue": "double"},
}


def scalar(kind, value, where):
    """A value of the mapping; the specification: ids are hexadecimal, 64-bit integers are text, enums are numbers."""
    if kind in ("id16", "id8"):
        digits = 32 if kind == "id16" else 16
        good = isinstance(value, str) and re.fullmatch("[0-9a-fA-F]{%d}" % digits, value) and int(value, 16) != 0
    elif kind in ("fixed64", "int64"):
        low, high = (0, 2**64) if kind == "fixed64" else (-2**63, 2**63)
        good = isinstance(value, str) and re.fullmatch("-?[0-9]+", value) and low <= int(value) < high
    elif kind in ("uint32", "SpanKind", "StatusCode"):
        high = {"uint32": 2**32 - 1, "SpanKind": 5, "StatusCode": 2}[kind]
        good = type(value) is int and 0 <= value <= high
    else:
        good = isinstance(value, {"string": str, "bool": bool, "double": (int, float)}[kind])
    if not good:
        raise ValueError(f"{where}: {value!r} is no {kind}")
    return int(value) if kind in ("fixed64", "int64") else value


def decode(kind, value, where=""):
    if kind not in SCHEMA:
        return scalar(kind, value, where)
    if not isinstance(value, dict):
        raise ValueError(f"{where}: no {kind}")
    unknown = set(value) - set(SCHEMA[kind])
    if unknown:
        raise ValueError(f"{where}: {kind} has no {unknown}")
    if kind == "AnyValue" and len(value) != 1:
        raise ValueError(f"{where}: not one value")
    out = {}
    for key, inner in value.items():
        of = SCHEMA[kind][key]
        if isinstance(of, list):
            out[key] = [decode(of[0], one, f"{where}.{key}") for one in inner]
        else:
            out[key] = decode(of, inner, f"{where}.{key}")
    return out


def attributes(message):
    out = {one["key"]: next(iter(one["value"].values())) for one in message.get("attributes", [])}
    assert len(out) == len(message.get("attributes", [])), "keys are unique"
    return out


def read_spans(path):
    """(resource's attributes, span) of all lines."""
    spans = []
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        assert len(line) < 20 << 20
        for resource in decode("TracesData", json.loads(line))["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                assert scope["scope"]["name"] == "shardscope"
                spans += [(attributes(resource["resource"]), span) for span in scope["spans"]]
    return spans


class Otlp(CommandTest):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def exported(self, recording, *more):
        target = self.folder / "spans.jsonl"
        said("export", "--format", "otlp", "-o", target, "--overwrite", *more, recording)
        return read_spans(target)

    def test_a_trained_run_has_its_spans_and_the_time_of_day(self):
        before = time.time_ns()
        recording, summary = train(self.folder, "run", 3, 2, steps=4)
        after = time.time_ns()
        spans = self.exported(recording)
        kinds = collections.Counter((resource.get("shardscope.rank"), span["name"]) for resource, span in spans)
        self.assertEqual(kinds[None, "step of all ranks"], 4)
        for rank in (0, 1):
            self.assertEqual(kinds[rank, "step"], 4)
            self.assertEqual(kinds[rank, "forward"], kinds[rank, "backward"])
        # As many collectives as another export has.
        said("export", "--format", "csv", "-o", self.folder / "csv", recording)
        with open(self.folder / "csv/spans.csv", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["kind"] == "collective_begin"]
        self.assertGreater(len(rows), 20)
        self.assertEqual(sum(1 for _, span in spans if "shardscope.sequence" in attributes(span)), len(rows))
        for resource, span in spans:
            self.assertLess(before - 10**9, span["startTimeUnixNano"], "the wall clock is that of the run")
            self.assertLess(span["endTimeUnixNano"], after + 10**9)
            self.assertEqual(resource["shardscope.world"], 2)
        losses = [attributes(span).get("shardscope.loss") for _, span in spans if span["name"] == "step of all ranks"]
        self.assertEqual(losses, summary["loss"])
        ids = {(span["traceId"], span["spanId"]) for _, span in spans}
        self.assertEqual(len(ids), len(spans))
        self.assertEqual([span for _, span in spans if "parentSpanId" in span and
                          (span["traceId"], span["parentSpanId"]) not in ids], [])
        chosen = self.exported(recording, "--ranks", 1, "--steps", "1-2")
        self.assertEqual({resource.get("shardscope.rank") for resource, _ in chosen}, {None, 1})
        self.assertEqual({attributes(span)["shardscope.step"] for _, span in chosen if span["name"] == "step"}, {1, 2})

    def test_parts_by_time_and_level(self):
        """Steps that overlap a range, whole: of each rank its own. Kineto's traces are cut alike."""
        recording, _ = train(self.folder, "run", 3, 2, steps=5)
        said("export", "--format", "csv", "-o", self.folder / "csv", recording)
        with open(self.folder / "csv/spans.csv", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["kind"] == "step_begin"]
        windows = {(int(row["rank"]), int(row["a"])): (int(row["begin_ns"]), int(row["end_ns"])) for row in rows}
        begin, end = windows[0, 2]
        part = ("--from", f"{(begin + end) // 2}ns", "--to", f"{end - 1}ns")
        expected = {key for key, (first, last) in windows.items() if first < end - 1 and last > (begin + end) // 2}
        self.assertIn((0, 2), expected)
        self.assertLess(len(expected), len(windows))
        whole, spans = self.exported(recording), self.exported(recording, *part)
        steps = lambda of: {(resource["shardscope.rank"], attributes(span)["shardscope.step"])  # noqa: E731
                            for resource, span in of if span["name"] == "step"}
        self.assertEqual(steps(spans), expected)
        # All that the whole export has below these steps.
        traces = {span["traceId"] for resource, span in whole if span["name"] == "step"
                  and (resource["shardscope.rank"], attributes(span)["shardscope.step"]) == (0, 2)}
        below = lambda of: sum(1 for resource, span in of  # noqa: E731
                               if resource.get("shardscope.rank") == 0 and span["traceId"] in traces)
        self.assertEqual(below(spans), below(whole))
        said("export", "--format", "kineto", "-o", self.folder / "kineto", *part, recording)
        for rank in (0, 1):
            events = json.loads((self.folder / f"kineto/rank_{rank}.json").read_text())["traceEvents"]
            named = {int(event["name"].split("#")[1]) for event in events if event.get("name", "").startswith("ProfilerStep#")}
            self.assertEqual(named, {step for of, step in expected if of == rank})
        names = lambda level: {span["name"] for _, span in self.exported(recording, "--detail", level)}  # noqa: E731
        self.assertEqual(names("steps"), {"step of all ranks", "step"})
        self.assertTrue({"micro-step", "forward"} <= names("phases"))
        self.assertNotIn("all_gather", names("phases"))
        self.assertIn("all_gather", names("modules"))
        self.refused(("export", "--format", "otlp", "-o", self.folder / "none", "--from", "1000s", recording), "the recording ends at")

    def test_how_far_it_is_stands_on_a_terminal_only(self):
        recording, _ = train(self.folder, "run", 3, 2, steps=3)
        for form in ("otlp", "kineto", "chrome", "perfetto", "csv", "sqlite"):
            target = self.folder / f"seen-{form}"
            terminal, program = pty.openpty()
            try:
                result = shardscope("export", "--format", form, "-o", target, recording, stderr=program)
                os.set_blocking(terminal, False)
                shown = os.read(terminal, 1 << 16).decode()
            finally:
                os.close(terminal)
                os.close(program)
            self.assertEqual(result.returncode, 0, form)
            self.assertRegex(shown, rf"writing {re.escape(str(target))}  \d+ %", form)
            self.assertTrue(shown.endswith("\r\x1b[K"), f"{form}: the line is gone when it is done")
            piped = shardscope("export", "--format", form, "-o", target, "--overwrite", recording)
            self.assertEqual((piped.returncode, piped.stderr), (0, ""), form)

    def test_a_simulated_run_was_at_no_time(self):
        recording = self.folder / "run.zscope"
        said("simulate", "--model", "mlp", "--ranks", 2, "--config", ROOT / "samples/stage2.json", "--steps", 3, "-o", recording)
        target = self.folder / "spans.jsonl"
        result = shardscope("export", "--format", "otlp", "-o", target, recording)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("when the run was is not recorded", result.stderr)
        for resource, span in read_spans(target):
            self.assertTrue(resource["shardscope.simulated"])
            self.assertIn("not recorded", resource["shardscope.wall_clock"])
            self.assertLess(span["endTimeUnixNano"], 10**12)
        for more, words in ((["--ranks", "7"], "--ranks 7"), (["--steps", "x"], "--steps x"), (["--steps", "50-60"], "steps 50-60")):
            self.refused(["export", "--format", "otlp", "-o", self.folder / "no", *more, recording], words)
            self.assertFalse((self.folder / "no").exists())

    def test_the_decoder_refuses_what_is_not_the_schema(self):
        span = {"traceId": "ab" * 16, "spanId": "cd" * 8, "name": "x", "kind": 1, "startTimeUnixNano": "1", "endTimeUnixNano": "2"}
        decode("Span", span)
        for key, value in (("traceId", "q" * 32), ("traceId", "0" * 32), ("spanId", "ab"), ("startTimeUnixNano", 1), ("kind", 6),
                           ("kind", "SPAN_KIND_INTERNAL"), ("start_time", "1"), ("attributes", [{"key": "a", "value": {"intValue": 3}}])):
            with self.assertRaises(ValueError, msg=key):
                decode("Span", {**span, key: value})


main()
