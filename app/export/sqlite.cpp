#include "app/export/sqlite.h"

#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "app/analysis/digest.h"
#include "app/analysis/summary.h"
#include "app/export/counter_samples.h"
#include "app/export/output_file.h"
#include "app/export/sqlite_spans.h"
#include "app/store/database.h"
#include "app/store/gap_text.h"
#include "app/store/names.h"
#include "app/store/rank_end.h"
#include "app/store/span_time.h"
#include "instrumentation/param_status.h"

namespace shardscope::exporter {
namespace {

namespace ev = shardscope::instrumentation;
using store::Database;
using store::Statement;
using store::Store;

// The first six tables have the names and columns of Nsight Systems; the rest are ours.
constexpr const char* kSchema = R"sql(
CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE TARGET_INFO_SYSTEM_ENV(globalVid INTEGER, devStateName TEXT, name TEXT, nameEnum INTEGER, value TEXT);
CREATE TABLE TARGET_INFO_SESSION_START_TIME(utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE NVTX_EVENTS(start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER,
  category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER,
  domainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL);
CREATE TABLE SHARDSCOPE_PARAMS(id INTEGER PRIMARY KEY, name TEXT, dtype TEXT, elems INTEGER, shardElems INTEGER,
  paddingElems INTEGER, persistent INTEGER, frozen INTEGER);
CREATE TABLE SHARDSCOPE_PARAM_STATUS(rank INTEGER, at INTEGER, param INTEGER, status TEXT, cause TEXT,
  module INTEGER, gather INTEGER);
CREATE TABLE SHARDSCOPE_COLLECTIVES(rank INTEGER, sequence INTEGER, op TEXT, start INTEGER, end INTEGER,
  allRanksArrived INTEGER, elems INTEGER, bytes INTEGER, holds TEXT, groupName TEXT,
  groupRanks TEXT, numberInGroup INTEGER);
CREATE TABLE SHARDSCOPE_PAUSES(rank INTEGER, start INTEGER, end INTEGER);
CREATE TABLE SHARDSCOPE_RANKS(rank INTEGER PRIMARY KEY, host TEXT, lastEvent INTEGER, state TEXT, exitMessage TEXT);
CREATE TABLE SHARDSCOPE_MEMORY(rank INTEGER, at INTEGER, pool TEXT, category TEXT, deltaBytes INTEGER,
  poolBytesAfter INTEGER);
CREATE TABLE SHARDSCOPE_COUNTERS(rank INTEGER, name TEXT, unit TEXT, start INTEGER, end INTEGER, value REAL);
CREATE TABLE SHARDSCOPE_GAPS(rank INTEGER, start INTEGER, end INTEGER, events INTEGER, shed INTEGER,
  messages INTEGER, reason TEXT);
CREATE TABLE SHARDSCOPE_STEP_TIMES(step INTEGER, rank INTEGER, start INTEGER, end INTEGER, totalNs INTEGER,
  checkpointNs INTEGER, computeNs INTEGER, exposedCommNs INTEGER, exposedCopyNs INTEGER, idleNs INTEGER,
  unrecordedNs INTEGER, eventsMissing INTEGER);
CREATE TABLE SHARDSCOPE_BANDWIDTHS(op TEXT, count INTEGER, bytes INTEGER, elems INTEGER, steps INTEGER,
  stepsMeasured INTEGER, algbwGbs REAL, busbwGbs REAL, algbwWaitingGbs REAL, busbwWaitingGbs REAL);
CREATE TABLE SHARDSCOPE_MESSAGES(at INTEGER, rank INTEGER, severity TEXT, text TEXT);
)sql";

/// "gradNorm" of "grad_norm".
std::string camel_case(std::string_view name) {
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '_' && i + 1 < name.size()) {
      out += static_cast<char>(std::toupper(static_cast<unsigned char>(name[++i])));
    } else {
      out += name[i];
    }
  }
  return out;
}

class Tables {
 public:
  Tables(Database& database, const Store& store, const ExportPart& part)
      : db_(database), store_(store), part_(part) {}

