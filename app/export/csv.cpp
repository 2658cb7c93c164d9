#include "app/export/csv.h"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <limits>
#include <stdexcept>
#include <unordered_map>

#include "app/analysis/digest.h"
#include "app/analysis/summary.h"
#include "app/export/counter_samples.h"
#include "app/export/output_file.h"
#include "app/export/span_walk.h"
#include "app/store/gap_text.h"
#include "app/store/gather_contents.h"
#include "app/store/names.h"
#include "app/store/rank_end.h"
#include "instrumentation/param_status.h"

namespace shardscope::exporter {
namespace {

namespace ev = shardscope::instrumentation;
using store::Store;

/// One CSV file: a header, then rows, cell by cell. A missing value is an empty cell, never a zero.
class Table {
 public:
  Table(const std::filesystem::path& path, std::string_view header) : file_(path.string()) {
    text_ += header;
    text_ += "\r\n";
  }
  Table& cell(std::string_view value) {
    separate();
    // A spreadsheet would evaluate a name that begins like a formula: quote it as text.
    const bool formula =
        !value.empty() && std::string_view("=+-@\t\r").find(value.front()) != std::string_view::npos;
    std::string quoted;
    if (formula) value = quoted = "'" + std::string(value);
    if (value.find_first_of("\",\r\n") == std::string_view::npos) {
      text_ += value;
      return *this;
    }
    text_ += '"';
    for (const char c : value) {
      if (c == '"') text_ += '"';
      text_ += c;
    }
    text_ += '"';
    return *this;
  }
  Table& cell(std::int64_t value) {
    separate();
    text_ += std::to_string(value);
    return *this;
  }
  Table& id(std::uint32_t value) {
    return value == ev::kNoId ? cell(std::string_view()) : cell(std::int64_t{value});
  }
  Table& time(std::int64_t ns) { return ns == store::kOpen ? cell(std::string_view()) : cell(ns); }
  Table& cell(double value) {
    if (!std::isfinite(value)) return cell(std::string_view());
    separate();
    char text[40];
    const auto end = std::to_chars(text, text + sizeof text, value);
    text_.append(text, end.ptr);
    return *this;
  }
  void end_row() {
    text_ += "\r\n";
    first_ = true;
    if (text_.size() > 1U << 16) flush();
  }
  void commit() {
    flush();
    file_.commit();
  }

