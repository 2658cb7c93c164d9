#include "app/gui/model/communication_tables.h"

#include <algorithm>
#include <cmath>

#include "app/analysis/communication.h"
#include "app/gui/model/format.h"
#include "app/gui/model/names.h"
#include "app/gui/model/span_text.h"
#include "app/store/gather_contents.h"
#include "app/store/span_time.h"
#include "instrumentation/bus_factor.h"
#include "instrumentation/event_fields.h"

namespace shardscope::gui {
namespace {

Meaning meaning_of_op(ev::CollectiveOp op) {
  return meaning_of(ev::EventKind::collective_begin, static_cast<std::uint8_t>(op));
}

Cell optional_cell(std::optional<double> value, const Quantity& text) {
  return number_cell(value, text.text());
}

Cell time_cell(std::int64_t ns, Tone tone = Tone::normal) {
  Cell cell = number_cell(static_cast<double>(ns), duration(ns).text());
  cell.tone = tone;
  return cell;
}

}  // namespace

void add_letter(Table& table, std::span<const LabelledRun> runs) {
  if (runs.size() > 1) table.columns.push_back({"run", 0.3F, false, "A is the run that all panels show"});
}

Cell letter_cell(std::span<const LabelledRun> runs, std::size_t run) {
  return runs.size() > 1 ? Cell{runs[run].letter, {}, Tone::normal, {}, ""} : Cell{};
}

Table operation_table(std::span<const LabelledRun> runs) {
  Table table;
  table.columns = {
      {"operation", 1.3F},
      {"count", 0.6F, true, "Over the measured steps; of a range those that begin in it"},
      {"bytes", 0.9F, true, "S: full size over all ranks (metrics 2.3)"},
      {"algbw", 0.9F, true,
       "Of the transfer alone: S / time from when all ranks had entered to the end, the least over ranks"},
      {"busbw", 0.9F, true, "algbw x the operation's factor, which makes it comparable with the link"},
      {"waiting", 0.9F, true,
       "busbw with waiting, as a cost: S x factor / time from begin to end, mean over ranks"}};
  add_letter(table, runs);
  std::vector<ev::CollectiveOp> ops;
  for (const LabelledRun& run : runs) {
    for (const analysis::OpRow& op : run.figures().ops) {
      if (std::ranges::find(ops, op.op) == ops.end()) ops.push_back(op.op);
    }
  }
  for (const ev::CollectiveOp which : ops) {
    for (std::size_t i = 0; i < runs.size(); ++i) {
      for (const analysis::OpRow& op : runs[i].figures().ops) {
        if (op.op != which) continue;
        table.add({{word(op.op), {}, Tone::normal, meaning_of_op(op.op), ""},
                   number_cell(static_cast<double>(op.count), count(static_cast<double>(op.count)).text()),
                   number_cell(static_cast<double>(op.bytes), bytes(op.bytes).text()),
                   optional_cell(op.algbw_gbs, bandwidth(op.algbw_gbs)),
                   optional_cell(op.busbw_gbs, bandwidth(op.busbw_gbs)),
                   optional_cell(op.busbw_waiting_gbs, bandwidth(op.busbw_waiting_gbs)),
                   letter_cell(runs, i)});
      }
    }
  }
  return table;
}

RankTable overlap_table(std::span<const LabelledRun> runs) {
  RankTable out;
  out.table.columns = {{"rank", 0.5F, true},
                       {"hidden and exposed", 2.4F, false,
                        "Communication of the measured steps, or of the range: hidden behind computation, "
                        "and exposed (hatched). "
                        "Exposed is not the same as blocking: see the waits",
                        false, 100},
                       {"hidden", 0.6F, true, "100 (1 - exposed communication / |communication|)"},
                       {"exposed", 0.8F, true, "Communication while nothing was computed"},
                       {"communication", 0.8F, true, "|communication|: union of the rank's collectives"},
                       {"fetch wait", 0.8F, true, "Compute waited for a gather"}};
  add_letter(out.table, runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const analysis::RankSummary& rank : runs[i].figures().ranks) {
      const bool known = rank.time.known();
      const auto ns = [&](std::int64_t value) {
        return known ? number_cell(static_cast<double>(value), duration(value).text())
                     : number_cell(std::nullopt, "");
      };
      out.table.add({number_cell(rank.rank, std::to_string(rank.rank)),
                     {"", static_cast<double>(rank.time.comm_ns), Tone::normal, {}, ""},
                     optional_cell(rank.time.overlap_pct(), percent(rank.time.overlap_pct())),
                     ns(rank.time.exposed_comm_ns),
                     ns(rank.time.comm_ns),
                     rank.fetch_wait_ns ? time_cell(*rank.fetch_wait_ns) : number_cell(std::nullopt, ""),
                     letter_cell(runs, i)});
      out.rows.push_back({&rank, i});
    }
  }
  return out;
}

