#include "app/export/sqlite.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "app/analysis/communication.h"
#include "app/analysis/digest.h"
#include "app/analysis/intervals.h"
#include "app/analysis/summary.h"
#include "app/export/kineto_work.h"
#include "app/export/output_file.h"
#include "app/export/span_walk.h"
#include "app/store/database.h"
#include "app/store/gap_text.h"
#include "app/store/gather_contents.h"
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

constexpr std::int64_t kPushPopRange = 59;  ///< eventType NvtxPushPopRange of an Nsight Systems export

// The first six tables carry the names and the columns that Nsight Systems gives them; the rest are ours.
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

/// copyKind as CUPTI numbers it.
std::int64_t copy_kind(ev::GpuWork work) {
  switch (work) {
    case ev::GpuWork::host_to_device:
      return 1;
    case ev::GpuWork::device_to_host:
      return 2;
    case ev::GpuWork::device_to_device:
      return 8;
    case ev::GpuWork::peer_to_peer:
      return 10;
    default:
      return 0;  // unknown
  }
}

class Tables {
 public:
  Tables(Database& database, const Store& store, const ExportPart& part)
      : db_(database), store_(store), part_(part) {}

  void write() {
    environment();
    add_string_ = db_.prepare("INSERT INTO StringIds VALUES(?1, ?2)");
    range_ = db_.prepare("INSERT INTO NVTX_EVENTS VALUES(?1, ?2, ?3, NULL, NULL, NULL, ?4, ?5, ?5, NULL, 0)");
    kernel_ = db_.prepare("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(?1, ?2, ?3, 1, ?4, ?5, ?6, ?7, ?7)");
    copy_ = db_.prepare("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES(?1, ?2, ?3, 1, ?4, ?5, ?6, ?7, ?8)");
    collective_ = db_.prepare(
        "INSERT INTO SHARDSCOPE_COLLECTIVES VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)");
    std::uint32_t rank = ev::kNoId;
    for (const store::LaneId lane : store_.lanes()) {
      if (!part_.has_rank(lane.rank)) continue;
      if (lane.rank != rank) {
        params_ = params_of(store_, lane.rank, part_);
        computation(lane.rank);
      }
      rank = lane.rank;
      walk_part(store_, lane, part_, [&](const WalkedSpan& walked) { span(lane, walked); });
    }
    ranks();
    steps();
    params();
    instants();
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

  std::int64_t string_id(const std::string& text) {
    const auto [entry, added] = strings_.try_emplace(text, static_cast<std::int64_t>(strings_.size()));
    if (added) add_string_.bind(1, entry->second).bind(2, text).run();
    return entry->second;
  }

  /// As Nsight Systems composes them: hardware and virtual machine 0, process in bits 24 up, thread below.
  static std::int64_t global_pid(std::uint32_t rank) { return (static_cast<std::int64_t>(rank) + 1) << 24; }

  /// Kernels of a rank whose GPU was not recorded: within a step all of its computation, by what was
  /// innermost then. A module's own work beside that of the modules in it is computation too.
  void computation(std::uint32_t rank) {
    std::vector<analysis::Interval> known;
    const TimeRange range = part_.of(rank);
    store_.for_each_span(
        {rank, ev::StreamId::host}, 0, range.from_ns, range.to_ns, [&](const store::Span& step) {
          if (step.kind != ev::EventKind::step_begin) return;
          const analysis::StepWindow window{ev::as<ev::EventKind::step_begin>(step).step, step.begin_ns,
                                            store::time_of(store_, rank, step).until_ns};
          const StepWork of_step = work_of_step(store_, rank, window, InnerEdges::exact);
          if (!of_step.known) return;
          known.push_back({window.begin_ns, window.end_ns});
          for (const DeviceWork& work : of_step.work) {
            // What a GPU recorded has a row of its own.
            if (work.kind != WorkClass::compute || (work.span && work.span->kind == ev::EventKind::gpu_begin))
              continue;
            const ev::EventKind shown = work.span ? work.span->kind : ev::EventKind::module_begin;
            if (!part_.has_kind(shown) || !range.overlaps(work.begin_ns, work.end_ns)) continue;
            kernel_row(rank, work.stream, work.begin_ns, work.end_ns,
                       work.span ? subject(*work.span) : ev::kNoId,
                       work.span ? span_label(store_, rank, *work.span) : work.name);
          }
        });
    in_steps_ = analysis::IntervalSet(std::move(known));
  }

  /// What a kernel's row is of: the id of its module, its sub-group or, of a kernel, its name; of a
  /// collective its sequence.
  static std::uint32_t subject(const store::Span& s) {
    if (s.kind == ev::EventKind::module_begin) return ev::as<ev::EventKind::module_begin>(s).module;
    if (s.kind == ev::EventKind::optimizer_begin) return ev::as<ev::EventKind::optimizer_begin>(s).sub_group;
    if (s.kind == ev::EventKind::gpu_begin) return ev::as<ev::EventKind::gpu_begin>(s).name;
    if (s.kind == ev::EventKind::kernel_begin) return ev::as<ev::EventKind::kernel_begin>(s).name;
    if (s.kind == ev::EventKind::collective_begin) return ev::as<ev::EventKind::collective_begin>(s).sequence;
    return ev::kNoId;
  }

  static bool is_computation(ev::EventKind kind) {
    return kind == ev::EventKind::module_begin || kind == ev::EventKind::optimizer_begin ||
           kind == ev::EventKind::kernel_begin;
  }

  /// Whether computation() has the row of what begins there.
  [[nodiscard]] bool in_known_step(std::int64_t at_ns) const {
    const auto& all = in_steps_.intervals();
    const auto after = std::ranges::upper_bound(all, at_ns, {}, &analysis::Interval::begin);
    return after != all.begin() && at_ns < std::prev(after)->end;
  }

  void kernel_row(std::uint32_t rank, ev::StreamId stream, std::int64_t begin_ns, std::int64_t end_ns,
                  std::uint32_t correlation, const std::string& name) {
    kernel_.bind(1, begin_ns).bind(2, end_ns).bind(3, std::int64_t{rank});
    kernel_.bind(4, static_cast<std::int64_t>(stream) + 1);
    bind_id(kernel_, 5, correlation);
    kernel_.bind(6, global_pid(rank)).bind(7, string_id(name)).run();
  }

  void span(store::LaneId lane, const WalkedSpan& walked) {
    const store::Span& s = *walked.span;
    const std::string label = span_label(store_, lane.rank, s);
    const auto stream = static_cast<std::int64_t>(lane.stream) + 1;
    if (s.kind == ev::EventKind::collective_begin) {
      const auto fields = ev::as<ev::EventKind::collective_begin>(s);
      collective_.bind(1, std::int64_t{lane.rank})
          .bind(2, std::int64_t{fields.sequence})
          .bind(3, label)
          .bind(4, s.begin_ns);
      bind_end(collective_, 5, walked);
      const auto moved = params_.find(fields.sequence);
      collective_.bind(9,
                       moved == params_.end() ? std::string() : store::contents_text(store_, moved->second));
      bind_where(collective_, 6, s.mark_ns, s.mark_ns != 0);
      collective_.bind(7, fields.elems).bind(8, fields.bytes);
      const ev::GroupInfo* const group = analysis::group_of(store_, lane.rank, s);
      const bool of_all = fields.code.group() == ev::kNoId;  // numbered with those of all ranks
      if (group != nullptr) {
        collective_.bind(10, group->name).bind(11, fmt::format("{}", fmt::join(group->ranks, ",")));
      } else {
        collective_.bind(10, store::StepRow::NAN_).bind(11, store::StepRow::NAN_);
      }
      bind_where(collective_, 12, of_all ? fields.sequence : ev::number_in_group(fields.sequence),
                 of_all || group != nullptr);
      collective_.run();
    }
    if (s.kind == ev::EventKind::transfer_begin && walked.is_work) {
      const auto fields = ev::as<ev::EventKind::transfer_begin>(s);
      copy_.bind(1, s.begin_ns).bind(2, walked.end_ns).bind(3, std::int64_t{lane.rank}).bind(4, stream);
      bind_id(copy_, 5, fields.param);
      copy_.bind(6, global_pid(lane.rank)).bind(7, fields.bytes);
      const ev::TransferKind kind = fields.transfer;
      const bool up = kind == ev::TransferKind::host_to_device || kind == ev::TransferKind::input_to_device;
      copy_.bind(8, std::int64_t{up ? 1 : 2}).run();  // 1: host to device, 2: device to host
      return;
    }
    const auto gpu = ev::as<ev::EventKind::gpu_begin>(s);
    if (s.kind == ev::EventKind::gpu_begin && gpu.work != ev::GpuWork::kernel &&
        gpu.work != ev::GpuWork::memset) {
      copy_.bind(1, s.begin_ns).bind(2, walked.end_ns).bind(3, std::int64_t{lane.rank}).bind(4, stream);
      copy_.bind(5, std::int64_t{gpu.name}).bind(6, global_pid(lane.rank)).bind(7, gpu.amount);
      copy_.bind(8, copy_kind(gpu.work)).run();
      return;
    }
    const bool is_kernel = s.kind == ev::EventKind::collective_begin || s.kind == ev::EventKind::gpu_begin;
    if (walked.is_work && !(is_computation(s.kind) && in_known_step(s.begin_ns)))
      kernel_row(lane.rank, lane.stream, s.begin_ns, walked.end_ns, subject(s),
                 s.kind == ev::EventKind::collective_begin ? "nccl:" + label : label);
    if (walked.is_work && is_kernel) return;
    bind_end(range_, 2, walked);
    range_.bind(1, s.begin_ns).bind(3, kPushPopRange).bind(4, label);
    range_.bind(5, global_pid(lane.rank) + stream).run();
  }

  /// NULL where there is none.
  static void bind_id(Statement& insert, int column, std::uint32_t id) {
    bind_where(insert, column, id, id != ev::kNoId);
  }
  /// NULL where it is not known.
  static void bind_where(Statement& insert, int column, std::int64_t value, bool known) {
    if (known) {
      insert.bind(column, value);
    } else {
      insert.bind(column, store::StepRow::NAN_);
    }
  }

  /// NULL where it has not ended. Kernels and copies need a number: how far they are known to have gone on.
  static void bind_end(Statement& insert, int column, const WalkedSpan& walked) {
    bind_where(insert, column, walked.end_ns, walked.time.ended);
  }

  void ranks() {
    Statement row = db_.prepare("INSERT INTO SHARDSCOPE_RANKS VALUES(?1,?2,?3,?4,?5)");
    Statement insert = db_.prepare("INSERT INTO SHARDSCOPE_PAUSES VALUES(?1,?2,?3)");
    for (const store::RankRow& rank : store_.ranks()) {
      if (!part_.has_rank(rank.rank)) continue;
      row.bind(1, std::int64_t{rank.rank}).bind(2, rank.host).bind(3, rank.last_ns);
      row.bind(4, store::text_of(store::rank_end(store_, rank))).bind(5, rank.exit_message).run();
      const TimeRange range = part_.of(rank.rank);
      store_.for_each_span(
          {rank.rank, ev::StreamId::host}, store::kPauses, range.from_ns, range.to_ns,
          [&](const store::Span& pause) {
            insert.bind(1, std::int64_t{rank.rank}).bind(2, pause.begin_ns);
            bind_end(
                insert, 3,
                {.span = &pause, .end_ns = pause.end_ns, .time = store::time_of(store_, rank.rank, pause)});
            insert.run();
          });
    }
  }

  void steps() {
    std::string columns, places = "?1,?2,?3,?4,?5,?6";  // and one for each value
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
    if (!part_.whole()) {  // figures of all measured steps: a part has none
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
  std::unordered_map<std::string, std::int64_t> strings_;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> params_;  ///< by collective, of one rank
  analysis::IntervalSet in_steps_;  ///< steps of that rank of which computation() has written the kernels
  Statement add_string_, range_, kernel_, copy_, collective_;
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
    database.execute("PRAGMA journal_mode = OFF");  // a file that is not finished is thrown away
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
