// Partition of time, partition map, memory and loss as inline SVG.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "app/analysis/memory.h"
#include "app/analysis/missing_reason.h"
#include "app/export/html_parts.h"
#include "app/store/names.h"

namespace shardscope::exporter {
namespace {

std::string rect(double x, double y, double width, double height, const char* fill,
                 const std::string& title) {
  if (width <= 0 || height <= 0) return {};
  return fmt::format(
      R"(<rect x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}" fill="{}"><title>{}</title></rect>)", x,
      y, width, height, fill, escape_html(title));
}

/// What each colour is; only parts that a rank has.
std::string time_legend(const analysis::Summary& summary) {
  const auto any = [&](std::int64_t analysis::TimePartition::*part) {
    return std::any_of(summary.ranks.begin(), summary.ranks.end(),
                       [&](const auto& rank) { return rank.time.known() && rank.time.*part > 0; });
  };
  std::string out = "<p class=legend>";
  using Time = analysis::TimePartition;
  for (const auto& [part, name, fill] :
       {std::tuple{&Time::compute_ns, "compute", colour::kCompute},
        {&Time::exposed_comm_ns, "exposed communication", colour::kGather},
        {&Time::exposed_copy_ns, "exposed copies", colour::kCopy},
        {&Time::checkpoint_ns, "checkpoint", colour::kCopy},
        {&Time::idle_ns, "idle", colour::kIdle},
        {&Time::unrecorded_ns, "unrecorded: events are missing or were not emitted",
         "repeating-linear-gradient(45deg,#8B95A5 0 2px,transparent 2px 5px)"}}) {
    if (any(part)) out += fmt::format(R"(<span><i style="background:{}"></i>{}</span>)", fill, name);
  }
  return out + "</p>";
}

}  // namespace

std::string time_partition_svg(const analysis::Summary& summary) {
  std::string body;
  double y = 4;
  for (const analysis::RankSummary& rank : summary.ranks) {
    const auto& time = rank.time;
    if (time.total_ns <= 0 || !time.known()) continue;
    body += fmt::format(R"(<text x="0" y="{:.0f}" class="lane">rank {}</text>)", y + 15, rank.rank);
    double x = kChartLabel;
    struct Part {
      const char* name;
      std::int64_t ns;
      const char* fill;
    };
    for (const Part& part :
         {Part{"compute", time.compute_ns, colour::kCompute},
          Part{"exposed communication", time.exposed_comm_ns, colour::kGather},
          Part{"exposed copies", time.exposed_copy_ns, colour::kCopy},
          Part{"checkpoint", time.checkpoint_ns, colour::kCopy},
          Part{rank.copies_known ? "idle" : "idle or copying", time.idle_ns, colour::kIdle},
          Part{"unrecorded (events are missing)", time.unrecorded_ns, "url(#unrecorded)"}}) {
      const double share = static_cast<double>(part.ns) / static_cast<double>(time.total_ns);
      const double width = (kChartWidth - kChartLabel) * share;
      const std::string title = fmt::format("{}: {} ({:.1f} %)", part.name, time_text(part.ns), 100 * share);
      body += rect(x, y, width, 20, part.fill, title);
      if (width > 90) {
        body += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" class="onbar">{} {:.0f} %</text>)", x + 6, y + 14,
                            width > 220 ? part.name : "", 100 * share);
      }
      x += width;
    }
    y += 24;
  }
  if (body.empty() && summary.steps > 0)
    return "<p class=missing>What was computed is not known: " +
           analysis::missing_reason(summary, "modules, kernels and optimizer steps",
                                    instrumentation::Detail::modules, instrumentation::Capability::modules) +
           ".</p>";
  if (body.empty()) return "<p class=missing>No completed step was recorded.</p>";
  return fmt::format(
      R"(<svg viewBox="0 0 {} {:.0f}" role="img" aria-label="partition of time per rank">{}</svg>{})",
      kChartWidth, y, body, time_legend(summary));
}

