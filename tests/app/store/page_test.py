#!/usr/bin/env python3
"""A recording read by docs/recording.md has the contents that Shardscope reports.

Usage: page_test.py BIN_FOLDER [unittest arguments]
"""
import collections
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import page_reader as page

BIN = pathlib.Path(sys.argv[1])
STEP_BEGIN, STEP_END, PARAM_STATUS = 1, 2, 9
# Kinds with a begin; the kind after each is its end (docs/events.md).
BEGINS = {1, 3, 5, 7, 10, 13, 27, 29, 31, 39, 42, 47, 55, 57, 59}


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        path = pathlib.Path(cls.folder.name) / "run.zscope"
        # Long enough for joined chunks, sections of the state, blocks and tiles; with losses, so that no field is 0.
        subprocess.run([BIN / "make_synthetic_recording", path, "steps=200", "world=2", "lossy=1"], check=True)
        cls.info = json.loads(subprocess.run([BIN / "shardscope", "info", "--json", path], check=True, text=True,
                                             stdout=subprocess.PIPE).stdout)
        cls.recording = page.Recording(path)
        cls.sql = cls.recording.sql

    @classmethod
    def tearDownClass(cls):
        cls.sql.close()
        cls.folder.cleanup()

    def blobs(self, query):
        return {row: page.blob(data) for row, data in self.sql.execute(query)}

    def test_chunks_hold_as_many_events_as_info_counts(self):
        chunks = self.recording.chunks
        self.assertEqual(self.info["problems"], [])
        self.assertEqual(sum(len(events) for _, events in chunks.values()), self.info["events"])
        self.assertEqual(int(self.recording.meta["events"]), self.info["events"])
        self.assertEqual(sum(h["parts"] for h, _ in chunks.values()), int(self.recording.meta["chunks"]))
        self.assertTrue(any(h["state_events"] for h, _ in chunks.values()), "no chunk with two sections to read")
        self.assertTrue(any(h["shed_before"] and h["lost_between"] and h["missing_begin_ns"]
                            for h, _ in chunks.values()), "no losses to read")
        following = collections.Counter()
        for header, _ in chunks.values():
            self.assertEqual(header["sequence"], following[header["rank"]])
            following[header["rank"]] += header["parts"]

    def test_checksums_of_rows(self):
        rows = 0
        for rank, name, text, crc in self.sql.execute("SELECT rank, id, name, crc FROM names"):
            self.assertEqual(page.row_crc(rank, name, text), crc)
            rows += 1
        for *values, crc in self.sql.execute("SELECT rank, at_ns, severity, text, crc FROM messages"):
            self.assertEqual(page.row_crc(*values), crc)
            rows += 1
        for *values, crc in self.sql.execute(
                "SELECT rank, host, pid, connected, finished, exit_code, exit_message, events, dropped, lost_messages, "
                "clock_offset_ns, clock_residual_ns, gate_number, gate_kind, gate_id, holding, crc FROM ranks"):
            self.assertEqual(page.row_crc(*values), crc)
            rows += 1
        for data, crc in self.sql.execute("SELECT bytes, crc FROM tables"):
            self.assertEqual(page.crc32c(data), crc)
            rows += 1
        self.assertGreater(rows, 4)

    def test_checksums_of_tables(self):
        orders = {"run": "rowid", "modules": "id", "params": "id", "module_params": "module, position", "slices": "rowid",
                  "steps": "step", "memory_peaks": "rank, pool, category", "span_summary": "rank, stream, kind, code",
                  "gaps": "rowid"}
        for table, order in orders.items():
            rows = self.sql.execute(f"SELECT * FROM {table} ORDER BY {order}").fetchall()
            self.assertTrue(rows, table)
            self.assertEqual(page.table_crc(rows), int(self.recording.meta["crc:" + table]), table)
        rows = self.sql.execute("SELECT key, value FROM meta WHERE key IN ('chunks', 'complete', 'events', 'origin_ns') "
                                "ORDER BY key")
        self.assertEqual(page.table_crc(rows), int(self.recording.meta["crc:meta"]))
        others = {"chunks": "SELECT id, rank, sequence, begin_ns, end_ns, clock_offset_ns, clock_residual_ns, events, "
                            "dropped_before, lost_before, parts FROM chunks ORDER BY id",
                  "tables": "SELECT rank, crc FROM tables ORDER BY rank",
                  "ranks": "SELECT rank, crc FROM ranks ORDER BY rank",
                  "messages": "SELECT id, crc FROM messages ORDER BY id",
                  "names": "SELECT rank, id, crc FROM names ORDER BY rank, id",
                  "tails": "SELECT rank FROM tails ORDER BY rank",
                  "models": "SELECT * FROM models ORDER BY id",
                  "process_groups": "SELECT * FROM process_groups ORDER BY rank, id",
                  "lane_names": "SELECT * FROM lane_names ORDER BY rank, lane",
                  "sqlite_schema": "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name",
                  "header": "SELECT application_id, user_version FROM pragma_application_id, pragma_user_version"}
        others |= {table: f"SELECT id FROM {table} ORDER BY id" for table in ("blocks", "levels", "tiles")}
        others |= {f"blobs_{table}": f"SELECT id, substr(bytes, 1, 4) FROM {table} ORDER BY id" for table in ("blocks", "tiles")}
        others |= {f"blobs_{table}": f"SELECT {key}, substr(bytes, 1, 4), substr(statuses, 1, 4) FROM {table} ORDER BY {key}"
                   for table, key in (("levels", "id"), ("tails", "rank"))}
        for table, query in others.items():
            self.assertEqual(page.table_crc(self.sql.execute(query)), int(self.recording.meta["crc:" + table]), table)
        self.assertEqual(len(orders) + 1 + len(others), sum(key.startswith("crc:") for key in self.recording.meta))

    def test_steps_come_out_of_the_chunks(self):
        origin = int(self.recording.meta["origin_ns"])
        begins, ends = {}, {}
        for header, events in self.recording.chunks.values():
            for event in events:
                at = event.time + header["clock_offset_ns"] - origin
                if event.kind == STEP_BEGIN:
                    begins[event.a] = min(at, begins.get(event.a, at))
                elif event.kind == STEP_END:
                    ends[event.a] = max(at, ends.get(event.a, at))
        written = self.sql.execute("SELECT step, begin_ns, end_ns FROM steps ORDER BY step").fetchall()
        self.assertGreater(len(written), 100)
        self.assertEqual(written, [(step, begins[step], ends[step]) for step in sorted(begins)])

    def test_peaks_come_out_of_the_memory_columns(self):
        peaks = collections.Counter()
        for header, events in self.recording.chunks.values():
            for event in events:
                if event.kind in (page.MEMORY_ALLOC, page.MEMORY_FREE) and event.code >> 4 == 0:
                    peaks[header["rank"]] = max(peaks[header["rank"]], event.v1)
        self.assertEqual(dict(self.sql.execute(
            "SELECT rank, bytes FROM memory_peaks WHERE pool = 'device' AND category = 'total'")), dict(peaks))

    def test_blocks_say_what_their_chunks_say(self):
        blocks = self.blobs("SELECT id, bytes FROM blocks")
        self.assertGreater(len(blocks), 16)
        for row, data in blocks.items():
            header, events = self.recording.chunks[row]
            block = page.block(data)
            for name in ("rank sequence parts events dropped_before lost_before shed_before lost_between "
                         "missing_begin_ns missing_end_ns clock_offset_ns clock_residual_ns").split():
                self.assertEqual(block[name], header[name], (row, name))
            for name in ("begin_ns", "end_ns"):
                self.assertEqual(block[name], header[name] + header["clock_offset_ns"], (row, name))
            self.assertEqual(block["missing"], int(header["dropped_before"] + header["lost_before"] > 0))
            kinds = collections.Counter((e.kind, e.code) for e in events)
            self.assertGreater(len(block["instants"]), 0)
            for kind, code, count in block["instants"]:
                self.assertEqual(count, kinds[kind, code], (row, kind, code))
            self.assertEqual(block["changes"], sum(e.kind in (page.MEMORY_ALLOC, page.MEMORY_FREE) for e in events))

    def test_statuses_are_those_before_the_block(self):
        now = collections.defaultdict(dict)
        looked = 0
        for row, (header, events) in self.recording.chunks.items():
            data = self.sql.execute("SELECT statuses FROM levels WHERE id = ?", (row,)).fetchone()
            state = now[header["rank"]]
            for param, said in enumerate(page.statuses(page.blob(data[0])) if data else []):
                if param in state:
                    self.assertEqual(said, state[param], (row, param))
                    looked += 1
                else:
                    self.assertIsNone(said[1])
            for event in events:
                if event.kind == PARAM_STATUS:
                    state[event.a] = event.code, event.time + header["clock_offset_ns"], event.b, event.c
        self.assertGreater(looked, 100)

    def test_levels_and_tiles_count_every_span_once(self):
        begins = 0
        begun = {}
        for row, data in self.blobs("SELECT id, bytes FROM levels").items():
            _, events = self.recording.chunks[row]
            begun[row] = sum(sum(depth["begins"]) for lane in page.levels(data) for depth in lane if depth)
            self.assertEqual(begun[row], sum(e.kind in BEGINS for e in events), row)
            begins += begun[row]
        tiled = sum(sum(page.tile(data)["begins"]) for row, data in self.blobs("SELECT id, bytes FROM tiles").items()
                    if row % 2048 < 1024)
        self.assertGreater(tiled, begins / 2)
        self.assertLessEqual(tiled, begins)

    def test_the_reader_notices(self):
        data = bytearray(self.sql.execute("SELECT bytes FROM chunks LIMIT 1").fetchone()[0])
        for at in (20, 140, len(data) - 1):
            data[at] ^= 1
            with self.assertRaises(page.PageError):
                page.chunk(bytes(data))
            data[at] ^= 1
        page.chunk(bytes(data))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