  void write() {
    environment();
    write_span_rows(db_, store_, part_);
    ranks();
    steps();
    params();
    instants();
    counters();
    gaps();
    figures();
    messages();
  }

 private:
  void environment() {
    Statement insert = db_.prepare("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES(0, '', ?1, 0, ?2)");
    const ev::RunTables& run = store_.tables();
    const auto put = [&](const char* name, const std::string& value) {
      insert.bind(1, name).bind(2, value).run();
    };
    put("RunId", run.run_id);
    put("Model", run.model);
    put("Device", run.device);
    put("Hardware", run.hardware);
    put("Versions", run.versions);
    put("WorldSize", std::to_string(run.world));
    put("ZeroStage", std::to_string(run.stage));
    put("Config", run.config_json);
    put("Simulated", run.simulated ? "true" : "false");
    put("EmulatedLinkGbps", std::to_string(run.link_gbps));
    put("DroppedEvents", std::to_string(store_.dropped_count()));
  }

  void ranks() {
    Statement row = db_.prepare("INSERT INTO SHARDSCOPE_RANKS VALUES(?1,?2,?3,?4,?5)");
    Statement insert = db_.prepare("INSERT INTO SHARDSCOPE_PAUSES VALUES(?1,?2,?3)");
    for (const store::RankRow& rank : store_.ranks()) {
      if (!part_.has_rank(rank.rank)) continue;
      row.bind(1, std::int64_t{rank.rank}).bind(2, rank.host).bind(3, rank.last_ns);
      row.bind(4, store::text_of(store::rank_end(store_, rank))).bind(5, rank.exit_message).run();
      const TimeRange range = part_.of(rank.rank);
      store_.for_each_span({rank.rank, ev::StreamId::host}, store::kPauses, range.from_ns, range.to_ns,
                           [&](const store::Span& pause) {
                             insert.bind(1, std::int64_t{rank.rank}).bind(2, pause.begin_ns);
                             // NULL for an open span
                             bind_where(insert, 3, pause.end_ns,
                                        store::time_of(store_, rank.rank, pause).ended);
                             insert.run();
                           });
    }
  }

  void steps() {
    std::string columns, places = "?1,?2,?3,?4,?5,?6";  // and one per value
    store::for_each_step_column(
        [&](const store::StepValue& value) { columns += ", " + camel_case(value.name()) + " REAL"; },
        [&] { columns += ", skipped INTEGER"; });
    for (std::size_t i = 0; i < store::kStepValues.size(); ++i) places += ",?" + std::to_string(i + 7);
    db_.execute(
        "CREATE TABLE SHARDSCOPE_STEPS(step INTEGER PRIMARY KEY, start INTEGER, end INTEGER, "
        "pausedNs INTEGER, tokens INTEGER" +
        columns + ")");
    Statement insert = db_.prepare("INSERT INTO SHARDSCOPE_STEPS VALUES(" + places + ")");
    for (const store::StepRow& s : store_.steps()) {
      if (!part_.has(s)) continue;
      insert.bind(1, std::int64_t{s.step}).bind(2, s.begin_ns);
      bind_where(insert, 3, s.end_ns, s.end_ns != store::kOpen);
      insert.bind(4, s.paused_ns).bind(5, s.tokens);
      int column = 6;
      store::for_each_step_column(
          [&](const store::StepValue& value) { insert.bind(column++, s.*value.member); },
          [&] { insert.bind(column++, std::int64_t{s.skipped}); });
      insert.run();
    }
  }

  void params() {
    Statement insert =
        db_.prepare("INSERT OR REPLACE INTO SHARDSCOPE_PARAMS VALUES(?1,?2,?3,?4,?5,?6,?7,?8)");
    for (const ev::ParamInfo& p : store_.tables().params) {
      insert.bind(1, std::int64_t{p.id})
          .bind(2, p.name)
          .bind(3, p.dtype)
          .bind(4, p.elems)
          .bind(5, p.shard_elems);
      insert.bind(6, p.padding_elems)
          .bind(7, std::int64_t{p.persistent})
          .bind(8, std::int64_t{p.frozen})
          .run();
    }
  }

