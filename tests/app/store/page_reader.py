"""A reader of recordings written from docs/recording.md alone: nothing of the project's own code is used.

What the page leaves out or says wrongly shows here as a checksum, a size or a column that does not come out.
"""
import collections
import ctypes
import ctypes.util
import sqlite3
import struct

U32, U64 = 1 << 32, 1 << 64
MEMORY_ALLOC, MEMORY_FREE = 25, 26
STATE_KINDS = {9, 17, 18, 19, MEMORY_ALLOC, MEMORY_FREE}
POOLS, CATEGORIES = 4, 16

_zstd = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
_zstd.ZSTD_decompress.restype = ctypes.c_size_t
_zstd.ZSTD_decompress.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]


class PageError(Exception):
    """The file does not hold what the page says."""


def check(condition, *words):
    if not condition:
        raise PageError(" ".join(map(str, words)))


def decompress(frame, size):
    out = ctypes.create_string_buffer(max(size, 1))
    written = _zstd.ZSTD_decompress(out, size, frame, len(frame))
    check(written == size, "a frame holds not the", size, "bytes it should")
    return out.raw[:size]


def _table():
    table = []
    for i in range(256):
        for _ in range(8):
            i = (i >> 1) ^ (0x82F63B78 if i & 1 else 0)
        table.append(i)
    return table


_CRC = _table()


def crc32c(data):
    crc = U32 - 1
    for byte in data:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ (U32 - 1)


def row_crc(*values):
    """Of a row: its values as text, each followed by byte 0x1F."""
    return crc32c(b"".join(str(value).encode() + b"\x1f" for value in values))


def table_crc(rows):
    """Of a table without checksums of its rows: values with the letter of their type."""
    def text(value):
        if value is None:
            return b"n"
        if isinstance(value, int):
            return b"i%d" % value
        if isinstance(value, float):
            return b"r" + struct.pack(">d", value).hex().encode()
        return b"t" + value.encode() if isinstance(value, str) else b"b" + value
    return crc32c(b"".join(b"".join(text(value) + b"\x1f" for value in row) + b"\x1e" for row in rows))


def signed64(value):
    value %= U64
    return value - U64 if value >> 63 else value


