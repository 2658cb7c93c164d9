// Partition of time, critical path, partition map and loss.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>
#include <tuple>

#include "app/analysis/critical_path.h"
#include "app/analysis/missing_reason.h"
#include "app/export/html_parts.h"

namespace shardscope::exporter {
namespace {

using Time = analysis::TimePartition;

struct TimePart {
  std::int64_t Time::*ns;
  const char* name;
  const char* fill;
};
constexpr std::array kTimeParts{
    TimePart{&Time::compute_ns, "compute", colour::kCompute},
    TimePart{&Time::exposed_comm_ns, "exposed communication", colour::kExposedComm},
    TimePart{&Time::exposed_copy_ns, "exposed copies", colour::kExposedCopy},
    TimePart{&Time::checkpoint_ns, "checkpoint", colour::kCopy},
    TimePart{&Time::idle_ns, "idle", colour::kIdle},
    TimePart{&Time::unrecorded_ns, "unrecorded", colour::kUnrecorded},
};

double share(std::int64_t part, std::int64_t all) {
  return static_cast<double>(part) / static_cast<double>(std::max<std::int64_t>(all, 1));
}

/// The bar of one rank, or of all ranks together.
std::string time_row(const std::string& label, const Time& time, bool copies_known) {
  std::vector<BarPart> parts;
  std::string figures;  // a line breaks between two of them only
  for (const TimePart& part : kTimeParts) {
    const std::int64_t ns = time.*part.ns;
    const bool idle = part.ns == &Time::idle_ns;
    const std::string name = part.ns == &Time::unrecorded_ns ? "unrecorded (events are missing)"
                             : idle && !copies_known         ? "idle or copying"
                                                             : part.name;
    const double of_all = share(ns, time.total_ns);
    parts.push_back({part.fill, fmt::format("{}: {} ({:.1f} %)", name, time_text(ns), 100 * of_all), of_all});
    if (part.ns == &Time::compute_ns) figures += fmt::format("compute&nbsp;{:.0f}&nbsp;%", 100 * of_all);
    if (part.ns == &Time::exposed_comm_ns)
      figures += fmt::format(" · <b>exposed&nbsp;{:.0f}&nbsp;%</b>", 100 * of_all);
    if (idle)
      figures += fmt::format(" · {}&nbsp;{:.0f}&nbsp;%", idle && !copies_known ? "idle or copying" : "idle",
                             100 * of_all);
  }
  return bar_row(label, parts, figures);
}

/// One column per rank, one SVG path per class.
std::string time_columns(const std::vector<const analysis::RankSummary*>& ranks) {
  std::string paths;
  std::vector<double> base(ranks.size(), 0);
  for (const TimePart& part : kTimeParts) {
    std::string path;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const double height = 100 * share(ranks[i]->time.*part.ns, ranks[i]->time.total_ns);
      if (height >= 0.05)
        path += fmt::format("M{} {:.1f}h1v-{:.1f}h-1z", i, 100 - base[i], std::min(height, 100 - base[i]));
      base[i] += height;
    }
    if (!path.empty()) paths += fmt::format(R"(<path class={} d="{}"/>)", part.fill, path);
  }
  return fmt::format(
      R"(<svg class=columns viewBox="0 0 {} 100" preserveAspectRatio=none role=img aria-label="partition of time of all {} ranks, one column each; the table of ranks has the figures">{}</svg><p class=ends><span>rank {}</span><span>rank {}</span></p>)",
      ranks.size(), ranks.size(), paths, ranks.front()->rank, ranks.back()->rank);
}

}  // namespace

