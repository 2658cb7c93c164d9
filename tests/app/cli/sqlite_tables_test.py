"""docs/sqlite.md has the tables and columns that `export --format sqlite` writes, with their types, and queries that work."""
import json
import pathlib
import re
import sqlite3
import tempfile
import unittest

import command_line
from command_line import ROOT, said

PAGE = (ROOT / "docs/sqlite.md").read_text()


class SqliteTables(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.kept.cleanup)
        folder = pathlib.Path(cls.kept.name)
        config = folder / "config.json"
        config.write_text(json.dumps({"train_micro_batch_size_per_gpu": 1, "zero_optimization": {
            "stage": 3, "offload_optimizer": {"device": "cpu"}, "stage3_param_persistence_threshold": 0}}))
        said("simulate", "--model", "gpt-mini", "--config", config, "--ranks", 2, "--steps", 3, "-o", folder / "run.zscope")
        said("export", "--format", "sqlite", folder / "run.zscope", "-o", folder / "run.sqlite")
        cls.db = sqlite3.connect(folder / "run.sqlite")
        cls.addClassCleanup(cls.db.close)

    def test_columns_are_those_that_are_documented(self):
        written = {}
        for (table,) in self.db.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
            written[table] = [(row[1], row[2]) for row in self.db.execute(f"PRAGMA table_info({table})")]
        documented = {}
        for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
            columns = re.findall(r"^\| `(\w+)` \| (\w+) \| \S", section, re.MULTILINE)
            if columns:
                documented[section.split()[0]] = columns
        self.assertEqual(documented, written)

    def test_queries_have_rows(self):
        queries = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
        self.assertGreater(len(queries), 2)
        for query in queries:
            self.assertGreater(len(self.db.execute(query).fetchall()), 0, query)

    def test_no_id_is_the_number_that_stands_for_none(self):
        none = 0xFFFFFFFF
        for table, *columns in (("SHARDSCOPE_PARAM_STATUS", "module", "gather"), ("CUPTI_ACTIVITY_KIND_MEMCPY", "correlationId"),
                                ("CUPTI_ACTIVITY_KIND_KERNEL", "correlationId")):
            for column in columns:
                self.assertEqual(self.db.execute(f"SELECT count(*) FROM {table} WHERE {column} = {none}").fetchone(), (0,), (table, column))
        sequences = [row[0] for row in self.db.execute(
            "SELECT k.correlationId FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON k.demangledName = s.id "
            "WHERE s.value LIKE 'nccl:%' AND k.deviceId = 0 ORDER BY k.start")]
        self.assertGreater(len(set(sequences)), 10)
        self.assertNotIn(None, sequences)
        self.assertGreater(self.db.execute("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE correlationId IS NULL").fetchone()[0], 0)


if __name__ == "__main__":
    command_line.main()