 private:
  void separate() {
    if (!first_) text_ += ',';
    first_ = false;
  }
  void flush() {
    file_.stream().write(text_.data(), static_cast<std::streamsize>(text_.size()));
    text_.clear();
  }
  OutputFile file_;
  std::string text_;
  bool first_ = true;
};

void write_spans(Table& t, const Store& store, const ExportPart& part) {
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> params;
  std::uint32_t rank = ev::kNoId;
  for (const store::LaneId lane : store.lanes()) {
    if (lane.rank != rank) params = params_of(store, lane.rank, part);
    rank = lane.rank;
    walk_part(store, lane, part, [&](const WalkedSpan& walked) {
      const store::Span& s = *walked.span;
      t.cell(std::int64_t{lane.rank}).cell(store::name_of(lane.stream)).cell(std::int64_t{s.depth});
      t.cell(ev::name_of(s.kind)).cell(span_label(store, lane.rank, s)).cell(std::int64_t{s.code});
      t.cell(s.begin_ns).time(s.end_ns);
      t.time(walked.time.ended ? walked.time.running_ns : store::kOpen);
      t.time(s.mark_ns == 0 ? store::kOpen : s.mark_ns);
      t.id(s.a).id(s.b).id(s.c).cell(s.v0).cell(s.v1).cell(walked.time.paused_ns);
      t.time(walked.time.ended ? store::kOpen : walked.time.until_ns);
      const auto moved = s.kind == ev::EventKind::collective_begin
                             ? params.find(ev::as<ev::EventKind::collective_begin>(s).sequence)
                             : params.end();
      t.cell(moved == params.end() ? std::string() : store::contents_text(store, moved->second)).end_row();
    });
  }
}

void write_steps(Table& t, const Store& store, const ExportPart& part) {
  for (const store::StepRow& s : store.steps()) {
    if (!part.has(s)) continue;
    t.cell(std::int64_t{s.step}).time(s.begin_ns).time(s.end_ns).cell(s.paused_ns).cell(s.tokens);
    store::for_each_step_column([&](const store::StepValue& value) { t.cell(s.*value.member); },
                                [&] { t.cell(std::int64_t{s.skipped}); });
    t.end_row();
  }
}

std::string step_columns() {
  std::string columns;
  store::for_each_step_column(
      [&](const store::StepValue& value) { columns += std::string(",") + value.name(); },
      [&] { columns += ",skipped"; });
  return columns;
}

void write_ranks(Table& t, const Store& store, const ExportPart& part) {
  constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
  for (const store::RankRow& r : store.ranks()) {
    if (!part.has_rank(r.rank)) continue;
    t.cell(std::int64_t{r.rank}).cell(r.host).cell(std::int64_t{r.pid}).cell(std::int64_t{r.finished});
    t.cell(std::int64_t{r.exit_code})
        .cell(static_cast<std::int64_t>(r.events))
        .cell(static_cast<std::int64_t>(r.dropped));
    t.cell(static_cast<std::int64_t>(r.lost_messages))
        .cell(r.clock_offset_ns)
        .cell(r.largest_clock_residual_ns)
        .cell(std::int64_t{store.has_tables() && store.tables().simulated})
        .cell(r.clock_drift ? r.clock_drift->ppb : kMissing)
        .cell(r.clock_drift ? r.clock_drift->bound_ppb : kMissing)
        .cell(r.last_ns)
        .cell(store::text_of(store::rank_end(store, r)))
        .end_row();
  }
}

void write_params(Table& t, const Store& store, const ExportPart& /*part*/) {
  for (const ev::ParamInfo& p : store.tables().params) {
    std::string shape;
    for (const std::int64_t dim : p.shape) shape += (shape.empty() ? "" : "x") + std::to_string(dim);
    t.cell(std::int64_t{p.id}).cell(p.name).cell(p.dtype).cell(shape).cell(p.elems).cell(p.shard_elems);
    t.cell(p.padding_elems).cell(std::int64_t{p.persistent}).cell(std::int64_t{p.frozen}).end_row();
  }
}

void write_modules(Table& t, const Store& store, const ExportPart& /*part*/) {
  for (const ev::ModuleInfo& m : store.tables().modules) {
    std::string params;
    for (const std::uint32_t p : m.params) params += (params.empty() ? "" : " ") + std::to_string(p);
    t.cell(std::int64_t{m.id}).id(m.parent).cell(m.path).cell(m.type).cell(params).end_row();
  }
}

void write_slices(Table& t, const Store& store, const ExportPart& part) {
  for (const ev::SliceInfo& s : store.tables().slices) {
    if (!part.has_rank(s.rank)) continue;
    t.cell(std::int64_t{s.param}).cell(std::int64_t{s.rank}).cell(s.param_offset).cell(s.shard_offset);
    t.cell(s.elems).cell(s.padding_elems).cell(s.block_elems).cell(s.stride_elems).end_row();
  }
}

void write_status(Table& t, const Store& store, const ExportPart& part) {
  for (const store::RankRow& rank : store.ranks()) {
    for_each_status_before(store, rank.rank, part, [&](std::uint32_t param, const store::ParamState& state) {
      t.cell(std::int64_t{rank.rank}).cell(state.since_ns).id(param);
      t.cell(store::status_name(state.status)).cell(store::name_of(state.cause));
      t.id(state.module).id(state.gather).cell(std::string_view()).end_row();
    });
    for_each_instant(store, rank.rank, part, [&](const ev::Event& e) {
      if (e.kind != ev::EventKind::param_status) return;
      const auto change = ev::as<ev::EventKind::param_status>(e);
      t.cell(std::int64_t{rank.rank}).cell(static_cast<std::int64_t>(e.ticks)).id(change.param);
      t.cell(store::status_name(ev::status_of(change.status.bits))).cell(store::name_of(change.cause));
      t.id(change.module).id(change.gather).cell(change.elems).end_row();
    });
  }
}

void write_memory(Table& t, const Store& store, const ExportPart& part) {
  for (const store::RankRow& rank : store.ranks()) {
    for_each_memory_before(
        store, rank.rank, part, [&](ev::MemoryPool pool, ev::MemoryCategory category, std::int64_t bytes) {
          t.cell(std::int64_t{rank.rank}).cell(part.of(rank.rank).from_ns).cell(store::name_of(pool));
          t.cell(store::name_of(category)).cell(bytes);
          t.cell(std::string_view()).cell(std::string_view()).end_row();
        });
    for_each_instant(store, rank.rank, part, [&](const ev::Event& e) {
      if (e.kind != ev::EventKind::memory_alloc && e.kind != ev::EventKind::memory_free) return;
      t.cell(std::int64_t{rank.rank}).cell(static_cast<std::int64_t>(e.ticks));
      const auto memory = ev::as<ev::EventKind::memory_alloc>(e);
      t.cell(store::name_of(memory.pool)).cell(store::name_of(memory.category));
      t.cell(e.kind == ev::EventKind::memory_alloc ? memory.bytes : -memory.bytes);
      t.cell(memory.pool_bytes).id(memory.owner).end_row();
    });
  }
}

void write_events(Table& t, const Store& store, const ExportPart& part) {
  for (const store::RankRow& rank : store.ranks()) {
    for_each_instant(store, rank.rank, part, [&](const ev::Event& e) {
      t.cell(std::int64_t{rank.rank}).cell(static_cast<std::int64_t>(e.ticks)).cell(ev::name_of(e.kind));
      t.cell(store::name_of(e.stream))
          .cell(std::int64_t{e.code})
          .id(e.a)
          .id(e.b)
          .id(e.c)
          .cell(e.v0)
          .cell(e.v1)
          .end_row();
    });
  }
}

void write_messages(Table& t, const Store& store, const ExportPart& part) {
  for (const store::Message& m : store.messages()) {
    if (!part.has(m)) continue;
    t.cell(m.at_ns).cell(std::int64_t{m.rank}).cell(store::name_of(m.severity)).cell(m.text).end_row();
  }
}

void write_gaps(Table& t, const Store& store, const ExportPart& part) {
  for (const store::Gap& g : store.gaps()) {
    if (!part.has(g)) continue;
    t.cell(std::int64_t{g.rank}).cell(g.begin_ns).cell(g.end_ns);
    if (g.events > 0) {
      t.cell(static_cast<std::int64_t>(g.events));
    } else {
      t.cell(std::string_view());  // number unknown
    }
    t.cell(static_cast<std::int64_t>(g.shed)).cell(static_cast<std::int64_t>(g.messages));
    t.cell(store::what_is_missing(g)).end_row();
  }
}

void write_counters(Table& t, const Store& store, const ExportPart& part) {
  for (const store::RankRow& rank : store.ranks()) {
    if (!part.has_rank(rank.rank)) continue;
    for_each_counter_sample(
        store, rank.rank, part,
        [&](const analysis::CounterSeries& series, const analysis::CounterSample& sample) {
          t.cell(std::int64_t{rank.rank}).cell(series.name).cell(series.unit);
          t.cell(sample.at_ns);
          if (sample.until_ns == analysis::CounterSample::kUntilNext) {
            t.cell(std::string_view());
          } else {
            t.cell(sample.until_ns);
          }
          t.cell(sample.value).end_row();
        });
  }
}

void write_times(Table& t, const analysis::Digest& digest, const ExportPart& part) {
  constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
  for (const analysis::StepDigest& step : digest.steps()) {
    for (const analysis::RankStep& rank : step.ranks) {
      if (!part.has(step.step, rank)) continue;
      const analysis::TimePartition& time = rank.time;
      t.cell(std::int64_t{step.step}).cell(std::int64_t{rank.rank}).cell(rank.begin_ns).cell(rank.end_ns);
      t.cell(time.total_ns).cell(time.checkpoint_ns);
      for (const std::int64_t share :
           {time.compute_ns, time.exposed_comm_ns, time.exposed_copy_ns, time.idle_ns}) {
        if (time.known()) {
          t.cell(share);
        } else {
          t.cell(kMissing);
        }
      }
      t.cell(time.unrecorded_ns).cell(std::int64_t{rank.recorded.events_missing}).end_row();
    }
  }
}

void write_bandwidths(Table& t, const Store& store, const analysis::Digest& digest) {
  constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
  const analysis::Summary summary = analysis::summarize(store, digest);
  for (const analysis::OpRow& op : summary.ops) {
    t.cell(store::name_of(op.op)).cell(static_cast<std::int64_t>(op.count)).cell(op.bytes).cell(op.elems);
    t.cell(std::int64_t{summary.ops_steps}).cell(std::int64_t{summary.steps_measured});
    for (const std::optional<double>& value :
         {op.algbw_gbs, op.busbw_gbs, op.algbw_waiting_gbs, op.busbw_waiting_gbs}) {
      t.cell(value.value_or(kMissing));
    }
    t.end_row();
  }
}

struct CsvTable {
  const char* file;
  const char* header;
  void (*write)(Table&, const Store&, const ExportPart&);
  std::string (*more_columns)() = nullptr;
};
constexpr CsvTable kCsvTables[] = {
    {"spans.csv",
     "rank,stream,depth,kind,label,code,begin_ns,end_ns,duration_ns,all_ranks_arrived_ns,a,b,c,v0,v1,"
     "paused_ns,open_until_ns,holds",
     write_spans},
    {"steps.csv", "step,begin_ns,end_ns,paused_ns,tokens", write_steps, step_columns},
    {"ranks.csv",
     "rank,host,pid,finished,exit_code,events,dropped,lost_messages,clock_offset_ns,clock_residual_ns,"
     "simulated,clock_drift_ppb,clock_drift_bound_ppb,last_event_ns,state",
     write_ranks},
    {"params.csv", "param,name,dtype,shape,elems,shard_elems,padding_elems,persistent,frozen", write_params},
    {"modules.csv", "module,parent,path,type,params", write_modules},
    {"slices.csv", "param,rank,param_offset,shard_offset,elems,padding_elems,block_elems,stride_elems",
     write_slices},
    {"status.csv", "rank,at_ns,param,status,cause,module,gather,elems", write_status},
    {"memory.csv", "rank,at_ns,pool,category,delta_bytes,pool_bytes_after,owner", write_memory},
    {"counters.csv", "rank,name,unit,at_ns,until_ns,value", write_counters},
    {"events.csv", "rank,at_ns,kind,stream,code,a,b,c,v0,v1", write_events},
    {"messages.csv", "at_ns,rank,severity,text", write_messages},
    {"gaps.csv", "rank,begin_ns,end_ns,events,shed,messages,reason", write_gaps},
};
/// Figures over all measured steps: not written for a part.
constexpr const char* kBandwidths = "bandwidths.csv";
constexpr const char* kTimeColumns =
    "step,rank,begin_ns,end_ns,total_ns,checkpoint_ns,compute_ns,exposed_comm_ns,exposed_copy_ns,idle_ns,"
    "unrecorded_ns,events_missing";
constexpr const char* kBandwidthColumns =
    "op,count,bytes,elems,steps,steps_measured,algbw_gbs,busbw_gbs,algbw_waiting_gbs,busbw_waiting_gbs";

}  // namespace

std::vector<std::string> write_csv(const std::string& folder, const Store& store, const ExportPart& part) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw std::runtime_error(folder + ": cannot make the folder: " + error.message());
  if (!part.whole() && std::filesystem::exists(std::filesystem::path(folder) / kBandwidths))
    throw std::runtime_error(
        folder + ": holds " + kBandwidths +
        " of a whole run, which would be read with this part: remove it or choose another folder");
  std::vector<std::string> paths;
  const auto write = [&](const char* file, const std::string& header, const auto& rows) {
    const std::filesystem::path path = std::filesystem::path(folder) / file;
    Table table(path, header);
    rows(table);
    table.commit();
    paths.push_back(path.string());
  };
  for (const CsvTable& page : kCsvTables) {
    write(page.file, page.header + (page.more_columns != nullptr ? page.more_columns() : std::string()),
          [&](Table& table) { page.write(table, store, part); });
  }
  // Step times and bandwidths are computed in one pass over the steps.
  const analysis::Digest digest = analysis::digest_of(store);
  write("step_times.csv", kTimeColumns, [&](Table& table) { write_times(table, digest, part); });
  if (part.whole())
    write(kBandwidths, kBandwidthColumns, [&](Table& table) { write_bandwidths(table, store, digest); });
  return paths;
}

}  // namespace shardscope::exporter