std::string time_partition_html(const analysis::Summary& summary) {
  std::vector<const analysis::RankSummary*> ranks;
  for (const analysis::RankSummary& rank : summary.ranks) {
    if (rank.time.total_ns > 0 && rank.time.known()) ranks.push_back(&rank);
  }
  if (ranks.empty() && summary.steps > 0)
    return "<p class=missing>What was computed is not known: " +
           analysis::missing_reason(summary, "modules, kernels and optimizer steps",
                                    instrumentation::Detail::modules, instrumentation::Capability::modules) +
           ".</p>";
  if (ranks.empty()) return "<p class=missing>No completed step was recorded.</p>";
  Time all;
  bool copies_known = true;
  for (const auto* rank : ranks) {
    all.add(rank->time);
    copies_known = copies_known && rank->copies_known;
  }
  std::string out = "<div class=rows>";
  if (ranks.size() <= kManyRanks) {
    for (const auto* rank : ranks)
      out += time_row("rank " + std::to_string(rank->rank), rank->time, rank->copies_known);
    out += "</div>";
  } else {
    out += time_row(fmt::format("all {} ranks", ranks.size()), all, copies_known);
    std::set<std::uint32_t> shown;
    for (const auto& [part, which] :
         {std::pair{&Time::exposed_comm_ns, "most exposed"}, std::pair{&Time::compute_ns, "most compute"},
          std::pair{&Time::idle_ns, "most idle"}}) {
      const auto [least, most] =
          std::minmax_element(ranks.begin(), ranks.end(), [part = part](const auto* a, const auto* b) {
            return share(a->time.*part, a->time.total_ns) < share(b->time.*part, b->time.total_ns);
          });
      // Ranks whose shares differ by less than 1 % of the time are not named.
      const bool alike = share((*most)->time.*part, (*most)->time.total_ns) <
                         share((*least)->time.*part, (*least)->time.total_ns) + 0.01;
      if (alike || !shown.insert((*most)->rank).second) continue;
      out += time_row(fmt::format("rank {}, {}", (*most)->rank, which), (*most)->time, (*most)->copies_known);
    }
    out += "</div>" + time_columns(ranks);
  }
  std::vector<std::pair<const char*, std::string>> entries;
  for (const TimePart& part : kTimeParts) {
    if (all.*part.ns > 0)
      entries.emplace_back(part.fill, part.ns == &Time::unrecorded_ns
                                          ? "unrecorded: events are missing or were not emitted"
                                          : part.name);
  }
  return out + legend(entries);
}

std::string critical_path_html(const analysis::Summary& summary) {
  if (!summary.critical_path) return {};
  double sum = 0;
  for (const auto& [name, ms] : summary.critical_path->ms_per_step) sum += ms;
  std::vector<BarPart> parts;
  std::string table =
      "<table><tr><th>part of the path<th class=n>ms of a step<th class=n>share<th class=n>gain, ms</tr>";
  const auto gain_of = [&](const std::string& name) {
    const auto& gains = summary.critical_path->gain_ms_per_step;
    const auto found = std::ranges::find(gains, name, &std::pair<std::string, double>::first);
    return found == gains.end() ? std::string("-") : fmt::format("{:.2f}", found->second);
  };
  for (const auto& [name, ms] : summary.critical_path->ms_per_step) {
    for (std::size_t p = 0; p < analysis::kPathParts; ++p) {
      const auto part = static_cast<analysis::PathPart>(p);
      if (name != analysis::name_of(part)) continue;
      const double of_all = sum > 0 ? ms / sum : 0;
      const std::string label = analysis::label_of(part);
      parts.push_back({colour_of(hue_of(part)),
                       fmt::format("{}: {:.2f} ms ({:.1f} %)", label, ms, 100 * of_all), of_all});
      table += fmt::format(
          "<tr><td><span class=legend><i class={}></i></span>{}<td class=n>{:.2f}<td class=n>{:.1f} %"
          "<td class=n>{}</tr>",
          colour_of(hue_of(part)), label, ms, 100 * of_all, gain_of(name));
    }
  }
  return "<div class=rows>" + bar_row(fmt::format("{:.2f} ms", sum), parts, "") + "</div>" +
         scrolling(table + "</table>", "critical path by part") +
         fmt::format(
             "<p>Mean of {} {}. Gain: by how much a step would be shorter if the part took no time on any "
             "rank, by a "
             "replay of the steps without it.</p>",
             summary.critical_path->steps,
             summary.critical_path->gain_ms_per_step.empty() ? "steps, none of which could be replayed"
                                                             : "steps that could be replayed");
}

