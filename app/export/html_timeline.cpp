// The timeline of one step as inline SVG. What is narrower than a pixel is drawn as density, so that the
// page stays small whatever the step holds.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "app/export/html_parts.h"
#include "app/export/span_walk.h"
#include "app/store/gather_contents.h"
#include "app/store/lane_name.h"
#include "app/store/module_name.h"
#include "app/store/names.h"
#include "app/store/rank_end.h"

namespace shardscope::exporter {
namespace {

using instrumentation::EventKind;
using instrumentation::StreamId;

constexpr double kLane = 16, kGap = 2, kRankGap = 10;

/// Of the GPU's work: by its stream, or by its owner.
const char* gpu_colour(const store::Span& span, StreamId stream) {
  using instrumentation::GpuOwner;
  using instrumentation::GpuWork;
  const auto fields = instrumentation::as<EventKind::gpu_begin>(span);
  if (stream == StreamId::gpu_gather) return colour::kGather;
  if (stream == StreamId::gpu_reduce) return colour::kReduce;
  if (fields.owner_kind == GpuOwner::optimizer) return colour::kOptimizer;
  const bool computes = fields.work == GpuWork::kernel || fields.work == GpuWork::memset;
  return computes ? colour::kCompute : colour::kCopy;
}

const char* span_colour(const store::Span& span, StreamId stream) {
  switch (span.kind) {
    case EventKind::gpu_begin:
      return gpu_colour(span, stream);
    case EventKind::gpu_sync_begin:
    case EventKind::fetch_wait_begin:
    case EventKind::reduce_wait_begin:
    case EventKind::deferred_wait_begin:
    case EventKind::data_wait_begin:
      return "url(#wait)";
    case EventKind::collective_begin:
      return stream == StreamId::reduce ? colour::kReduce : colour::kGather;
    case EventKind::optimizer_begin:
      return colour::kOptimizer;
    case EventKind::transfer_begin:
      return colour::kCopy;
    case EventKind::paused_begin:
      return colour::kIdle;
    default:
      return colour::kCompute;
  }
}

bool drawn(EventKind kind) {
  return kind != EventKind::phase_begin && kind != EventKind::step_begin &&
         kind != EventKind::micro_step_begin;
}

using Params = std::unordered_map<std::uint32_t, std::vector<std::uint32_t>>;  ///< by collective

std::string span_title(const store::Store& store, std::uint32_t rank, const Params& params,
                       const store::Span& span) {
  const auto module = [&](std::uint32_t id) { return store::module_name(store, id); };
  const store::SpanTime time = store::time_of(store, rank, span);
  std::string duration = time_text(time.running_ns);
  if (!time.ended) {
    duration = "not ended, " + duration + (time.goes_on ? " so far (" : " up to the last event (") +
               store::why_open(store, rank) + ")";
  }
  if (time.paused_ns > 0) duration += " (+ " + time_text(time.paused_ns) + " paused, not counted)";
  switch (span.kind) {
    case EventKind::module_begin: {
      const auto fields = instrumentation::as<EventKind::module_begin>(span);
      return fmt::format("{} {}: {}", module(fields.module), store::name_of(fields.pass), duration);
    }
    case EventKind::fetch_wait_begin: {
      const auto fields = instrumentation::as<EventKind::fetch_wait_begin>(span);
      // Parameters that stay whole are gathered for no module.
      if (fields.module == instrumentation::kNoId)
        return fmt::format("wait for gather {} of persistent parameters: {}", fields.gather, duration);
      return fmt::format("{} waits for gather {}: {}", module(fields.module), fields.gather, duration);
    }
    case EventKind::collective_begin: {
      const auto fields = instrumentation::as<EventKind::collective_begin>(span);
      const auto moved = params.find(fields.sequence);
      const std::string contents =
          moved == params.end() ? std::string() : store::contents_text(store, moved->second);
      return fmt::format("{} #{}{}: {}, {}", store::name_of(fields.op), fields.sequence,
                         contents.empty() ? "" : " of " + contents, bytes_text(fields.bytes), duration);
    }
    case EventKind::gpu_begin: {
      const auto fields = instrumentation::as<EventKind::gpu_begin>(span);
      std::string name = store.name(rank, fields.name);
      if (name.empty()) name = store::name_of(fields.work);
      const std::string delay = fields.delay_ns == instrumentation::kNoDelay
                                    ? ""
                                    : ", started " + time_text(fields.delay_ns) + " after its launch";
      return fmt::format("{}: {}{}", name, duration, delay);
    }
    default:
      return fmt::format("{}: {}", span_label(store, rank, span), duration);
  }
}

struct Scale {
  std::int64_t begin, end;
  [[nodiscard]] double x(std::int64_t t) const {
    return kChartLabel + (kChartWidth - kChartLabel) *
                             static_cast<double>(std::clamp(t, begin, end) - begin) /
                             static_cast<double>(std::max<std::int64_t>(end - begin, 1));
  }
};

/// One row: spans of all depths, the deeper ones over the others.
void draw_lane(const store::Store& store, store::LaneId lane, const Params& params, const Scale& scale,
               double y, std::string& svg) {
  for (std::uint8_t depth = 0; depth < store.depth_count(lane); ++depth) {
    const double inset = std::min(2.0 * depth, 6.0);
    double merged_from = -1, merged_to = -1;
    const char* merged_colour = nullptr;
    const auto flush = [&] {
      if (merged_from < 0) return;
      svg += fmt::format(
          R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="{}" opacity=".7"/>)",
          merged_from, y + inset, std::max(merged_to - merged_from, 0.7), kLane - inset, merged_colour);
      merged_from = -1;
    };
    for (const store::Span& span : store.spans(lane, depth, scale.begin, scale.end)) {
      if (!drawn(span.kind)) continue;
      const double x0 = scale.x(span.begin_ns), x1 = scale.x(store::time_of(store, lane.rank, span).until_ns);
      const char* fill = span_colour(span, lane.stream);
      if (x1 - x0 < 1.0) {  // narrower than a pixel: joins its neighbours
        if (merged_from >= 0 && (x0 - merged_to > 1.0 || fill != merged_colour)) flush();
        if (merged_from < 0) {
          merged_from = x0;
          merged_colour = fill;
        }
        merged_to = x1;
        continue;
      }
      flush();
      svg += fmt::format(
          R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="{}" class="cell"><title>{}</title></rect>)",
          x0, y + inset, x1 - x0, kLane - inset, fill,
          escape_html(span_title(store, lane.rank, params, span)));
    }
    flush();
  }
}

