"""Reads recordings in a program or a notebook: shardscope.open(path).

    run = shardscope.open("run.zscope")
    run.summary()["step_ms"]["median"]
    run.spans(kind="fetch_wait", rank=0, step=[3, 4]).to_pandas()
    pyarrow.table(run.spans())         # and polars.DataFrame(...), duckdb: by the Arrow PyCapsule interface

Needs nothing but this package: numpy, pandas and pyarrow are imported only by the methods that return their types.
Tables are read lazily in batches of rows, so a large table is never in memory as a whole unless you keep it.
"""
import json
import os
import warnings

from shardscope import _command, _reader
from shardscope._command import CommandError  # for callers to catch

BATCH_ROWS = 1 << 16
STRUCT = {"l": ("q", "int64"), "g": ("d", "float64"), "I": ("I", "uint32"), "i": ("i", "int32")}


class RecordingError(ValueError):
    """The file is not a recording or cannot be read; the message has the reason and what to do."""


def as_list(value, what):
    """A filter's value or values as a list."""
    if value is None:
        return []
    values = [value] if isinstance(value, (str, int)) or not hasattr(value, "__iter__") else list(value)
    if not values:
        raise ValueError(f"{what} []: an empty list would want no row at all; leave it out to have all")
    if what == "kind":
        return [str(each) for each in values]
    for each in values:
        if int(each) != each or not 0 <= each < 0xFFFFFFFF:
            raise ValueError(f"{what} {each!r}: not a number from 0")
    return [int(each) for each in values]


class Table:
    """Rows of a table of a recording. Each use reads them from the file; filter() restricts them."""

    def __init__(self, recording, name, **chosen):
        self._recording, self.name, self._chosen = recording, name, chosen
        self._open()  # validates the filter

    def filter(self, kind=None, rank=None, step=None, begin_ns=None, end_ns=None):
        """The rows of these kinds, ranks and steps (each one value or several) that begin in [begin_ns, end_ns), in
        nanoseconds of the run's time. Filters that are not given stay as they were."""
        given = {"kind": kind, "rank": rank, "step": step, "begin_ns": begin_ns, "end_ns": end_ns}
        return Table(self._recording, self.name, **{**self._chosen, **{k: v for k, v in given.items() if v is not None}})

    def _open(self):
        chosen = self._chosen
        return self._recording.stream(
            table=self.name, ranks=as_list(chosen.get("rank"), "rank"), kinds=as_list(chosen.get("kind"), "kind"),
            steps=as_list(chosen.get("step"), "step"), begin_ns=chosen.get("begin_ns"), end_ns=chosen.get("end_ns"),
            batch_rows=BATCH_ROWS)

    def __arrow_c_stream__(self, requested_schema=None):
        """The Arrow PyCapsule interface: a stream of record batches. `requested_schema` is ignored."""
        return self._open().capsule()

    def __arrow_c_schema__(self):
        return self._open().schema_capsule()

    @property
    def columns(self):
        return [name for name, _, _ in self._open().schema()]

    def batches(self):
        """Iterates over batches of columns, {name: Values}, of up to BATCH_ROWS rows."""
        stream = self._open()
        schema = stream.schema()
        while (batch := stream.next()) is not None:
            rows, columns = batch
            yield {name: Values(rows, form, *column) for (name, form, _), column in zip(schema, columns)}

    def rows(self):
        """Iterates over rows as dictionaries; missing values are None."""
        for batch in self.batches():
            lists = [values.to_list() for values in batch.values()]
            for row in zip(*lists):
                yield dict(zip(batch, row))

    def to_numpy(self):
        """{name: array}. A column with missing values is a masked array; texts are arrays of objects."""
        import numpy
        parts = [{name: values.to_numpy() for name, values in batch.items()} for batch in self.batches()]
        if not parts:
            return {name: numpy.empty(0, dtype=STRUCT[form][1] if form in STRUCT and not words else bool if form == "b" else object)
                    for name, form, words in self._open().schema()}
        return {name: (numpy.ma if any(numpy.ma.isMA(part[name]) for part in parts) else numpy).concatenate([part[name] for part in parts])
                for name in parts[0]}

    def to_pandas(self):
        """A DataFrame. Integers with missing values are pandas' nullable types, so that no number is rounded; streams
        and kinds are categories."""
        import pandas
        parts = [{name: values.to_pandas() for name, values in batch.items()} for batch in self.batches()]
        if not parts:
            return pandas.DataFrame(self.to_numpy())
        frames = [pandas.DataFrame(part, copy=False) for part in parts]
        return frames[0] if len(frames) == 1 else pandas.concat(frames, ignore_index=True)

    def to_arrow(self):
        """The rows as a pyarrow.Table."""
        import pyarrow
        return pyarrow.table(self)

    def to_parquet(self, folder):
        """Writes the rows below a new folder as Parquet, with pyarrow, batch by batch: spans, events and memory by day
        and rank (Hive's names, day=2026-11-26/rank=3), steps by day. Returns the number of rows."""
        from shardscope import parquet
        return parquet.write(self, folder)

    def __repr__(self):
        chosen = ", ".join(f"{name}={value!r}" for name, value in self._chosen.items())
        return f"<shardscope table {self.name}{' of ' + chosen if chosen else ''}: {', '.join(self.columns)}>"