  static void status_row(Statement& row, std::uint32_t rank, std::int64_t at_ns, std::uint32_t param,
                         std::uint8_t status, ev::StatusCause cause, std::uint32_t module,
                         std::uint32_t gather) {
    row.bind(1, std::int64_t{rank}).bind(2, at_ns).bind(3, std::int64_t{param});
    row.bind(4, store::status_name(status)).bind(5, store::name_of(cause));
    bind_id(row, 6, module);
    bind_id(row, 7, gather);
    row.run();
  }
  static void memory_row(Statement& row, std::uint32_t rank, std::int64_t at_ns, ev::MemoryPool pool,
                         ev::MemoryCategory category, std::int64_t delta_bytes,
                         std::optional<std::int64_t> pool_bytes) {
    row.bind(1, std::int64_t{rank}).bind(2, at_ns).bind(3, store::name_of(pool));
    row.bind(4, store::name_of(category)).bind(5, delta_bytes);
    bind_where(row, 6, pool_bytes.value_or(0), pool_bytes.has_value());
    row.run();
  }

  void instants() {
    Statement status = db_.prepare("INSERT INTO SHARDSCOPE_PARAM_STATUS VALUES(?1,?2,?3,?4,?5,?6,?7)");
    Statement memory = db_.prepare("INSERT INTO SHARDSCOPE_MEMORY VALUES(?1,?2,?3,?4,?5,?6)");
    for (const store::RankRow& rank : store_.ranks()) {
      for_each_status_before(store_, rank.rank, part_,
                             [&](std::uint32_t param, const store::ParamState& state) {
                               status_row(status, rank.rank, state.since_ns, param, state.status, state.cause,
                                          state.module, state.gather);
                             });
      for_each_memory_before(store_, rank.rank, part_,
                             [&](ev::MemoryPool pool, ev::MemoryCategory category, std::int64_t bytes) {
                               memory_row(memory, rank.rank, part_.of(rank.rank).from_ns, pool, category,
                                          bytes, std::nullopt);
                             });
      for_each_instant(store_, rank.rank, part_, [&](const ev::Event& e) {
        const auto at = static_cast<std::int64_t>(e.ticks);
        if (e.kind == ev::EventKind::param_status) {
          const auto change = ev::as<ev::EventKind::param_status>(e);
          status_row(status, rank.rank, at, change.param, ev::status_of(change.status.bits), change.cause,
                     change.module, change.gather);
        } else if (e.kind == ev::EventKind::memory_alloc || e.kind == ev::EventKind::memory_free) {
          const auto change = ev::as<ev::EventKind::memory_alloc>(e);
          memory_row(memory, rank.rank, at, change.pool, change.category,
                     e.kind == ev::EventKind::memory_alloc ? change.bytes : -change.bytes, change.pool_bytes);
        }
      });
    }
  }

  void counters() {
    Statement insert = db_.prepare("INSERT INTO SHARDSCOPE_COUNTERS VALUES(?1,?2,?3,?4,?5,?6)");
    for (const store::RankRow& rank : store_.ranks()) {
      if (!part_.has_rank(rank.rank)) continue;
      for_each_counter_sample(
          store_, rank.rank, part_,
          [&](const analysis::CounterSeries& series, const analysis::CounterSample& sample) {
            insert.bind(1, std::int64_t{rank.rank}).bind(2, series.name).bind(3, series.unit);
            insert.bind(4, sample.at_ns);
            // NULL: until the next sample
            bind_where(insert, 5, sample.until_ns, sample.until_ns != analysis::CounterSample::kUntilNext);
            insert.bind(6, sample.value).run();
          });
    }
  }

  void gaps() {
    Statement insert = db_.prepare("INSERT INTO SHARDSCOPE_GAPS VALUES(?1,?2,?3,?4,?5,?6,?7)");
    for (const store::Gap& g : store_.gaps()) {
      if (!part_.has(g)) continue;
      insert.bind(1, std::int64_t{g.rank}).bind(2, g.begin_ns).bind(3, g.end_ns);
      bind_where(insert, 4, static_cast<std::int64_t>(g.events), g.events > 0);
      insert.bind(5, static_cast<std::int64_t>(g.shed));
      insert.bind(6, static_cast<std::int64_t>(g.messages)).bind(7, store::what_is_missing(g)).run();
    }
  }