namespace {

constexpr double kMapWidth = 1000;

/// The elements that the ranks of a band own, as disjoint intervals of the map's width.
struct Band {
  std::uint32_t first = 0, last = 0;  ///< first and last rank
  std::vector<std::pair<double, double>> owned;
  std::int64_t elems = 0;
  std::size_t parts = 0;
};

std::string band_row(const Band& band, const std::string& body) {
  const std::string label = band.first == band.last ? fmt::format("rank {}", band.first)
                                                    : fmt::format("ranks {}–{}", band.first, band.last);
  return fmt::format(
      "<div class=row><span class=lane>{}</span><span class=figures>{} elements in {} part{}</span><svg "
      "class=strip "
      "viewBox=\"0 0 {:.0f} 10\" preserveAspectRatio=none aria-hidden=true>{}</svg></div>",
      label, count_text(static_cast<double>(band.elems)), band.parts, band.parts == 1 ? "" : "s", kMapWidth,
      body);
}

}  // namespace

std::string partition_html(const store::Store& store) {
  if (!store.has_tables() || store.tables().slices.empty())
    return "<p class=missing>The run sent no partition layout.</p>";
  const auto& tables = store.tables();
  // Stage 3 assigns each rank a part of every parameter, stages 1 and 2 one range of the flat buffer. Both
  // have the same axis: all elements in parameter order.
  std::vector<std::int64_t> start(tables.params.size() + 1, 0);
  for (std::size_t i = 0; i < tables.params.size(); ++i) start[i + 1] = start[i] + tables.params[i].elems;
  const double scale = kMapWidth / static_cast<double>(std::max<std::int64_t>(start.back(), 1));
  constexpr std::uint32_t kMostBands = 16;
  constexpr std::size_t kMostNamed = 600;  // parts with a title each
  const bool named = tables.slices.size() <= kMostNamed;
  const std::uint32_t per_band = (tables.world + kMostBands - 1) / kMostBands;
  std::vector<Band> bands;
  std::vector<std::string> bodies;
  for (std::uint32_t rank = 0; rank < tables.world; rank += std::max(per_band, 1U)) {
    bands.push_back({rank, std::min(rank + per_band, tables.world) - 1, {}, 0, 0});
    bodies.emplace_back();
  }
  for (const auto& slice : tables.slices) {
    if (slice.param >= tables.params.size() || slice.elems <= 0 || slice.rank >= tables.world) continue;
    Band& band = bands[slice.rank / per_band];
    const auto& param = tables.params[slice.param];
    const double x0 = scale * static_cast<double>(start[slice.param] + slice.param_offset);
    const double x1 = x0 + scale * static_cast<double>(slice.elems);
    band.elems += slice.elems;
    ++band.parts;
    band.owned.emplace_back(x0, x1);
    if (!named) continue;
    std::string title = fmt::format("rank {}: {} [{}, {}) of {} elements", slice.rank, param.name,
                                    slice.param_offset, slice.param_offset + slice.elems, param.elems);
    if (slice.padding_elems > 0) title += fmt::format(", {} padding", slice.padding_elems);
    if (param.persistent) title += ", persistent";
    if (param.frozen) title += ", frozen";
    bodies[slice.rank / per_band] +=
        fmt::format(R"(<rect x="{:.2f}" width="{:.2f}" height=10 class={}{}><title>{}</title></rect>)", x0,
                    std::max(x1 - x0, 0.5), param.persistent ? colour::kGather : colour::kCompute,
                    slice.param % 2 == 0 ? "" : R"( opacity=".72")", escape_html(title));
  }
  std::string out = "<div class=rows>";
  for (std::size_t i = 0; i < bands.size(); ++i) {
    if (!named) {
      // Parts less than a pixel apart are joined.
      std::sort(bands[i].owned.begin(), bands[i].owned.end());
      std::string path;
      for (std::size_t k = 0; k < bands[i].owned.size();) {
        auto [x0, x1] = bands[i].owned[k];
        for (++k; k < bands[i].owned.size() && bands[i].owned[k].first <= x1 + 1; ++k)
          x1 = std::max(x1, bands[i].owned[k].second);
        path += fmt::format("M{:.1f} 0h{:.1f}v10H{:.1f}z", x0, std::max(x1 - x0, 0.5), x0);
      }
      bodies[i] = fmt::format(R"(<path class={} d="{}"/>)", colour::kCompute, path);
    }
    out += band_row(bands[i], bodies[i]);
  }
  return out + "</div>";
}

