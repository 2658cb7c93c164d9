#include "app/export/otlp.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ostream>
#include <stdexcept>

#include "app/export/otlp_text.h"
#include "app/export/output_file.h"
#include "app/export/span_walk.h"
#include "app/store/gap_text.h"
#include "app/store/lane_name.h"
#include "app/store/names.h"
#include "app/store/rank_end.h"
#include "app/store/span_time.h"

namespace shardscope::exporter {
namespace {

namespace ev = shardscope::instrumentation;
using ev::EventKind;
using store::Span;
using store::Store;

/// A receiver accepts 20 MiB per request (opentelemetry-proto, docs/specification.md, OTLP/HTTP request).
constexpr std::size_t kLineBytes = 4U << 20;
constexpr std::uint64_t kBetweenSteps = UINT64_MAX;  ///< trace of the spans outside of all steps
constexpr unsigned kRankShift = 40;  ///< span ids: rank + 1 above this bit, number of the span below

/// A recorded span to export, before it has a parent.
struct Item {
  store::LaneId lane;
  Span span;
};

/// Nesting order of kinds: outer before inner where spans begin at the same time.
int order_of(EventKind kind) noexcept {
  switch (kind) {
    case EventKind::step_begin:
      return 0;
    case EventKind::micro_step_begin:
      return 1;
    case EventKind::phase_begin:
      return 2;
    default:
      return 3;
  }
}

/// The same name for all spans of a kind, as OpenTelemetry recommends; the step number is an attribute.
std::string name_for(const Store& store, std::uint32_t rank, const Span& span) {
  if (span.kind == EventKind::step_begin) return "step";
  if (span.kind == EventKind::micro_step_begin) return "micro-step";
  return span_label(store, rank, span);
}

class OtlpWriter {
 public:
  OtlpWriter(std::ostream& out, const Store& store, const OtlpOptions& options)
      : store_(store),
        options_(options),
        ids_(store.tables().run_id),
        lines_(out, kLineBytes, options.version),
        shift_ns_(options.unix_offset_ns ? store.origin_ns() + *options.unix_offset_ns : 0) {}

  void write() {
    lines_.resource(run_resource());
    for (const store::StepRow& row : store_.steps()) {
      if (wanted(row.step, row.begin_ns, store::time_of(store_, row).until_ns)) root(row);
    }
    std::size_t done = 0;
    for (const store::RankRow& row : store_.ranks()) {
      if (options_.progress)
        options_.progress(static_cast<double>(done++) / static_cast<double>(store_.ranks().size()));
      if (!options_.ranks.empty() && std::ranges::find(options_.ranks, row.rank) == options_.ranks.end())
        continue;
      lines_.resource(rank_resource(row));
      rank(row.rank);
    }
    lines_.flush();
  }

 private:
  [[nodiscard]] bool in_part() const { return options_.steps || options_.range != TimeRange(); }
  [[nodiscard]] bool wanted(std::uint32_t step, std::int64_t begin_ns, std::int64_t end_ns) const {
    return (!options_.steps || (step >= options_.steps->first && step <= options_.steps->second)) &&
           options_.range.overlaps(begin_ns, end_ns);
  }

  void of_run(OtlpAttributes& out) const {
    const ev::RunTables& run = store_.tables();
    out.text("service.name", run.model.empty() ? "training" : run.model);
    out.text("service.namespace", "shardscope");
    out.text("shardscope.run_id", run.run_id);
    out.number("shardscope.world", run.world);
    if (run.framework.empty()) {
      out.number("shardscope.zero_stage", run.stage);
    } else {
      out.text("shardscope.framework", run.framework);
    }
    out.flag("shardscope.simulated", run.simulated);
    if (!options_.problems.empty())
      out.text("shardscope.recording_problems", fmt::format("{}", fmt::join(options_.problems, "; ")));
    if (!options_.unix_offset_ns)
      out.text("shardscope.wall_clock",
               "not recorded: times are since the run began, from the Unix epoch on");
  }

  [[nodiscard]] std::string run_resource() const {
    OtlpAttributes out;
    of_run(out);
    out.text("service.instance.id", "run");
    return out.json();
  }

  [[nodiscard]] std::string rank_resource(const store::RankRow& row) const {
    OtlpAttributes out;
    of_run(out);
    out.text("service.instance.id", "rank " + std::to_string(row.rank));
    out.number("shardscope.rank", row.rank);
    if (!row.host.empty()) out.text("host.name", row.host);
    if (row.pid > 0) out.number("process.pid", row.pid);
    out.number("shardscope.clock_residual_ns", row.largest_clock_residual_ns);
    out.number("shardscope.dropped_events", static_cast<std::int64_t>(row.dropped));
    out.number("shardscope.lost_messages", static_cast<std::int64_t>(row.lost_messages));
    const store::RankEnd end = store::rank_end(store_, row);
    if (store::is_failure(end.how)) out.text("shardscope.end", store::text_of(end));
    return out.json();
  }

