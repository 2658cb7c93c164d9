#include "app/gui/model/trace_info.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "app/analysis/framework_json.h"
#include "app/analysis/kept.h"
#include "app/gui/model/app_state.h"
#include "app/gui/model/clock_bound.h"
#include "app/gui/model/connection_facts.h"
#include "app/gui/model/format.h"
#include "app/gui/model/identity.h"
#include "app/gui/model/rank_groups.h"
#include "app/store/losses.h"
#include "app/store/span_time.h"
#include "app/store/wall_clock.h"

namespace shardscope::gui {
namespace {

class Rows {
 public:
  Rows() { table.columns = {{"what", 0.9F}, {"value", 1.4F}, {"note", 1.7F}}; }
  void section(const std::string& name) { section_ = name; }
  void add(const std::string& what, std::string value, const std::string& note = {},
           Tone tone = Tone::normal) {
    if (value.empty()) return;
    const std::string label = section_.empty() ? what : section_ + ": " + what;
    table.add({{label, {}, Tone::muted, {}, ""},
               {std::move(value), {}, tone, {}, ""},
               {note, {}, Tone::muted, {}, ""}});
  }
  Table table;

 private:
  std::string section_;
};

std::string day_and_time(std::int64_t unix_ns) {
  const auto when = static_cast<std::time_t>(unix_ns / 1'000'000'000);
  std::tm local{};
  char text[48] = "";
  if (localtime_r(&when, &local) != nullptr) std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %Z", &local);
  return text;
}

std::string listed(const std::set<std::string>& names, std::size_t most) {
  std::string out;
  std::size_t shown = 0;
  for (const std::string& name : names) {
    if (shown == most) return out + " and " + std::to_string(names.size() - most) + " more";
    out += (shown++ == 0 ? "" : ", ") + name;
  }
  return out;
}

void add_program(const AppState& app, Rows& rows) {
  const store::Store& store = app.store();
  if (!store.has_tables()) return;
  const ev::RunTables& tables = store.tables();
  const Identity who = identify(store);
  std::string facts;
  for (const std::string& fact : who.facts) facts += (facts.empty() ? "" : ", ") + fact;
  rows.add("model", who.model, facts);
  rows.add("elements", grouped(tables.elems),
           std::to_string(tables.params.size()) + " parameters, " + std::to_string(tables.modules.size()) +
               " modules");
  rows.add("framework", tables.framework.empty() ? "not given" : tables.framework);
  rows.add("versions", tables.versions);
  rows.add("device", tables.device, tables.hardware);
  rows.add("link", who.link);
  std::set<std::string> hosts;
  for (const store::RankRow& rank : store.ranks()) {
    const ev::RunTables* own = store.rank_tables(rank.rank);
    const std::string& host = !rank.host.empty() || own == nullptr ? rank.host : own->host;
    if (!host.empty()) hosts.insert(host);
  }
  rows.add("hosts", listed(hosts, 8), hosts.size() > 1 ? std::to_string(hosts.size()) + " hosts" : "");
  rows.add("ranks", std::to_string(store.ranks().size()) + " of " + std::to_string(tables.world) +
                        " have sent events");
  rows.add("run", tables.run_id);
}

/// One row per reason: what the framework's hooks do not record.
void add_lacks(const store::Store& store, Rows& rows) {
  if (!store.has_tables()) return;
  for (const ev::NotRecorded& lack : store.tables().not_recorded) {
    std::string names;
    for (const nlohmann::json& name : analysis::capability_names(lack.what))
      names += (names.empty() ? "" : ", ") + name.get<std::string>();
    std::ranges::replace(names, '_', ' ');
    rows.add("not recorded", names, lack.why);
  }
}

void add_time(const AppState& app, Rows& rows) {
  const store::Store& store = app.store();
  if (app.run->recorded()) {
    std::optional<std::int64_t> offset;
    try {
      offset = store::unix_offset_ns(app.run->source());
    } catch (const std::exception&) {  // reported when the file was opened
      offset.reset();
    }
    rows.add("recorded", offset ? day_and_time(store.origin_ns() + *offset) : "not known",
             offset ? "by the recorder's wall clock" : "the recording has no wall clock");
  }
  rows.add("length", duration(store.end_ns()).text(), "first event to last");
  const auto steps = store.steps();
  if (!steps.empty())
    rows.add("steps", grouped(static_cast<std::int64_t>(steps.size())),
             std::to_string(steps.front().step) + " to " + std::to_string(steps.back().step));
  if (const auto detail = store.recorded_detail()) rows.add("detail", ev::name_of(*detail));
  const ClockBound bound = clock_bound(app);
  rows.add("clock", "\u00b1" + duration(bound.in_run_ns).text(),
           "bound on the error of a rank's times; \u00b1" + duration(bound.in_view_ns).text() +
               " in the range shown");
}

void add_losses(const store::Store& store, Rows& rows) {
  const store::Losses losses = store::losses_of(store);
  rows.add("events", grouped(static_cast<std::int64_t>(store.event_count())));
  rows.add("lost", store::text_of(losses), "events missing from the figures",
           losses.any() ? Tone::bad : Tone::normal);
  const store::Store::Evicted evicted = store.evicted();
  if (evicted.events > 0)
    rows.add("evicted", grouped(static_cast<std::int64_t>(evicted.events)) + " events",
             "from this window's memory; a recording has them");
  const store::Store::NotKept& gone = store.not_kept();
  if (gone.events > 0)
    rows.add("not kept", grouped(static_cast<std::int64_t>(gone.events)) + " events",
             "because of the recorder's limits; their sums are kept");
}

void add_memory(const AppState& app, Rows& rows) {
  const store::Store& store = app.store();
  const std::size_t cache = store.cache_bytes();
  const std::size_t all = store.resident_bytes();
  const auto text = [](std::size_t value) { return bytes(static_cast<std::int64_t>(value)).text(); };
  rows.section("memory");
  rows.add("store", text(all), "of this window");
  rows.add("blocks read", text(cache), "a bounded cache; blocks are read again when shown");
  rows.add("events and levels of detail", text(all - std::min(all, cache)),
           "newest events of each rank, and the summary of each block");
  rows.add("hits of Find", text(app.find.search.hits() * sizeof(SpanHit)));
  if (const auto& bounds = store.bounds())
    rows.add("bounds", text(bounds->packed_bytes) + " in memory, " + text(bounds->file_bytes) + " on disk",
             "for older events of a live run; over them, the oldest are evicted");
  rows.section({});
}

/// "1 203 441 events, 45.0 MiB, 195 MiB/s"
std::string load_rate(const store::RecordingInfo& info, std::chrono::nanoseconds time) {
  const double seconds = std::max(std::chrono::duration<double>(time).count(), 1e-9);
  return grouped(static_cast<std::int64_t>(info.events)) + " events, " +
         bytes(static_cast<std::int64_t>(info.file_bytes)).text() + ", " +
         bytes(std::llround(static_cast<double>(info.file_bytes) / seconds)).text() + "/s";
}

void add_load(const Session& run, Rows& rows) {
  const auto load = run.load_time();
  // Pictures of a recording must be reproducible: no times.
  if (!load || !run.in_window()) return;
  rows.section("load");
  rows.add("opened in", duration(load->opened.count()).text(),
           "until it could be drawn; blocks are read when shown");
  const Analysis& analysis = *run.analysis();
  if (const std::string none = no_analysis(analysis); !none.empty()) {
    rows.add("analysed in", kMissing, none, analysis.failed ? Tone::bad : Tone::normal);
  } else {
    rows.add("analysed in", duration(load->analysed.count()).text(), "after it was opened");
    rows.add("rate", load_rate(*run.info(), load->analysed), "file size / time of its analysis");
  }
  rows.section({});
}

void add_file(const Session& run, Rows& rows) {
  const auto& info = run.info();
  if (!info) return;
  rows.section("file");
  rows.add("path", info->path);
  rows.add("size", bytes(static_cast<std::int64_t>(info->file_bytes)).text(),
           info->events > 0 ? decimal(static_cast<double>(info->file_bytes) /
                                          static_cast<double>(std::max<std::uint64_t>(1, info->events)),
                                      1) +
                                  " bytes per event"
                            : "");
  rows.add("format", std::to_string(info->format_version));
  rows.add("whole", info->complete ? "yes" : "no: the recorder did not finish it", "",
           info->complete ? Tone::normal : Tone::warning);
  const store::Retention& limits = info->limits;
  if (!limits.limited()) {
    rows.add("keeps", "everything");
  } else {
    std::string text;
    if (limits.max_age_ns > 0) text = "the newest " + duration(limits.max_age_ns).text();
    if (limits.max_bytes > 0)
      text += (text.empty() ? "" : ", ") + bytes(static_cast<std::int64_t>(limits.max_bytes)).text();
    rows.add("keeps", text, "at full detail; sums of older events");
  }
  for (const std::string& problem : info->problems) rows.add("problem", problem, "", Tone::bad);
  rows.section({});
}

constexpr const char* kMoment = "moment";

/// One row per moment; a click goes there.
void add_moments(const store::Store& store, Rows& rows) {
  constexpr std::size_t kMost = 50;
  const auto moments = store.moments();
  for (const store::Moment& moment : moments.first(std::min(kMost, moments.size())))
    rows.add(kMoment, analysis::text_of(moment),
             "kept: " + duration(moment.end_ns - moment.begin_ns).text() + " around it. Click to go there",
             Tone::accent);
  if (moments.size() > kMost)
    rows.add("", std::to_string(moments.size() - kMost) + " more moments", "`shardscope info` lists all");
}

/// Notes without a time describe the recording: the first is its description.
void add_description(const AppState& app, Rows& rows) {
  const auto notes = app.notes.notes();
  if (!notes.empty()) rows.add("notes", std::to_string(notes.size()), notes.front().text);
}

}  // namespace

Table trace_table(const AppState& app) {
  Rows rows;
  rows.add("source", app.run->source(), link_text(*app.run));
  add_program(app, rows);
  add_time(app, rows);
  add_losses(app.store(), rows);
  add_lacks(app.store(), rows);
  add_memory(app, rows);
  add_file(*app.run, rows);
  add_moments(app.store(), rows);
  add_load(*app.run, rows);
  add_description(app, rows);
  return std::move(rows.table);
}

std::optional<std::size_t> moment_of(const Table& facts, std::size_t row) {
  const auto is_moment = [](const std::vector<Cell>& cells) { return cells.front().text == kMoment; };
  if (row >= facts.rows.size() || !is_moment(facts.rows[row])) return std::nullopt;
  const auto at = facts.rows.begin() + static_cast<std::ptrdiff_t>(row);
  return static_cast<std::size_t>(std::count_if(facts.rows.begin(), at, is_moment));
}

std::string no_analysis(const Analysis& analysis) {
  if (analysis.failed) return analysis.problems.empty() ? "not analysed" : analysis.problems.back();
  return analysis.whole ? "" : "analysis is running";
}

std::optional<LoadText> load_text(const Session& run) {
  const auto load = run.load_time();
  if (!load || load->analysed.count() == 0) return std::nullopt;
  const std::chrono::nanoseconds all = load->opened + load->analysed;
  return LoadText{"loaded in " + duration(all.count()).text(),
                  "Opened in " + duration(load->opened.count()).text() + ", wholly analysed in " +
                      duration(load->analysed.count()).text() + " more. " + load_rate(*run.info(), all) +
                      " (file size / time of both)"};
}

Table event_counts(const Session& run) {
  const store::Store& store = run.store();
  std::map<std::string_view, std::uint64_t> counts;
  // A completed span counts once, although it has two events.
  for (const store::SpanTotal& total : store.span_totals())
    counts[ev::name_of(total.kind)] += static_cast<std::uint64_t>(total.count);
  for (std::size_t number = 1; number < ev::kKindRows.size(); ++number) {
    const auto kind = static_cast<ev::EventKind>(number);
    if (ev::row_of(kind).shape != ev::EventShape::instant) continue;
    std::uint64_t sum = 0;
    for (const store::RankRow& rank : store.ranks()) sum += store.instant_count(rank.rank, kind);
    if (sum > 0) counts[ev::name_of(kind)] += sum;
  }
  std::uint64_t whole = 0;
  for (const auto& [name, count] : counts) whole += count;
  Table table;
  table.columns = {
      {"kind", 2}, {"count", 1, true, "Ended spans by their begin, and instants"}, {"share", 0.7F, true}};
  std::vector<std::pair<std::uint64_t, std::string>> order;
  for (const auto& [name, count] : counts) {
    std::string text(name);
    if (text.ends_with("_begin")) text.resize(text.size() - 6);
    std::ranges::replace(text, '_', ' ');
    order.emplace_back(count, std::move(text));
  }
  std::ranges::stable_sort(order, std::greater{}, &std::pair<std::uint64_t, std::string>::first);
  for (const auto& [count, name] : order) {
    const double share = 100.0 * static_cast<double>(count) / static_cast<double>(whole);
    table.add({{name, {}, Tone::normal, {}, ""},
               number_cell(static_cast<double>(count), grouped(static_cast<std::int64_t>(count))),
               number_cell(share, decimal(share, 1) + " %")});
  }
  return table;
}

Table machine_table(const store::Store& store) {
  // Host, device, hardware, versions.
  std::map<std::array<std::string, 4>, std::vector<std::uint32_t>> machines;
  for (const store::RankRow& rank : store.ranks()) {
    const ev::RunTables* const own = store.rank_tables(rank.rank);
    if (own == nullptr)
      machines[{rank.host, "", "", ""}].push_back(rank.rank);
    else
      machines[{rank.host.empty() ? own->host : rank.host, own->device, own->hardware, own->versions}]
          .push_back(rank.rank);
  }
  Table table;
  table.columns = {{"host", 1.2F},     {"ranks", 0.5F, true, "Number of ranks that have sent events"},
                   {"which", 0.9F},    {"device", 0.8F},
                   {"hardware", 1.6F}, {"versions", 1.6F}};
  for (const auto& [machine, ranks] : machines) {
    const auto text = [](const std::string& value) {
      return value.empty() ? Cell{kMissing, {}, Tone::muted, {}, "Not recorded"}
                           : Cell{value, {}, Tone::normal, {}, ""};
    };
    table.add({text(machine[0]),
               number_cell(static_cast<double>(ranks.size()), std::to_string(ranks.size())),
               {numbers_text(ranks), static_cast<double>(ranks.front()), Tone::normal, {}, ""},
               text(machine[1]),
               text(machine[2]),
               text(machine[3])});
  }
  return table;
}

const TraceInfo::Tables& TraceInfo::of(const AppState& app, double seconds) {
  const std::array<std::uint64_t, 3> key{app.run->number(), app.store().revision(), app.notes.version()};
  const bool anew = !of_ || of_->front() != key.front() || made_at_ > seconds;
  const bool changed = anew || *of_ != key || of_analysis_ != app.run->analysis();
  if (anew || (changed && seconds - made_at_ >= kEvery)) {
    made_ = {trace_table(app), event_counts(*app.run), machine_table(app.store())};
    of_ = key;
    of_analysis_ = app.run->analysis();
    made_at_ = seconds;
  }
  return made_;
}

}  // namespace shardscope::gui