std::string partition_svg(const store::Store& store) {
  if (!store.has_tables() || store.tables().slices.empty()) {
    return "<p class=missing>The run sent no partition layout.</p>";
  }
  const auto& tables = store.tables();
  // Stage 3 gives every rank a part of each parameter, stages 1 and 2 one range of the whole: the axis is
  // the same in both, all elements in parameter order.
  std::vector<std::int64_t> start(tables.params.size() + 1, 0);
  for (std::size_t i = 0; i < tables.params.size(); ++i) start[i + 1] = start[i] + tables.params[i].elems;
  const double total = static_cast<double>(std::max<std::int64_t>(start.back(), 1));
  const auto x_of = [&](std::int64_t element) {
    return kChartLabel + (kChartWidth - kChartLabel) * static_cast<double>(element) / total;
  };
  std::string body;
  const double row = 24;
  for (std::uint32_t rank = 0; rank < tables.world; ++rank) {
    body += fmt::format(R"(<text x="0" y="{:.0f}" class="lane">rank {}</text>)", rank * row + 15, rank);
    body += fmt::format(R"(<rect x="{}" y="{:.0f}" width="{}" height="{:.0f}" class="slot"/>)", kChartLabel,
                        rank * row, kChartWidth - kChartLabel, row - 4);
  }
  for (const auto& slice : tables.slices) {
    if (slice.param >= tables.params.size() || slice.elems <= 0) continue;
    const auto& param = tables.params[slice.param];
    const double x0 = x_of(start[slice.param] + slice.param_offset);
    const double x1 = x_of(start[slice.param] + slice.param_offset + slice.elems);
    std::string title = fmt::format("rank {}: {} [{}, {}) of {} elements", slice.rank, param.name,
                                    slice.param_offset, slice.param_offset + slice.elems, param.elems);
    if (slice.padding_elems > 0) title += fmt::format(", {} padding", slice.padding_elems);
    if (param.persistent) title += ", persistent";
    if (param.frozen) title += ", frozen";
    body += fmt::format(
        R"(<rect x="{:.2f}" y="{:.0f}" width="{:.2f}" height="{:.0f}" fill="{}" class="cell"{}><title>{}</title></rect>)",
        x0, slice.rank * row, std::max(x1 - x0, 0.3), row - 4,
        param.persistent ? colour::kGather : colour::kCompute,
        slice.param % 2 == 0 ? "" : R"( opacity=".78")", escape_html(title));
  }
  return fmt::format(R"(<svg viewBox="0 0 {} {:.0f}" role="img" aria-label="partition map">{}</svg>)",
                     kChartWidth, tables.world * row, body);
}