SpanTable wait_table(std::span<const LabelledRun> runs) {
  SpanTable out;
  out.table.columns = {{"length", 0.7F, true, "Pauses cut out"},
                       {"rank", 0.4F, true},
                       {"waiting for", 2.2F},
                       {"time", 0.9F, true, "Since the run's first event"}};
  add_letter(out.table, runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Session& run = *runs[i].run;
    for (const analysis::Wait& one : runs[i].longest_waits()) {
      const std::uint32_t rank = one.rank;
      const store::Span& wait = one.span;
      const store::SpanTime time = store::time_of(run.store(), rank, wait);
      out.table.add({time_cell(time.running_ns, Tone::bad),
                     number_cell(rank, std::to_string(rank)),
                     {wait_text(run.store(), rank, wait, run.index()), {}, Tone::normal, {}, ""},
                     number_cell(static_cast<double>(wait.begin_ns), timestamp(wait.begin_ns, 100'000)),
                     letter_cell(runs, i)});
      out.table.rows.back()[0].tip = length_text(time);
      out.places.push_back({{rank, ev::StreamId::compute}, wait, i});
    }
  }
  return out;
}

SpanTable collective_table(const Session& run, std::uint32_t rank, std::int64_t begin_ns, std::int64_t end_ns,
                           std::size_t most) {
  SpanTable out;
  out.table.columns = {{"begin", 0.9F, true, "Since the run's first event"},
                       {"operation", 1.0F},
                       {"contents", 1.8F, false, "Modules whose parameters a gather moves"},
                       {"bytes", 0.8F, true, "S: full size over its ranks (metrics 2.3)"},
                       {"length", 0.7F, true, "begin to end, waiting for the last rank included"},
                       {"waited", 0.7F, true, "until every rank had arrived"},
                       {"busbw", 0.8F, true, "Of the transfer alone, where it is known when all had entered"},
                       {"elements", 0.8F, true, "", true},
                       {"among", 0.5F, true, "Ranks", true}};
  analysis::for_each_collective(run.store(), rank, begin_ns, end_ns,
                                [&](ev::StreamId stream, const store::Span& span) {
                                  out.places.push_back({{rank, stream}, span, 0});
                                });
  std::ranges::stable_sort(out.places, {}, [](const SpanTable::Place& place) { return place.span.begin_ns; });
  out.cut = out.places.size() > most;
  if (out.cut) out.places.resize(most);
  for (const auto& [lane, span, which] : out.places) {
    const auto collective = ev::as<ev::EventKind::collective_begin>(span);
    const std::uint32_t among = analysis::ranks_of(run.store(), rank, span);
    const bool arrived = span.mark_ns >= span.begin_ns && span.mark_ns > 0;
    const std::int64_t transfer = span.end_ns - (arrived ? span.mark_ns : span.begin_ns);
    std::optional<double> busbw;
    if (arrived && transfer > 0 && collective.bytes > 0)
      busbw = static_cast<double>(collective.bytes) / static_cast<double>(transfer) *
              ev::bus_factor(collective.op, among);
    const Fetch* fetch = lane.stream == ev::StreamId::gather ? run.index().fetch_of(rank, span) : nullptr;
    const std::string contents = fetch != nullptr ? store::contents_text(run.store(), fetch->params)
                                                  : label_of(run.store(), rank, span);
    out.table.add({number_cell(static_cast<double>(span.begin_ns), timestamp(span.begin_ns, 1'000)),
                   {word(collective.op), {}, Tone::normal, meaning_on(lane.stream, span.kind, span.code), ""},
                   {contents, {}, Tone::normal, {}, fetch != nullptr ? reason_of(run.store(), *fetch) : ""},
                   number_cell(static_cast<double>(collective.bytes), bytes(collective.bytes).text()),
                   time_cell(span.end_ns - span.begin_ns),
                   arrived ? time_cell(span.mark_ns - span.begin_ns) : number_cell(std::nullopt, ""),
                   optional_cell(busbw, bandwidth(busbw)),
                   number_cell(static_cast<double>(collective.elems), grouped(collective.elems)),
                   number_cell(among, std::to_string(among))});
  }
  return out;
}

}  // namespace shardscope::gui
