#include "app/store/recording_summary.h"

#include "app/store/gap_text.h"
#include "app/store/names.h"

namespace shardscope::store {

void write_step_rows(Database& db, const char* table, std::span<const StepRow> rows, std::int64_t delta_ns) {
  std::string places = "?1,?2,?3,?4,?5,?6";  // one more for each value column
  for (std::size_t i = 0; i < kStepValues.size(); ++i) places += ",?" + std::to_string(i + 7);
  Statement insert = db.prepare("INSERT OR REPLACE INTO " + std::string(table) + " VALUES(" + places + ")");
  for (const StepRow& row : rows) {
    insert.bind(1, std::int64_t{row.step}).bind(2, row.begin_ns + delta_ns);
    // NULL for a step that did not end, so that queries do not compute with the open end.
    if (row.end_ns == kOpen) {
      insert.bind(3, __builtin_nan(""));
    } else {
      insert.bind(3, row.end_ns + delta_ns);
    }
    insert.bind(4, row.paused_ns).bind(5, row.tokens);
    int column = 6;
    for_each_step_column([&](const StepValue& value) { insert.bind(column++, row.*value.member); },
                         [&] { insert.bind(column++, std::int64_t{row.skipped}); });
    insert.run();
  }
}

namespace {

void write_memory_peaks(Database& db, const Store& store) {
  Statement insert = db.prepare("INSERT INTO memory_peaks VALUES(?1,?2,?3,?4,?5)");
  for (const RankRow& rank : store.ranks()) {
    for (std::size_t p = 0; p < ev::kMemoryPoolCount; ++p) {
      const auto pool = static_cast<ev::MemoryPool>(p);
      const std::optional<MemorySample> peak = store.memory_peak(rank.rank, pool);
      if (!peak) continue;
      const auto put = [&](const char* category, std::int64_t bytes) {
        insert.bind(1, std::int64_t{rank.rank}).bind(2, name_of(pool)).bind(3, peak->at_ns);
        insert.bind(4, category).bind(5, bytes).run();
      };
      put("total", peak->total());
      for (std::size_t c = 0; c < peak->bytes.size(); ++c) {
        if (peak->bytes[c] != 0) put(name_of(static_cast<ev::MemoryCategory>(c)), peak->bytes[c]);
      }
    }
  }
}

void write_span_summary(Database& db, const Store& store) {
  Statement insert = db.prepare("INSERT INTO span_summary VALUES(?1,?2,?3,?4,?5,?6,?7,?8)");
  for (const SpanTotal& total : store.span_totals()) {
    insert.bind(1, std::int64_t{total.lane.rank})
        .bind(2, name_of(total.lane.stream))
        .bind(3, ev::name_of(total.kind));
    insert.bind(4, std::int64_t{total.code}).bind(5, total.count).bind(6, total.total_ns);
    insert.bind(7, total.min_ns).bind(8, total.max_ns).run();
  }
}

}  // namespace

void create_steps(Database& db, const char* table) {
  std::string columns;
  for_each_step_column([&](const StepValue& value) { columns += std::string(", ") + value.name() + " REAL"; },
                       [&] { columns += ", skipped INTEGER"; });
  db.execute("CREATE TABLE " + std::string(table) +
             "(step INTEGER PRIMARY KEY, begin_ns INTEGER, end_ns INTEGER, paused_ns INTEGER, "
             "tokens INTEGER" +
             columns + ")");
}

void write_summary(Database& db, const Store& store) {
  db.execute("DELETE FROM steps; DELETE FROM memory_peaks; DELETE FROM span_summary; DELETE FROM gaps");
  write_step_rows(db, "steps", store.steps(), 0);
  write_memory_peaks(db, store);
  write_span_summary(db, store);
  Statement gap = db.prepare("INSERT INTO gaps VALUES(?1,?2,?3,?4,?5,?6,?7)");
  for (const Gap& g : store.gaps()) {
    gap.bind(1, std::int64_t{g.rank})
        .bind(2, g.begin_ns)
        .bind(3, g.end_ns)
        .bind(4, static_cast<std::int64_t>(g.events))
        .bind(5, static_cast<std::int64_t>(g.shed))
        .bind(6, static_cast<std::int64_t>(g.messages))
        .bind(7, what_is_missing(g))
        .run();
  }
  db.execute("INSERT OR REPLACE INTO meta VALUES('origin_ns', " + std::to_string(store.origin_ns()) + ")");
}

}  // namespace shardscope::store
