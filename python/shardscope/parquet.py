"""Exports tables of a recording as Parquet files in folders by day and rank, for distributed query engines.

    run.to_parquet("run-parquet")                        # every table
    run.spans(kind="collective").to_parquet("collectives")

Rows are written in batches: memory use does not grow with the recording, except for steps."""
import datetime
import pathlib

DAY_NS = 86_400 * 10**9
EPOCH = datetime.date(1970, 1, 1)
# For Spark and others: the folder is complete. They ignore files with such names as data.
DONE = "_SUCCESS"
BY_RANK = ("spans", "events", "memory")
BY_DAY = ("steps",)


def days_of(begin_unix_ns, first_ns, last_ns):
    """(name, begin, end) of the days from first_ns to last_ns, in the run's time. Names are UTC dates if the run's
    begin is known, else days since its first event."""
    shift = begin_unix_ns or 0
    day = (first_ns + shift) // DAY_NS
    while day * DAY_NS - shift <= last_ns:
        name = str(day) if begin_unix_ns is None else (EPOCH + datetime.timedelta(days=day)).isoformat()
        yield name, day * DAY_NS - shift, (day + 1) * DAY_NS - shift
        day += 1


def new_folder(path):
    folder = pathlib.Path(path)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(f"{folder}: there is something already; give a folder that is new or empty")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def arrow():
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("to_parquet needs pyarrow: pip install pyarrow") from error
    return pyarrow


def write_part(table, folder, but=()):
    """Writes the table's rows to one file, without the columns `but`, which the folder names contain. Returns the
    number of rows; 0: no file was written."""
    pyarrow = arrow()
    reader = pyarrow.RecordBatchReader.from_stream(table)
    schema = pyarrow.schema([field for field in reader.schema if field.name not in but])
    rows, writer = 0, None
    try:
        for batch in reader:
            if batch.num_rows == 0:
                continue
            if writer is None:
                folder.mkdir(parents=True, exist_ok=True)
                writer = pyarrow.parquet.ParquetWriter(folder / "part-0.parquet", schema, compression="zstd")
            writer.write_batch(batch.select(schema.names))
            rows += batch.num_rows
    finally:
        if writer is not None:
            writer.close()
    return rows


def write(table, path):
    """Writes a table below `path`: spans, events and memory to day=.../rank=..., steps to day=..., others to one file."""
    folder = new_folder(path)
    rows = parts(table, folder)
    (folder / DONE).touch()
    return rows


def write_days(table, folder):
    """Like write_part(), split by the day in which a row begins. Holds the whole table in memory, as the reader of
    steps does."""
    pyarrow = arrow()
    import pyarrow.compute
    whole = pyarrow.table(table)
    at = whole["begin_ns"]
    ends = pyarrow.compute.min_max(at).as_py()
    rows = 0
    if ends["min"] is None:
        return rows
    for day, begin, end in days_of(begin_of(table._recording), ends["min"], ends["max"]):
        here = pyarrow.compute.and_(pyarrow.compute.greater_equal(at, begin), pyarrow.compute.less(at, end))
        rows += write_part(whole.filter(here), folder / f"day={day}")
    return rows


def parts(table, folder):
    recording, chosen = table._recording, table._chosen
    if table.name in BY_DAY:
        return write_days(table, folder)
    if table.name not in BY_RANK:
        return write_part(table, folder)
    ranks, first_ns, last_ns = {}, 0, 0
    for row in type(table)(recording, "ranks").rows():
        ranks[row["rank"]] = row["last_event_ns"]
    wanted = chosen.get("rank")
    if wanted is not None:
        wanted = [wanted] if isinstance(wanted, int) else [int(rank) for rank in wanted]
    last_ns = max(ranks.values(), default=0)
    begin, end = chosen.get("begin_ns"), chosen.get("end_ns")
    rows = 0
    for day, day_begin, day_end in days_of(begin_of(recording), first_ns if begin is None else begin,
                                           last_ns if end is None else min(end, last_ns)):
        for rank in sorted(ranks) if wanted is None else wanted:
            part = table.filter(rank=rank, begin_ns=day_begin if begin is None else max(begin, day_begin),
                                end_ns=day_end if end is None else min(end, day_end))
            rows += write_part(part, folder / f"day={day}" / f"rank={rank}", but=("rank",))
    return rows


def begin_of(recording):
    """Unix time of the run's first event in nanoseconds; None if it is not recorded, as in a simulation."""
    import json
    return json.loads(recording.json("info"))["begin_unix_ns"]


def write_run(run, path):
    """Writes every table of a recording to a folder of its name, and `run` with one row. Returns {table: rows}."""
    from shardscope.recording import TABLES
    pyarrow = arrow()
    folder = new_folder(path)
    rows = {}
    for table in (run.spans(), run.events(), run.memory, *(getattr(run, name) for name in TABLES)):
        rows[table.name] = parts(table, folder / table.name)
    info = run.info
    one = {name: [info[name]] for name in ("path", "events", "complete", "begin_unix_ns")}
    (folder / "run").mkdir()
    pyarrow.parquet.write_table(pyarrow.table(one, schema=pyarrow.schema(
        [("path", pyarrow.string()), ("events", pyarrow.int64()), ("complete", pyarrow.bool_()), ("begin_unix_ns", pyarrow.int64())])),
        folder / "run" / "part-0.parquet")
    (folder / DONE).touch()
    return rows