class Values:
    """A column of a batch. `data` is the batch's memory, by the buffer protocol; only methods copy values."""

    def __init__(self, rows, form, data, offsets, validity, words):
        self.rows, self.form, self.data, self.offsets, self.validity = rows, form, data, offsets, validity
        self.words = None if words is None else texts(*words)

    def bits(self, of):
        """A bitmap as a list of booleans, one per row."""
        held = memoryview(of)
        return [bool(held[row >> 3] >> (row & 7) & 1) for row in range(self.rows)]

    def to_list(self):
        if self.form == "u":
            values = texts(self.data, self.offsets)
        elif self.form == "b":
            values = self.bits(self.data)
        else:
            values = memoryview(self.data).cast(STRUCT[self.form][0]).tolist()
            if self.words is not None:
                values = [self.words[index] for index in values]
        if self.validity is not None:
            values = [value if there else None for value, there in zip(values, self.bits(self.validity))]
        return values

    def mask(self):
        """True where the value is missing; None if no value is."""
        import numpy
        return None if self.validity is None else ~self.unpacked(self.validity).astype(numpy.bool_)

    def unpacked(self, of):
        import numpy
        return numpy.unpackbits(numpy.frombuffer(of, numpy.uint8), count=self.rows, bitorder="little")

    def plain(self):
        """Numbers and booleans as an array; missing values have arbitrary contents."""
        import numpy
        if self.form == "b":
            return self.unpacked(self.data).astype(numpy.bool_)
        return numpy.frombuffer(self.data, STRUCT[self.form][1])

    def to_numpy(self):
        import numpy
        if self.form == "u" or self.words is not None:
            return numpy.array(self.to_list(), dtype=object)
        mask = self.mask()
        return self.plain() if mask is None else numpy.ma.masked_array(self.plain(), mask)

    def to_pandas(self):
        import numpy
        import pandas
        if self.form == "u":
            return self.to_list()
        mask = self.mask()
        if self.words is not None:
            codes = self.plain() if mask is None else numpy.where(mask, -1, self.plain())
            return pandas.Categorical.from_codes(codes, categories=self.words)
        if mask is None:
            return self.plain()
        if self.form == "g":
            return numpy.where(mask, numpy.nan, self.plain())
        array = pandas.arrays.BooleanArray if self.form == "b" else pandas.arrays.IntegerArray
        return array(self.plain().copy(), mask)


def texts(characters, offsets):
    ends = memoryview(offsets).cast("i").tolist()
    text = bytes(characters)
    return [text[begin:end].decode() for begin, end in zip(ends, ends[1:])]


def path_of(run):
    """Absolute path of an opened recording, or of a path."""
    return run._path if isinstance(run, Run) else os.path.abspath(run)


