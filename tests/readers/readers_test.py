"""What other tools read in our exports is what `summary` says and the tables hold. One run of two CPU ranks and one of four
simulated GPUs, each exported once in every format."""
import base64
import contextlib
import csv
import datetime
import functools
import json
import logging
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import unittest
import warnings
from collections import Counter, defaultdict

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = pathlib.Path(os.environ.get("SHARDSCOPE_BUILD", ROOT / "build" / "release"))
SHARDSCOPE = BUILD / "bin" / "shardscope"
RUNS = {"gpt-mini": ("run", "--no-view", "--config", ROOT / "samples/stage3.json", "--ranks", "2", "--steps", "6", "--record"),
        "gpt2": ("simulate", "--model", "gpt2", "--ranks", "4", "--steps", "4", "--detail", "kernels", "--record")}
# HTA computes in floating-point microseconds.
NEAR_MS = 1e-3


def setUpModule():
    global FOLDER
    kept = tempfile.TemporaryDirectory(prefix="shardscope-readers-")
    unittest.addModuleCleanup(kept.cleanup)
    FOLDER = pathlib.Path(kept.name)


def shardscope(*arguments):
    done = subprocess.run([SHARDSCOPE, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{arguments}: {done.stderr}")
    return done.stdout


@functools.cache
def recording(name):
    path = FOLDER / f"{name}.zscope"
    shardscope(*RUNS[name], path)
    return path


@functools.cache
def exported(name, form):
    path = FOLDER / f"{name}.{form}"
    shardscope("export", "--format", form, "-o", path, recording(name))
    return path


@functools.cache
def summary(name):
    return json.loads(shardscope("summary", "--json", recording(name)))


@functools.cache
def table(name, of):
    with open(exported(name, "csv") / f"{of}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def united(intervals):
    """Length of what any of them covers."""
    total, until = 0, None
    for begin, end in sorted(intervals):
        total += max(end - (begin if until is None else max(begin, until)), 0)
        until = end if until is None else max(until, end)
    return total


def of_each_run(check):
    """A test of a run's name, for each of RUNS."""
    @functools.wraps(check)
    def test(self):
        for name in RUNS:
            with self.subTest(run=name):
                check(self, name)
    return test


class HolisticTraceAnalysis(unittest.TestCase):
    def analysis(self, name):
        os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
        warnings.simplefilter("ignore")  # pandas says what it will no longer have
        logging.disable(logging.INFO)
        from hta.trace_analysis import TraceAnalysis
        return TraceAnalysis(trace_dir=str(exported(name, "kineto")), include_last_profiler_step=True)

    @of_each_run
    def test_overlap_breakdown_and_communication_are_those_of_the_summary(self, name):
        analysis, ranks = self.analysis(name), summary(name)["ranks"]
        overlap = analysis.get_comm_comp_overlap(visualize=False).set_index("rank")["comp_comm_overlap_pctg"]
        times = analysis.get_temporal_breakdown(visualize=False).set_index("rank")
        kinds, kernels = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=1000, duration_ratio=1)
        for rank in ranks:
            parts = rank["time_ms"]
            self.assertAlmostEqual(overlap[rank["rank"]], rank["overlap_pct"], delta=0.0051)  # HTA gives two places
            row = times.loc[rank["rank"]]
            self.assertAlmostEqual(row["compute_time(us)"] / 1e3, parts["compute"], delta=NEAR_MS)
            self.assertAlmostEqual(row["non_compute_time(us)"] / 1e3, parts["exposed_comm"] + parts["exposed_copy"],
                                   delta=NEAR_MS)
        # Communication of all ranks, what is hidden and what is not. HTA cuts each stretch to whole microseconds here.
        communication = sum(rank["time_ms"]["exposed_comm"] / (1 - rank["overlap_pct"] / 100) for rank in ranks)
        theirs = kinds[kinds["kernel_type"].str.contains("COMMUNICATION")]["sum"].sum() / 1e3
        collectives = sum(span["kind"] == "collective_begin" for span in table(name, "spans"))
        self.assertAlmostEqual(theirs, communication, delta=1e-3 * collectives)
        # By operation: each collective of the measured steps, with its waiting.
        ours = Counter()
        steps = {(row["rank"], int(row["step"])): row for row in table(name, "step_times")}
        measured = [row for row in steps.values() if int(row["step"]) > 0]
        for span in table(name, "spans"):
            if span["kind"] != "collective_begin":
                continue
            for row in measured:
                if row["rank"] != span["rank"]:
                    continue
                begin, end = max(int(span["begin_ns"]), int(row["begin_ns"])), min(int(span["end_ns"]), int(row["end_ns"]))
                ours[span["label"].split()[0].replace("_", "")] += max(end - begin, 0) / 1e6
        sums = kernels[kernels["kernel_type"] == "COMMUNICATION"].groupby("name")["sum (us)"].sum() / 1e3
        self.assertEqual(len(sums), len(ours))
        for kernel, total in sums.items():
            operation = kernel.removeprefix("ncclKernel_").split("_")[0].lower()
            self.assertAlmostEqual(total, ours[operation], delta=NEAR_MS * 50, msg=kernel)


class TensorBoard(unittest.TestCase):
    """What PyTorch's plugin for TensorBoard computes for its overview, without TensorBoard."""

    @of_each_run
    def test_the_overview_of_each_rank_is_the_partition_of_the_summary(self, name):
        warnings.simplefilter("ignore")  # pandas says what it will no longer have
        logging.disable(logging.CRITICAL)  # of neighbours that overlap by the last bit of a floating-point microsecond
        self.addCleanup(logging.disable, logging.NOTSET)
        from torch_tb_profiler.profiler.data import RunProfileData
        from torch_tb_profiler.profiler.event_parser import ProfileRole
        for rank in summary(name)["ranks"]:
            with tempfile.TemporaryDirectory() as cache:
                path = exported(name, "kineto") / f"rank_{rank['rank']}.json"
                data = RunProfileData.parse(f"rank_{rank['rank']}", "steps", str(path), cache)
                data.process()
            steps, parts = summary(name)["steps_measured"], rank["time_ms"]
            self.assertEqual(len(data.steps_names), steps)
            ms = {role: steps * data.avg_costs.costs[role] / 1e3 for role in ProfileRole}
            # Kernels of collectives are kernels to it: it knows them as communication by operators of nccl's own names.
            self.assertAlmostEqual(ms[ProfileRole.Kernel] + ms[ProfileRole.Communication], parts["compute"] + parts["exposed_comm"],
                                   delta=NEAR_MS)
            self.assertAlmostEqual(ms[ProfileRole.Memcpy] + ms[ProfileRole.Memset], parts["exposed_copy"], delta=NEAR_MS)
            self.assertAlmostEqual(ms[ProfileRole.Total], parts["total"], delta=NEAR_MS)
            self.assertEqual(data.distributed_info["rank"], rank["rank"])


class Sqlite(unittest.TestCase):
    @of_each_run
    def test_parts_of_steps_and_kernels_are_those_of_the_summary(self, name):
        db = sqlite3.connect(f"file:{exported(name, 'sqlite')}?mode=ro", uri=True)
        self.assertEqual(db.execute("PRAGMA integrity_check").fetchone(), ("ok",))
        for rank in summary(name)["ranks"]:
            # Measured: without the first step.
            parts = db.execute("SELECT sum(computeNs), sum(exposedCommNs), sum(exposedCopyNs), sum(idleNs), sum(totalNs) FROM "
                               "SHARDSCOPE_STEP_TIMES WHERE rank = ? AND step > 0", (rank["rank"],)).fetchone()
            keys = ("compute", "exposed_comm", "exposed_copy", "idle", "total")
            for part, key in zip(parts, keys):
                self.assertAlmostEqual(part / 1e6, rank["time_ms"][key], delta=1e-6, msg=key)
            kernels = db.execute(
                "SELECT max(k.start, s.start), min(k.end, s.end), t.value LIKE 'nccl:%' FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds t ON "
                "t.id = k.shortName JOIN SHARDSCOPE_STEP_TIMES s ON s.rank = k.deviceId AND s.step > 0 AND k.start < s.end AND "
                "k.end > s.start WHERE k.deviceId = ?", (rank["rank"],)).fetchall()
            compute = united((begin, end) for begin, end, nccl in kernels if not nccl)
            both = united((begin, end) for begin, end, _ in kernels)
            self.assertAlmostEqual(compute / 1e6, rank["time_ms"]["compute"], delta=1e-6)
            self.assertAlmostEqual((both - compute) / 1e6, rank["time_ms"]["exposed_comm"], delta=1e-6)
        self.assertEqual(db.execute("SELECT count(*) FROM SHARDSCOPE_COLLECTIVES").fetchone()[0],
                         sum(span["kind"] == "collective_begin" for span in table(name, "spans")))


def with_ids(line):
    """OTLP/JSON has ids in hexadecimal digits (opentelemetry-proto, docs/specification.md), where JSON of protobuf has base64."""
    def changed(span):
        ids = {key: base64.b64encode(bytes.fromhex(span[key])).decode() for key in ("traceId", "spanId", "parentSpanId") if key in span}
        return {**span, **ids}
    return json.dumps(json.loads(line, object_hook=lambda each: changed(each) if "spanId" in each else each))


class OpenTelemetry(unittest.TestCase):
    @of_each_run
    def test_spans_are_those_recorded(self, name):
        from google.protobuf import json_format
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
        names, known, spans = Counter(), set(), []
        with open(exported(name, "otlp"), encoding="utf-8") as file:
            for line in file:
                # Unknown fields are refused.
                for resource in json_format.Parse(with_ids(line), ExportTraceServiceRequest()).resource_spans:
                    attributes = {each.key: each.value for each in resource.resource.attributes}
                    rank = attributes["shardscope.rank"].int_value if "shardscope.rank" in attributes else None
                    spans += [(rank, span) for scope in resource.scope_spans for span in scope.spans]
        for rank, span in spans:
            self.assertEqual((len(span.trace_id), len(span.span_id)), (16, 8))
            self.assertGreaterEqual(span.end_time_unix_nano, span.start_time_unix_nano)
            self.assertNotIn((span.trace_id, span.span_id), known)
            known.add((span.trace_id, span.span_id))
            names[span.name.split()[0]] += 1
        for rank, span in spans:
            self.assertTrue(not span.parent_span_id or (span.trace_id, span.parent_span_id) in known, span.name)
        recorded = Counter(span["label"].split()[0] for span in table(name, "spans") if span["kind"] == "collective_begin")
        self.assertEqual({key: names[key] for key in recorded}, dict(recorded))
        lengths = sorted(span.end_time_unix_nano - span.start_time_unix_nano for rank, span in spans
                         if rank is not None and span.name.startswith("step"))
        self.assertEqual(lengths, sorted(int(row["end_ns"]) - int(row["begin_ns"]) for row in table(name, "step_times")))


class Perfetto(unittest.TestCase):
    def unknown(self, message, where=""):
        """Fields that the published schema does not have."""
        from google.protobuf.unknown_fields import UnknownFieldSet
        found = [f"{where}.{field.field_number}" for field in UnknownFieldSet(message)]
        for field, value in message.ListFields():
            if field.message_type:
                values = value if field.is_repeated else [value]
                for each in values:
                    found += self.unknown(each, f"{where}.{field.name}")
        return found

    @of_each_run
    def test_slices_and_counters_are_those_recorded(self, name):
        from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import CounterDescriptor, Trace, TrackEvent
        trace = Trace.FromString(exported(name, "perfetto").read_bytes())
        self.assertEqual(self.unknown(trace), [])
        tracks, open_slices, lengths = {}, defaultdict(list), Counter()
        counters, last = {}, {}
        names, instants, begun, ended, passes = {}, Counter(), Counter(), Counter(), Counter()
        for packet in trace.packet:
            for each in packet.interned_data.event_names:
                names[each.iid] = each.name
            if packet.HasField("track_descriptor"):
                tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            if not packet.HasField("track_event"):
                continue
            event = packet.track_event
            self.assertIn(event.track_uuid, tracks)
            begun.update(event.flow_ids)
            ended.update(event.terminating_flow_ids)
            arguments = {each.name: each for each in event.debug_annotations}
            if "pass" in arguments:
                self.assertIn("module_begin", event.categories)
                passes[arguments["pass"].string_value] += 1
            if event.type == TrackEvent.TYPE_INSTANT and event.categories:
                instants[event.categories[0]] += 1
            if event.type == TrackEvent.TYPE_SLICE_BEGIN:
                open_slices[event.track_uuid].append((packet.timestamp, names.get(event.name_iid, event.name)))
            elif event.type == TrackEvent.TYPE_SLICE_END:
                begin, label = open_slices[event.track_uuid].pop()
                lengths[label.split()[0]] += packet.timestamp - begin
            elif event.type == TrackEvent.TYPE_COUNTER:
                last[event.track_uuid] = event.counter_value
        self.assertFalse(any(open_slices.values()))
        ours = Counter()
        for span in table(name, "spans"):
            if span["kind"] == "collective_begin":
                ours[span["label"].split()[0]] += int(span["end_ns"]) - int(span["begin_ns"])
        self.assertEqual({label: lengths[label] for label in ours}, dict(ours))
        modules = [span for span in table(name, "spans") if span["kind"] == "module_begin"]
        self.assertEqual(sum(passes.values()), len(modules))
        self.assertEqual(set(passes), {"forward", "backward"})
        # Each arrow has both ends, and marks are those of the table.
        self.assertEqual(set(begun.values()) | set(ended.values()), {1})
        self.assertEqual(set(begun), set(ended))
        events = Counter(row["kind"] for row in table(name, "events"))
        for kind in ("prefetch_issued", "prefetch_outcome", "collective_submitted", "bucket_flush", "trace_mode"):
            self.assertEqual(instants[kind], events[kind], kind)
        self.assertGreater(instants["prefetch_issued"], 0)
        # What each category of memory holds at the end.
        for row in table(name, "memory"):
            key = (int(row["rank"]), row["category"], row["pool"])
            counters[key] = counters.get(key, 0) + int(row["delta_bytes"])
        held = sorted(value for value in counters.values())
        self.assertEqual(sorted(value for track, value in last.items() if tracks[track].counter.unit == CounterDescriptor.UNIT_SIZE_BYTES), held)


class Arrow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        package = BUILD / "readers-package"
        # As tests/attach makes it; pip makes it anew where a source is newer.
        done = subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--upgrade", "--no-deps", "--no-build-isolation",
                               "--no-index", "--disable-pip-version-check", "--target", package,
                               "-C", f"cmake.define.SHARDSCOPE_LIB={BUILD / 'lib'}", "-C", "cmake.define.SHARDSCOPE_PROGRAMS=OFF",
                               ROOT / "python"],
                              env={**os.environ, "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"},
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(f"the Python package does not build:\n{(done.stdout + done.stderr)[-3000:]}")
        sys.path.insert(0, str(package))

    @of_each_run
    def test_parquet_and_duckdb_hold_the_rows_of_the_tables(self, name):
        import duckdb
        import pyarrow
        import pyarrow.parquet
        import shardscope as package
        run = package.open(recording(name))
        rows = [row for row in table(name, "spans") if row["end_ns"]]
        by_kind = Counter()
        for row in rows:
            by_kind[row["kind"]] += int(row["duration_ns"])
        path = FOLDER / f"{name}.parquet"
        pyarrow.parquet.write_table(pyarrow.table(run.spans()), path)
        read = pyarrow.parquet.read_table(path)
        self.assertEqual(read.num_rows, len(table(name, "spans")))
        query = "SELECT kind, sum(duration_ns)::BIGINT FROM {} WHERE end_ns IS NOT NULL GROUP BY kind"
        spans = pyarrow.table(run.spans())  # DuckDB finds it by its name
        self.assertEqual(spans.num_rows, read.num_rows)
        for source in ("spans", f"'{path}'"):
            self.assertEqual(dict(duckdb.sql(query.format(source)).fetchall()), dict(by_kind), source)

    def test_parquet_by_day_and_rank_holds_every_row_where_its_folder_says(self):
        import duckdb
        import shardscope as package
        from shardscope import parquet
        for name in RUNS:
            with self.subTest(run=name):
                run = package.open(recording(name))
                folder = FOLDER / f"{name}-parquet"
                written = run.to_parquet(folder)
                with self.assertRaisesRegex(FileExistsError, "new or empty"):
                    run.to_parquet(folder)
                self.assertTrue((folder / "_SUCCESS").exists())
                begin = run.info["begin_unix_ns"]
                for form in ("spans", "events"):
                    ours = Counter(row["rank"] for row in table(name, form))
                    self.assertEqual(written[form], sum(ours.values()))
                    found = duckdb.sql(f"SELECT rank, count(*) FROM read_parquet('{folder}/{form}/**/*.parquet', hive_partitioning=true) "
                                       "GROUP BY rank").fetchall()
                    self.assertEqual({str(rank): count for rank, count in found}, dict(ours))
                sums = Counter()
                for row in table(name, "spans"):
                    if row["end_ns"] and row["kind"] == "collective_begin":
                        sums[int(row["rank"])] += int(row["duration_ns"])
                self.assertEqual(dict(duckdb.sql(
                    f"SELECT rank, sum(duration_ns)::BIGINT FROM read_parquet('{folder}/spans/*/*/*.parquet', hive_partitioning=true) "
                    "WHERE kind = 'collective_begin' AND end_ns IS NOT NULL GROUP BY rank").fetchall()), dict(sums))
                days = {path.name.removeprefix("day=") for path in (folder / "spans").iterdir()}
                if begin is None:  # simulated: no calendar
                    self.assertEqual(days, {"0"})
                else:
                    at = [(begin + int(row["begin_ns"])) // 10**9 for row in table(name, "spans")]
                    self.assertEqual(days, {str(datetime.datetime.fromtimestamp(s, datetime.timezone.utc).date()) for s in at})
        # The end of a day parts the rows, and none is in two or in no day.
        day = parquet.DAY_NS
        self.assertEqual(list(parquet.days_of(day - 5, 0, 10)), [("1970-01-01", 5 - day, 5), ("1970-01-02", 5, 5 + day)])
        self.assertEqual([name for name, _, _ in parquet.days_of(None, 0, 2 * day)], ["0", "1", "2"])

    def test_parquet_of_a_recording_with_limits_holds_what_it_knows_of_the_whole_run(self):
        import duckdb
        import shardscope as package
        config = FOLDER / "kept.json"
        # The first steps overflow: there is a moment in any case.
        config.write_text(json.dumps({"train_micro_batch_size_per_gpu": 1, "fp16": {"enabled": True, "initial_scale_power": 32},
                                      "zero_optimization": {"stage": 3}, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}}))
        path, folder = FOLDER / "kept.zscope", FOLDER / "kept-parquet"
        shardscope("run", "--no-view", "--config", config, "--model", "mlp", "--ranks", "2", "--steps", "6000", "--record", path,
                   "--max-age", "1s", "--moment-around", "200ms", "--moments", "3")
        whole = json.loads(shardscope("summary", "--json", path))
        self.assertGreater(whole["kept"]["not_kept_events"], 0)
        self.assertTrue(whole["distributions_whole"])
        run = package.open(path)
        written = run.to_parquet(folder)

        def query(columns, table, rest=""):
            return duckdb.sql(f"SELECT {columns} FROM read_parquet('{folder}/{table}/**/*.parquet') {rest}").fetchall()

        # Steps: by day, all of them, the deleted ones too.
        self.assertEqual({part.name.partition("=")[0] for part in (folder / "steps").iterdir()}, {"day"})
        (steps, median), = query("count(*), median((end_ns - begin_ns - paused_ns) / 1e6) FILTER (step > 0)", "steps")
        self.assertEqual(steps, whole["steps"])
        self.assertAlmostEqual(median, whole["step_ms"]["median"], delta=1e-9)
        # Moments.
        names = ("at_ns", "begin_ns", "end_ns", "kind", "step", "rank", "text")
        self.assertGreater(written["moments"], 0)
        self.assertEqual([dict(zip(names, row)) for row in query(", ".join(names), "moments", "ORDER BY at_ns")], whole["kept"]["moments"])
        # Peaks of memory: each category, and their sum.
        peaks = {}
        for rank, pool, at_ns, category, held in query("rank, pool, at_ns, category, bytes", "memory_peaks"):
            of = peaks.setdefault(rank, {}).setdefault(pool, {"at_ns": at_ns, "categories": {}})
            self.assertEqual(of["at_ns"], at_ns)
            if category == "total":
                of["peak_bytes"] = held
            else:
                of["categories"][category] = held
        self.assertEqual(peaks, {rank["rank"]: rank["memory"] for rank in whole["ranks"]})
        # Distributions, in the order of the summary.
        names = ("what", "module", "count", "p50_ms", "p95_ms", "p99_ms", "min_ms", "max_ms")
        self.assertEqual([dict(zip(names, row)) for row in query(", ".join(names), "distributions")], whole["distributions"])
        # Spans by kind: as many as the distributions have, of the whole run.
        counts = Counter()
        for row in whole["distributions"]:
            if row["module"] is None:
                counts[row["what"].split()[0]] += row["count"]
        self.assertEqual(dict(query("replace(kind, '_begin', ''), sum(count)::BIGINT", "span_summary", "GROUP BY kind")), dict(counts))
        longest = max(row["max_ms"] for row in whole["distributions"] if row["what"] == "step")
        self.assertAlmostEqual(query("max(max_ns) / 1e6", "span_summary", "WHERE kind = 'step_begin'")[0][0], longest, delta=1e-9)
        # Own times are in no summary: each row as the file has it.
        with contextlib.closing(sqlite3.connect(path)) as file:
            rows = file.execute("SELECT rank, first_step, last_step, steps, own_ns, waited_ns FROM own_times "
                                "ORDER BY rank, first_step").fetchall()
        self.assertEqual({row[0] for row in rows}, {0, 1})
        self.assertEqual(query("rank, first_step, last_step, steps, own_ns, waited_ns", "own_times", "ORDER BY rank, first_step"), rows)
        # What no recorder summed up has no folder.
        plain = package.open(recording("gpt-mini"))
        self.assertEqual([list(getattr(plain, name).rows()) for name in ("own_times", "distributions", "moments")], [[], [], []])
        self.assertEqual(sum(row["count"] for row in plain.span_summary.rows() if row["kind"] == "step_begin"), 12)

    def test_parquet_of_a_day_s_end_parts_the_rows(self):
        import duckdb
        import shardscope as package
        from shardscope import parquet
        spans = package.open(recording("gpt-mini")).spans(kind="step")
        rows = list(spans.rows())
        middle = sorted(row["begin_ns"] for row in rows)[len(rows) // 2]
        # As if midnight had been in the middle of the run.
        real, parquet.begin_of = parquet.begin_of, lambda _: 3 * parquet.DAY_NS - middle
        try:
            folder = FOLDER / "midnight"
            self.assertEqual(spans.to_parquet(folder), len(rows))
            steps = package.open(recording("gpt-mini")).steps
            self.assertEqual(steps.to_parquet(FOLDER / "midnight-steps"), len(list(steps.rows())))
        finally:
            parquet.begin_of = real
        found = dict(duckdb.sql(f"SELECT day::VARCHAR, count(*) FROM read_parquet('{folder}/**/*.parquet', hive_partitioning=true) GROUP BY day").fetchall())
        before = sum(row["begin_ns"] < middle for row in rows)
        self.assertGreater(before, 0)
        self.assertEqual(found, {"1970-01-03": before, "1970-01-04": len(rows) - before})
        found = dict(duckdb.sql(f"SELECT day::VARCHAR, list(step ORDER BY step) FROM read_parquet('{FOLDER}/midnight-steps/*/*.parquet', "
                                "hive_partitioning=true) GROUP BY day").fetchall())
        begins = [(row["step"], row["begin_ns"]) for row in steps.rows()]
        self.assertEqual(found, {"1970-01-03": [step for step, at in begins if at < middle],
                                 "1970-01-04": [step for step, at in begins if at >= middle]})


if __name__ == "__main__":
    unittest.main()