namespace {

struct Range {
  double low = INFINITY, high = -INFINITY;
  void take(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  [[nodiscard]] bool any() const { return low <= high; }
};

/// x of a step in a chart of width 1000.
double x_of(std::size_t step, std::size_t steps) {
  return 1000 * (steps > 1 ? static_cast<double>(step) / static_cast<double>(steps - 1) : 0.5);
}

/// Evaluations joined by a line, with a dot each: nothing was measured between them.
std::string evaluations_svg(const std::vector<double>& values, const std::function<double(double)>& y_of) {
  std::string line, dots;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    const std::string at = fmt::format("{:.1f} {:.1f}", x_of(i, values.size()), y_of(values[i]));
    line += (line.empty() ? "M" : "L") + at;
    dots += "M" + at + "h0";
  }
  return fmt::format(R"(<path d="{}" class="line held-out"/><path d="{}" class="line held-out dots"/>)", line,
                     dots);
}

}  // namespace

std::string loss_html(const std::vector<double>& loss, const std::vector<double>& held_out) {
  constexpr double kHeight = 120;
  constexpr std::size_t kMostColumns = 600;
  Range range, evaluated;
  for (const double value : held_out) evaluated.take(value);
  for (const std::vector<double>* values : {&loss, &held_out})
    for (const double value : *values) range.take(value);
  if (!range.any()) return "<p class=missing>No loss was recorded.</p>";
  const Range shown = range;
  if (range.high == range.low) range.high = range.low + 1e-6;
  const auto y_of = [&](double value) { return kHeight * (range.high - value) / (range.high - range.low); };
  const std::size_t columns = std::min(loss.size(), kMostColumns);
  std::string path;
  bool pen_down = false;
  for (std::size_t c = 0; c < columns; ++c) {
    const std::size_t from = c * loss.size() / columns, to = (c + 1) * loss.size() / columns;
    Range column;
    for (std::size_t i = from; i < to; ++i) column.take(loss[i]);
    if (!column.any()) {
      pen_down = false;
      continue;
    }
    path += fmt::format("{}{:.1f} {:.1f}", pen_down ? "L" : "M", x_of(c, columns), y_of(column.high));
    if (column.low < column.high) path += fmt::format("V{:.1f}", y_of(column.low));
    pen_down = true;
  }
  std::string out = fmt::format(
      R"(<div class=axes><span class=high>{:.4g}</span><span class=low>{:.4g}</span><svg class=plot viewBox="0 0 1000 {}" preserveAspectRatio=none role=img aria-label="loss by step, {} steps, between {:.4g} and {:.4g}"><path d="{}" class=line />{}</svg></div><p class=ends><span>first step</span><span>last</span></p>)",
      shown.high, shown.low, kHeight, loss.size(), shown.low, shown.high, path,
      evaluated.any() ? evaluations_svg(held_out, y_of) : "");
  if (!evaluated.any()) return out;
  const auto last =
      std::find_if(held_out.rbegin(), held_out.rend(), [](double v) { return std::isfinite(v); });
  return out + legend({{colour::kCompute, "loss"},
                       {colour::kReduce,
                        fmt::format("held-out loss, at the step that the evaluation came after; lowest "
                                    "{:.4g}, last {:.4g}",
                                    evaluated.low, *last)}});
}

}  // namespace shardscope::exporter