  /// The root span of a step, over all ranks.
  void root(const store::StepRow& row) {
    const store::SpanTime time = store::time_of(store_, row);
    OtlpAttributes attributes;
    attributes.number("shardscope.step", row.step);
    attributes.number("shardscope.paused_ns", row.paused_ns);
    if (row.tokens > 0) attributes.number("shardscope.tokens", row.tokens);
    if (row.skipped) attributes.flag("shardscope.skipped", true);
    for (const store::StepValue& value : store::kStepValues) {
      if (std::isfinite(row.*value.member))
        attributes.real(std::string("shardscope.") + value.name(), row.*value.member);
    }
    OtlpSpan span{ids_.trace(row.step),     root_id(), {}, "step of all ranks", row.begin_ns + shift_ns_,
                  time.until_ns + shift_ns_};
    if (!time.ended) attributes.text("shardscope.not_ended", "not every rank is known to have ended it");
    span.attributes = attributes.json();
    lines_.span(span);
  }
  static constexpr std::uint64_t root_id() noexcept { return 1; }

  void rank(std::uint32_t rank) {
    next_id_ = (std::uint64_t{rank} + 1) << kRankShift;
    // Step by step, and between them: each part exports all spans that begin in it.
    std::int64_t from = Store::kBegin, first_ns = Store::kEnd, last_ns = Store::kBegin;
    const store::LaneId host{rank, ev::StreamId::host};
    // Steps are outermost spans: depth 0.
    store_.for_each_span(host, 0, Store::kBegin, Store::kEnd, [&](const Span& span) {
      if (span.kind != EventKind::step_begin) return;
      const std::int64_t until = store::time_of(store_, rank, span).until_ns;
      if (!in_part()) part(rank, kBetweenSteps, from, span.begin_ns);
      const std::uint32_t step = ev::as<EventKind::step_begin>(span).step;
      if (wanted(step, span.begin_ns, until)) {
        part(rank, step, span.begin_ns, until);
        first_ns = std::min(first_ns, span.begin_ns);
        last_ns = std::max(last_ns, until);
      }
      from = until;
    });
    if (in_part()) {
      gaps(rank, first_ns, last_ns);
    } else {
      part(rank, kBetweenSteps, from, Store::kEnd);
      gaps(rank, Store::kBegin, Store::kEnd);
    }
  }

  /// Exports the spans that begin in [from, to), of one step or between two.
  void part(std::uint32_t rank, std::uint64_t trace, std::int64_t from, std::int64_t to) {
    if (from >= to) return;
    std::vector<Item> items;
    for (const store::LaneId lane : store_.lanes()) {
      if (lane.rank != rank) continue;
      for (std::uint8_t depth = 0; depth < store_.depth_count(lane); ++depth) {
        store_.for_each_span(lane, depth, from, to, [&](const Span& span) {
          const bool shown = span.kind == EventKind::step_begin || span.kind == EventKind::micro_step_begin ||
                             span.kind == EventKind::phase_begin || span.kind == EventKind::collective_begin;
          if (shown && ev::detail_of(span.kind) <= options_.detail && span.begin_ns >= from &&
              span.begin_ns < to)
            items.push_back({lane, span});
        });
      }
    }
    std::ranges::stable_sort(items, [](const Item& a, const Item& b) {
      return a.span.begin_ns != b.span.begin_ns ? a.span.begin_ns < b.span.begin_ns
                                                : order_of(a.span.kind) < order_of(b.span.kind);
    });
    std::array<Open, 3> open;  // the latest step, micro-step and phase
    for (const Item& item : items) span(item, trace, open);
  }

  struct Open {
    std::uint64_t id = 0;  ///< 0: none yet
    std::int64_t end_ns = 0;
  };