class Bytes:
    """Little-endian numbers one after the other."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def fixed(self, code):
        (value,) = struct.unpack_from("<" + code, self.data, self.at)
        self.at += struct.calcsize("<" + code)
        return value

    def varint(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def number(self):
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def numbers(self, count):
        return [self.number() for _ in range(count)]

    def id(self):
        return (self.varint() - 1) % U32

    def time(self, base):
        value = self.varint()
        if value < 2:
            return ("never", "not ended")[value]
        value -= 2
        return base + ((value >> 1) ^ -(value & 1))

    def ended(self, what):
        check(self.at == len(self.data), len(self.data) - self.at, "bytes follow", what)


Event = collections.namedtuple("Event", "time kind stream code a b c v0 v1")


def section(data, n):
    """Points 1 to 5 of "Chunks"; `data` begins at the tag table."""
    tags = []
    for _ in range(data.varint()):
        tag, mask = data.fixed("I"), data.fixed("B")
        tags.append((tag & 0xFFFF, tag >> 16 & 0xFF, tag >> 24, mask))
    column = [data.varint() for _ in range(n)]
    times, time = [], 0
    for _ in range(n):
        time += data.number()
        times.append(time)
    fields = [[U32 - 1] * 3 + [0, 0] for _ in range(n)]
    of_tag = collections.defaultdict(list)
    for i, tag in enumerate(column):
        check(tag < len(tags), "event", i, "names tag", tag, "of", len(tags))
        of_tag[tag].append(i)
    for field in range(5):
        for tag, (kind, _, _, mask) in enumerate(tags):
            if not mask >> field & 1 or (field == 4 and kind in (MEMORY_ALLOC, MEMORY_FREE)):
                continue
            value = U32 - 1 if field < 3 else 0
            for i in of_tag[tag]:
                value = (value + data.number()) % U32 if field < 3 else signed64(value + data.number())
                fields[i][field] = value
    pool_bytes = collections.Counter()
    for i, tag in enumerate(column):
        kind, _, code, _ = tags[tag]
        if kind in (MEMORY_ALLOC, MEMORY_FREE):
            predicted = pool_bytes[code >> 4] + (fields[i][3] if kind == MEMORY_ALLOC else -fields[i][3])
            pool_bytes[code >> 4] = fields[i][4] = signed64(predicted + data.number())
    data.ended("the columns")
    return [Event(times[i], *tags[column[i]][:3], *fields[i]) for i in range(n)]


HEADER = ("magic version parts rank events sequence clock_offset_ns clock_residual_ns dropped_before lost_before "
          "begin_ns end_ns shed_before lost_between missing_begin_ns missing_end_ns state_events state_size "
          "state_compressed state_crc other_size other_compressed other_crc header_crc").split()


def chunk(data):
    """The header as a dictionary, and the events in order."""
    h = dict(zip(HEADER, struct.unpack_from("<IHHIIQqqQQqqQQqqIIIIIIII", data)))
    check(h["magic"] == 0x4B43535A and h["version"] == 4, "magic", hex(h["magic"]), "version", h["version"])
    check(crc32c(data[:132]) == h["header_crc"], "checksum of the header")
    h["parts"] += 1
    n, s, at = h["events"], h["state_events"], 136
    state, other = data[at:at + h["state_compressed"]], data[at + h["state_compressed"]:]
    check(len(other) == h["other_compressed"], "size of the section of others")
    states = []
    if s:
        check(crc32c(state) == h["state_crc"], "checksum of the section of the state")
        states = section(Bytes(decompress(state, h["state_size"])), s)
    check(crc32c(other) == h["other_crc"], "checksum of the section of others")
    rest = Bytes(decompress(other, h["other_size"]))
    runs = []
    while s and sum(runs) < n:
        runs.append(rest.varint())
    others = section(rest, n - s)
    if not s:
        return h, others
    check(sum(runs) == n, "runs of", sum(runs), "events of", n)
    check(all(e.kind in STATE_KINDS for e in states), "an event that is not of the state in its section")
    check(not any(e.kind in STATE_KINDS for e in others), "an event of the state among the others")
    queues, events = (iter(others), iter(states)), []
    for i, run in enumerate(runs):
        events += [next(queues[i % 2]) for _ in range(run)]
    return h, events


def blob(data):
    """`bytes` and `statuses` of the tables of blocks."""
    crc, size = struct.unpack_from("<II", data)
    check(crc32c(data[4:]) == crc, "checksum of a block")
    return Bytes(decompress(data[8:], size))


def detail(data):
    """Levels of detail: width and begin of the buckets and their four columns; None where there are none."""
    n = data.varint()
    if n == 0:
        return None
    out = dict(shift=data.varint(), begin_ns=data.number(), first=data.varint(), last=data.varint())
    for column in ("begins", "busy", "majority", "vote"):
        out[column] = [data.varint() for _ in range(n)]
    return out


def keyframe(data, base, lanes):
    for _ in range(lanes):
        data.time(base)
        for _ in range(data.varint()):
            data.varint(), data.varint(), data.time(base), data.time(base)
            if data.varint():
                data.time(base)
            data.id(), data.id(), data.id(), data.number(), data.number(), data.time(base)
    pools = [(data.time(base), data.numbers(CATEGORIES)) if data.varint() else None for _ in range(POOLS)]
    for _ in range(data.varint()):
        data.id(), data.id(), data.time(base), data.number()
        for _ in range(data.varint()):
            data.id()
    return pools


def block(data):
    check(data.fixed("B") == 2, "version of a block")
    base = data.fixed("q")
    out = dict(begin_ns=base)
    for name in "rank sequence parts events dropped_before lost_before shed_before lost_between".split():
        out[name] = data.varint()
    for name in "missing_begin_ns missing_end_ns clock_offset_ns clock_residual_ns".split():
        out[name] = data.number()
    out["end_ns"] = data.time(base)
    out["missing"] = data.varint()
    lanes = data.varint()
    out["pools"] = keyframe(data, base, lanes)
    for _ in range(lanes):
        data.time(base)
        depths = data.varint()
        for _ in range(depths):
            detail(data)
        for _ in range(depths):
            data.varint()
    detail(data)
    out["changes"] = 0
    for _ in range(POOLS):
        changes = data.varint()
        out["changes"] += changes
        if not changes:
            continue
        for _ in range(2):
            data.time(base), data.numbers(CATEGORIES)
        for _ in range(data.varint()):
            data.time(base), data.time(base), data.numbers(CATEGORIES)
        for _ in range(data.varint()):
            data.time(base), data.number(), data.number(), data.varint()
    out["instants"] = [(data.varint(), data.varint(), data.varint()) for _ in range(data.varint())]
    out["gates"] = data.varint()
    for _ in range(data.varint()):
        data.varint(), data.varint(), data.time(base)
        if data.varint():
            data.time(base)
    out["spans"] = [(data.varint(), data.varint(), data.varint(), *data.numbers(4)) for _ in range(data.varint())]
    out["of_steps"] = [(data.time(base), data.varint(), data.varint(), data.id(), data.fixed("q"))
                       for _ in range(data.varint())]
    data.ended("a block")
    return out


def levels(data):
    """By lane, the levels of detail of each depth."""
    check(data.fixed("B") == 3, "version of the levels")
    lanes = [[detail(data) for _ in range(data.varint())] for _ in range(data.varint())]
    detail(data)
    data.ended("the levels")
    return lanes


def tile(data):
    check(data.fixed("B") == 1, "version of a tile")
    out = detail(data)
    data.ended("a tile")
    return out


def statuses(data):
    """By parameter: code, collector clock of the last change or None, module, gather."""
    check(data.fixed("B") == 1, "version of the statuses")
    n = data.varint()
    codes = [data.varint() for _ in range(n)]
    since, last = [], 0
    for _ in range(n):
        changed = data.varint()
        if changed:
            last += data.number()
        since.append(last if changed else None)
    columns = []
    for _ in range(2):
        value, column = 0, []
        for _ in range(n):
            value = (value + data.number()) % U32
            column.append(value)
        columns.append(column)
    data.ended("the statuses")
    return list(zip(codes, since, *columns))


class Recording:
    """Opens a complete recording and decodes every chunk, in order."""

    def __init__(self, path):
        self.sql = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        check(self.one("PRAGMA application_id") == 0x5A534350, "application id")
        self.meta = dict(self.sql.execute("SELECT key, value FROM meta"))
        columns = ("rank sequence begin_ns end_ns clock_offset_ns clock_residual_ns events dropped_before lost_before "
                   "parts").split()
        self.chunks = {}
        for row, data, *values in self.sql.execute(
                f"SELECT id, bytes, {', '.join(columns)} FROM chunks ORDER BY id"):
            header, events = chunk(data)
            for name, value in zip(columns, values):
                check(header[name] == value, "chunk", row, name, "is", header[name], "in its row", value)
            check(len(events) == header["events"], "events of chunk", row)
            check((min(e.time for e in events), max(e.time for e in events)) ==
                  (header["begin_ns"], header["end_ns"]), "times of chunk", row)
            self.chunks[row] = header, events

    def one(self, query):
        return self.sql.execute(query).fetchone()[0]