  void figures() {
    constexpr double kMissing = store::StepRow::NAN_;  // NULL
    analysis::Digest digest;
    (void)digest.update(store_);
    Statement times =
        db_.prepare("INSERT INTO SHARDSCOPE_STEP_TIMES VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12)");
    for (const analysis::StepDigest& step : digest.steps()) {
      for (const analysis::RankStep& rank : step.ranks) {
        if (!part_.has(step.step, rank)) continue;
        const analysis::TimePartition& time = rank.time;
        times.bind(1, std::int64_t{step.step}).bind(2, std::int64_t{rank.rank});
        times.bind(3, rank.begin_ns).bind(4, rank.end_ns).bind(5, time.total_ns).bind(6, time.checkpoint_ns);
        int column = 7;
        for (const std::int64_t part :
             {time.compute_ns, time.exposed_comm_ns, time.exposed_copy_ns, time.idle_ns}) {
          if (time.known()) {
            times.bind(column++, part);
          } else {
            times.bind(column++, kMissing);
          }
        }
        times.bind(11, time.unrecorded_ns).bind(12, std::int64_t{rank.recorded.events_missing}).run();
      }
    }
    if (!part_.whole()) {  // figures over all measured steps
      db_.execute("DROP TABLE SHARDSCOPE_BANDWIDTHS");
      return;
    }
    const analysis::Summary summary = analysis::summarize(store_, digest);
    Statement ops = db_.prepare("INSERT INTO SHARDSCOPE_BANDWIDTHS VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)");
    for (const analysis::OpRow& op : summary.ops) {
      ops.bind(1, store::name_of(op.op)).bind(2, static_cast<std::int64_t>(op.count)).bind(3, op.bytes);
      ops.bind(4, op.elems).bind(5, std::int64_t{summary.ops_steps});
      ops.bind(6, std::int64_t{summary.steps_measured});
      ops.bind(7, op.algbw_gbs.value_or(kMissing)).bind(8, op.busbw_gbs.value_or(kMissing));
      ops.bind(9, op.algbw_waiting_gbs.value_or(kMissing));
      ops.bind(10, op.busbw_waiting_gbs.value_or(kMissing)).run();
    }
  }

  void messages() {
    Statement insert = db_.prepare("INSERT INTO SHARDSCOPE_MESSAGES VALUES(?1,?2,?3,?4)");
    for (const store::Message& m : store_.messages()) {
      if (!part_.has(m)) continue;
      insert.bind(1, m.at_ns).bind(2, std::int64_t{m.rank}).bind(3, store::name_of(m.severity));
      insert.bind(4, m.text).run();
    }
  }

  Database& db_;
  const Store& store_;
  const ExportPart& part_;
};

}  // namespace

void write_sqlite(const std::string& path, const Store& store, const ExportPart& part) {
  if (std::filesystem::exists(path) && !std::filesystem::is_regular_file(path))
    throw std::runtime_error(path + ": exists and is no file; a database needs one: choose another name");
  refuse_recording(path);
  const std::string temporary = path + ".part" + std::to_string(::getpid());
  std::remove(temporary.c_str());
  try {
    Database database(temporary, Database::Access::create);
    database.execute("PRAGMA journal_mode = OFF");  // an incomplete file is discarded
    database.execute("PRAGMA synchronous = OFF");
    database.execute("BEGIN");
    database.execute(kSchema);
    Tables(database, store, part).write();
    database.execute("COMMIT");
    database.close();
  } catch (const store::DatabaseError& error) {
    std::remove(temporary.c_str());
    throw std::runtime_error(path + ": cannot write it: " + error.what());
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    const std::string reason = std::strerror(errno);
    std::remove(temporary.c_str());
    throw std::runtime_error(path + ": cannot put it in place: " + reason);
  }
}

}  // namespace shardscope::exporter