  void span(const Item& item, std::uint64_t trace, std::array<Open, 3>& open) {
    const Span& span = item.span;
    const store::SpanTime time = store::time_of(store_, item.lane.rank, span);
    const auto order = static_cast<std::size_t>(order_of(span.kind));
    std::uint64_t parent = order == 0 ? root_id() : 0;
    for (std::size_t outer = std::min(order, open.size()); outer > 0 && parent == 0; --outer) {
      if (open[outer - 1].id != 0 && span.begin_ns < open[outer - 1].end_ns) parent = open[outer - 1].id;
    }
    const std::uint64_t id = next_id_++;
    if (order < open.size()) open[order] = {id, time.until_ns};
    OtlpSpan out{ids_.trace(trace),
                 id,
                 parent == 0 ? std::nullopt : std::optional(parent),
                 name_for(store_, item.lane.rank, span),
                 span.begin_ns + shift_ns_,
                 time.until_ns + shift_ns_};
    OtlpAttributes attributes;
    describe(item, attributes);
    if (time.paused_ns > 0) attributes.number("shardscope.paused_ns", time.paused_ns);
    if (!time.ended) {
      attributes.text("shardscope.not_ended", store::why_open(store_, item.lane.rank));
      out.failed = store::is_failure(rank_ending(item.lane.rank));
    }
    if (span.kind == EventKind::collective_begin && span.mark_ns != 0)
      out.event = {span.mark_ns + shift_ns_, "every rank had entered"};
    out.attributes = attributes.json();
    lines_.span(out);
  }

  [[nodiscard]] store::RankEnd::How rank_ending(std::uint32_t rank) const {
    for (const store::RankRow& row : store_.ranks()) {
      if (row.rank == rank) return store::rank_end(store_, row).how;
    }
    return store::RankEnd::How::running;
  }

  void describe(const Item& item, OtlpAttributes& out) const {
    const Span& span = item.span;
    switch (span.kind) {
      case EventKind::step_begin:
        out.number("shardscope.step", ev::as<EventKind::step_begin>(span).step);
        break;
      case EventKind::micro_step_begin: {
        const auto fields = ev::as<EventKind::micro_step_begin>(span);
        out.number("shardscope.step", fields.step);
        out.number("shardscope.micro_step", fields.micro_step);
        break;
      }
      case EventKind::phase_begin: {
        const auto fields = ev::as<EventKind::phase_begin>(span);
        out.number("shardscope.step", fields.step);
        if (fields.micro_step != ev::kNoId) out.number("shardscope.micro_step", fields.micro_step);
        break;
      }
      default: {
        const auto fields = ev::as<EventKind::collective_begin>(span);
        out.number("shardscope.sequence", fields.sequence);
        out.number("shardscope.group", fields.group);
        out.number("shardscope.elements", fields.elems);
        out.number("shardscope.bytes", fields.bytes);
        out.text("shardscope.lane", store::lane_name(store_, item.lane));
        break;
      }
    }
  }

  /// Exports the gaps of a rank that overlap [from, to).
  void gaps(std::uint32_t rank, std::int64_t from, std::int64_t to) {
    for (const store::Gap& gap : store_.gaps()) {
      if (gap.rank != rank || gap.begin_ns >= to || gap.end_ns <= from) continue;
      OtlpSpan out{ids_.trace(kBetweenSteps),
                   next_id_++,
                   std::nullopt,
                   "events missing",
                   gap.begin_ns + shift_ns_,
                   std::max(gap.begin_ns, gap.end_ns) + shift_ns_};
      OtlpAttributes attributes;
      attributes.text("shardscope.missing", store::what_is_missing(gap));
      out.attributes = attributes.json();
      lines_.span(out);
    }
  }

  const Store& store_;
  const OtlpOptions& options_;
  OtlpIds ids_;
  OtlpLines lines_;
  std::int64_t shift_ns_;  ///< run time + this = Unix time
  std::uint64_t next_id_ = 0;
};

void check(const Store& store, const OtlpOptions& options) {
  for (const std::uint32_t rank : options.ranks) {
    if (std::ranges::none_of(store.ranks(), [&](const auto& row) { return row.rank == rank; }))
      throw std::runtime_error("rank " + std::to_string(rank) + ": is not in the recording");
  }
  if (options.range != TimeRange() && std::ranges::none_of(store.steps(), [&](const auto& row) {
        return options.range.overlaps(row.begin_ns, store::time_of(store, row).until_ns);
      }))
    throw std::runtime_error("no step overlaps the chosen range of time");
  if (!options.steps) return;
  const auto [first, last] = *options.steps;
  if (std::ranges::none_of(store.steps(),
                           [&](const auto& row) { return row.step >= first && row.step <= last; }))
    throw std::runtime_error("steps " + std::to_string(first) + "-" + std::to_string(last) +
                             ": none of them is in the recording");
}

}  // namespace

void write_otlp(std::ostream& out, const Store& store, const OtlpOptions& options) {
  check(store, options);
  OtlpWriter(out, store, options).write();
}

void write_otlp(const std::string& path, const Store& store, const OtlpOptions& options) {
  check(store, options);
  OutputFile file(path);
  file.write([&](std::ostream& out) { write_otlp(out, store, options); });
  file.commit();
}

}  // namespace shardscope::exporter