std::string memory_svg(const store::Store& store, const analysis::Summary& summary, std::uint32_t rank) {
  constexpr std::size_t kColumns = 400;
  constexpr double kHeight = 200, kTop = 14;
  const auto pool = instrumentation::MemoryPool::device;
  const auto peak = store.memory_peak(rank, pool);
  if (!peak || peak->total() <= 0)
    return "<p class=missing>No memory events were recorded for this rank.</p>";
  std::vector<store::MemorySample> columns(kColumns);
  store.memory_columns(rank, pool, 0, std::max<std::int64_t>(store.end_ns(), 1), columns);
  const double top = static_cast<double>(std::max(peak->total(), summary.memory_model.bytes_per_rank)) * 1.05;
  const auto y_of = [&](double bytes) { return kTop + kHeight * (1 - bytes / top); };
  const auto x_of = [&](double column) {
    return kChartLabel + (kChartWidth - kChartLabel) * column / kColumns;
  };

  std::array<double, kColumns> base{};
  std::string areas, legend;
  for (std::uint8_t i = 0; i < instrumentation::kMemoryCategoryCount; ++i) {
    const auto category = static_cast<instrumentation::MemoryCategory>(i);
    std::int64_t most = 0;
    for (const auto& column : columns) most = std::max(most, column.bytes[i]);
    if (most <= 0) continue;
    std::string upper, lower;
    for (std::size_t c = 0; c < kColumns; ++c) {
      lower = fmt::format("L{:.1f} {:.1f}", x_of(static_cast<double>(c)), y_of(base[c])) + lower;
      base[c] += static_cast<double>(columns[c].bytes[i]);
      upper +=
          fmt::format("{}{:.1f} {:.1f}", c == 0 ? "M" : "L", x_of(static_cast<double>(c)), y_of(base[c]));
    }
    areas += fmt::format(
        R"(<path d="{}{}Z" fill="{}" fill-opacity="{}"><title>{}: {} at most</title></path>)", upper, lower,
        colour_of(category), i % 2 == 0 ? ".95" : ".7", store::name_of(category), bytes_text(most));
    legend += fmt::format(R"(<span><i style="background:{};opacity:{}"></i>{} <b>{}</b></span>)",
                          colour_of(category), i % 2 == 0 ? ".95" : ".7", store::name_of(category),
                          bytes_text(peak->bytes[i]));
  }
  std::string marks;
  for (int tick = 0; tick <= 4; ++tick) {
    const double bytes = top * tick / 4;
    marks += fmt::format(
        R"(<line x1="{0}" x2="{1}" y1="{2:.1f}" y2="{2:.1f}" class="grid"/><text x="{3}" y="{4:.1f}" class="tick" text-anchor="end">{5}</text>)",
        kChartLabel, kChartWidth, y_of(bytes), kChartLabel - 8, y_of(bytes) + 4,
        bytes_text(static_cast<std::int64_t>(bytes)));
  }
  const double expected = y_of(static_cast<double>(summary.memory_model.bytes_per_rank));
  marks += fmt::format(
      R"(<line x1="{0}" x2="{1}" y1="{2:.1f}" y2="{2:.1f}" class="expression"/><text x="{1}" y="{3:.1f}" class="tick" text-anchor="end">model states {4} = {5}</text>)",
      kChartLabel, kChartWidth, expected, expected - 4, escape_html(summary.memory_model.expression),
      bytes_text(summary.memory_model.bytes_per_rank));
  const double peak_x = x_of(kColumns * static_cast<double>(peak->at_ns) /
                             static_cast<double>(std::max<std::int64_t>(store.end_ns(), 1)));
  marks += fmt::format(
      R"(<circle cx="{:.1f}" cy="{:.1f}" r="3.5" class="peak"><title>peak {} at {}</title></circle>)", peak_x,
      y_of(static_cast<double>(peak->total())), bytes_text(peak->total()), time_text(peak->at_ns));
  return fmt::format(
      R"(<svg viewBox="0 0 {} {:.0f}" role="img" aria-label="memory over time">{}{}</svg><p class="legend">at the peak, {}: {}</p>)",
      kChartWidth, kHeight + kTop + 8, areas, marks, bytes_text(peak->total()), legend);
}

std::string loss_svg(const std::vector<double>& loss) {
  constexpr double kHeight = 120, kTop = 8;
  double low = INFINITY, high = -INFINITY;
  for (const double value : loss) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (!(low <= high)) return "<p class=missing>No loss was recorded.</p>";
  if (high == low) high = low + 1e-6;
  std::string path;
  bool pen_down = false;
  for (std::size_t i = 0; i < loss.size(); ++i) {
    if (!std::isfinite(loss[i])) {
      pen_down = false;
      continue;
    }
    const double x =
        kChartLabel +
        (kChartWidth - kChartLabel) *
            (loss.size() > 1 ? static_cast<double>(i) / static_cast<double>(loss.size() - 1) : 0.5);
    path += fmt::format("{}{:.1f} {:.1f}", pen_down ? "L" : "M", x,
                        kTop + kHeight * (high - loss[i]) / (high - low));
    pen_down = true;
  }
  return fmt::format(
      R"(<svg viewBox="0 0 {} {:.0f}" role="img" aria-label="loss by step"><line x1="{}" x2="{}" y1="{:.0f}" y2="{:.0f}" class="rule"/><text x="{}" y="{:.0f}" class="tick" text-anchor="end">{:.3f}</text><text x="{}" y="{:.0f}" class="tick" text-anchor="end">{:.3f}</text><path d="{}" fill="none" stroke="{}" stroke-width="1.8"/></svg>)",
      kChartWidth, kHeight + kTop + 6, kChartLabel, kChartWidth, kHeight + kTop, kHeight + kTop,
      kChartLabel - 8, kTop + 6, high, kChartLabel - 8, kTop + kHeight, low, path, colour::kCompute);
}

}  // namespace shardscope::exporter