/// Of the collectives that may run in the step: the host submits them before.
Params params_of_step(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                      std::int64_t end_ns) {
  Params out;
  store.for_each_instant(rank, begin_ns - (end_ns - begin_ns), end_ns,
                         [&](const instrumentation::Event& event) {
                           if (event.kind != EventKind::collective_part) return;
                           const auto part = instrumentation::as<EventKind::collective_part>(event);
                           out[part.sequence].push_back(part.param);
                         });
  return out;
}

/// Over everything in the lane: while the rank was held nothing was computed.
void draw_pauses(const store::Store& store, std::uint32_t rank, const Scale& scale, double y,
                 std::string& svg) {
  store.for_each_span(
      {rank, StreamId::host}, store::kPauses, scale.begin, scale.end, [&](const store::Span& pause) {
        const double x0 = scale.x(pause.begin_ns), x1 = scale.x(pause.end_ns);
        svg += fmt::format(
            R"svg(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="url(#pause)"><title>paused by the user: {}, in no duration</title></rect>)svg",
            x0, y, std::max(x1 - x0, 0.7), kLane,
            pause.end_ns == store::kOpen ? "not ended" : time_text(pause.end_ns - pause.begin_ns));
      });
}

}  // namespace

std::string timeline_svg(const store::Store& store, std::int64_t begin_ns, std::int64_t end_ns) {
  if (!store.has_tables() || end_ns <= begin_ns)
    return "<p class=missing>No completed step was recorded.</p>";
  const Scale scale{begin_ns, end_ns};
  std::string body;
  double y = 18;
  std::uint32_t rank = instrumentation::kNoId;
  Params params;
  for (const store::LaneId lane : store.lanes()) {
    if (lane.stream == StreamId::host || lane.stream == StreamId::gpu_records) continue;
    if (lane.rank != rank) {
      if (rank != instrumentation::kNoId) y += kRankGap;
      rank = lane.rank;
      params = params_of_step(store, rank, begin_ns, end_ns);
    }
    body += fmt::format(R"(<text x="0" y="{:.1f}" class="lane">rank {} {}</text>)", y + kLane - 4, lane.rank,
                        escape_html(store::lane_name(store, lane)));
    body += fmt::format(R"(<line x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}" class="rule"/>)", kChartLabel,
                        kChartWidth, y + kLane + 1, y + kLane + 1);
    draw_lane(store, lane, params, scale, y, body);
    draw_pauses(store, lane.rank, scale, y, body);
    y += kLane + kGap;
  }
  std::string axis;
  for (int tick = 0; tick <= 8; ++tick) {
    const std::int64_t t = begin_ns + (end_ns - begin_ns) * tick / 8;
    axis += fmt::format(
        R"(<line x1="{0:.1f}" x2="{0:.1f}" y1="14" y2="{1:.1f}" class="grid"/><text x="{0:.1f}" y="10" class="tick" text-anchor="{2}">{3}</text>)",
        scale.x(t), y,
        tick == 0   ? "start"
        : tick == 8 ? "end"
                    : "middle",
        time_text(t - begin_ns));
  }
  return fmt::format(
      R"(<svg viewBox="0 0 {} {:.0f}" role="img" aria-label="timeline of one step">{}{}</svg>)", kChartWidth,
      y + 4, axis, body);
}

}  // namespace shardscope::exporter