class Run:
    """An opened recording. It need not be closed; also a context manager."""

    def __init__(self, path, check=True):
        self._path = os.path.abspath(path)  # absolute: the command runs later, when the current folder may differ
        self._recording = _reader.Recording(str(path), check)
        if not self._recording.is_open:
            raise RecordingError(self._recording.failed)
        for problem in self.problems:
            warnings.warn(f"{path}: {problem}", stacklevel=3)

    # ---- what the figures are -------------------------------------------------------------------------

    def summary(self):
        """The figures of `shardscope summary --json`, computed by the same code, as a dictionary."""
        return json.loads(self._recording.json("summary"))

    def findings(self, gains=False, plays=40):
        """Findings with evidence and advice, as `shardscope findings --json --plays 0`. With `gains` the command first
        simulates the changes that they advise (at most `plays`; none is started after 30 s), and each has its predicted
        gain: gain_ms per step, gain_bytes of the device's peak, None if it is unknown, which gain_basis explains."""
        if gains:
            return _command.ask("findings", self._path, "--plays", int(plays))
        return json.loads(self._recording.json("findings"))

    def why(self):
        """Why the run hangs at its end, as `shardscope why --json`: which rank waits in which collective for which."""
        return _command.ask("why", self._path)

    def compare(self, *others, by=None):
        """Compares this run (A) with another (B), as `shardscope compare --json`: medians, spread, changed keys,
        verdict. `by`: rank, module, kernel, collective, parameter or memory adds a table, whose rows pandas.DataFrame
        accepts: run.compare(b, by="rank")["by"]["rows"]. With several others, compares each with this run. Others are
        paths or opened recordings."""
        return _command.ask("compare", self._path, *map(path_of, others), *(("--by", by) if by else ()))

    def check(self, baseline, fail_over=None):
        """Compares this run with a baseline, as `shardscope check --json`: a list of {metric, outcome, ...}, outcome
        "within", "beyond", "undecided" if the limit is inside the interval, "unknown" if there is no change to judge.
        `fail_over`: limits, {"step_ms": "5%"}."""
        limits = ",".join(f"{metric}={limit}" for metric, limit in (fail_over or {}).items())
        return _command.ask("check", self._path, "--baseline", path_of(baseline), *(("--fail-over", limits) if limits else ()),
                            codes=(0, 1, 3))  # within, beyond, too little to tell: each is an answer

    @property
    def info(self):
        """Path, version, number of events, completeness, begin of the run (begin_unix_ns; None: not recorded)."""
        return json.loads(self._recording.json("info"))

    @property
    def problems(self):
        """What is missing or damaged, as texts; if opened with check=False, only problems found so far."""
        return self.info["problems"]

    # ---- tables ---------------------------------------------------------------------------------------

    def spans(self, kind=None, rank=None, step=None, begin_ns=None, end_ns=None):
        """Everything with a begin and an end, ordered by rank, stream and begin. With a single kind the last columns
        are its fields (docs/events.md); otherwise they are the raw slots code, a, b, c, v0, v1."""
        return Table(self._recording, "spans").filter(kind, rank, step, begin_ns, end_ns)

    def events(self, kind=None, rank=None, step=None, begin_ns=None, end_ns=None):
        """Instants: status changes, decisions, buckets, losses, ... Columns as in spans()."""
        return Table(self._recording, "events").filter(kind, rank, step, begin_ns, end_ns)

    @property
    def memory(self):
        """Every allocation and free, with its pool and category."""
        return Table(self._recording, "memory")

    def to_parquet(self, folder):
        """Writes every table below a new folder as Parquet, for DuckDB, Spark and others; see Table.to_parquet().
        Returns {table: rows}."""
        from shardscope import parquet
        return parquet.write_run(self, folder)

    def __getattr__(self, name):
        if name in TABLES:
            return Table(self._recording, name)
        raise AttributeError(f"{name}: a recording has the tables spans, events, memory, {', '.join(TABLES)}")

    def __dir__(self):
        return [*super().__dir__(), *TABLES]

    # ---- the end --------------------------------------------------------------------------------------

    def close(self):
        """Tables that are being read remain valid."""
        self._recording.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __repr__(self):
        info = self.info
        return f"<shardscope recording {info['path']}: {info['events']} events{'' if info['complete'] else ', incomplete'}>"


TABLES = ("steps", "ranks", "parameters", "modules", "slices", "messages", "gaps", "counters", "span_summary", "memory_peaks", "own_times", "distributions",
          "rank_distributions", "moments")
