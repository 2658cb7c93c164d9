#include "app/gui/model/sampled_curves.h"

#include <algorithm>

#include "app/gui/model/format.h"
#include "app/store/span_time.h"

namespace shardscope::gui {

std::vector<SampledCounter> sampled_counters(const AppState& app) {
  std::vector<SampledCounter> out;
  for (const store::RankRow& row : app.store().ranks()) {
    for (const analysis::CounterSeries& series : app.run->index().counters(row.rank)) {
      if (std::ranges::find(out, series.name, &SampledCounter::name) == out.end())
        out.push_back({series.name, series.unit, series.rate, series.own});
    }
  }
  std::stable_partition(out.begin(), out.end(), [](const SampledCounter& counter) { return !counter.own; });
  return out;
}

std::optional<SampledCounter> sampled_counter(const AppState& app, std::uint32_t rank,
                                              const std::string& name) {
  const auto counters = app.run->index().counters(rank);
  const auto found = std::ranges::find(counters, name, &analysis::CounterSeries::name);
  if (found == counters.end()) return std::nullopt;
  return SampledCounter{found->name, found->unit, found->rate, found->own};
}

std::string meaning_text(const SampledCounter& counter) {
  return std::string(counter.own ? "A counter of the program"
                                 : "Sampled when steps end, at most once a second") +
         (counter.rate ? "; each value is the mean since the sample before"
                       : "; a value holds until the next sample");
}

std::string value_text(const SampledCounter& counter, double value) {
  return significant(value, 4) + (counter.unit.empty() ? "" : " " + counter.unit);
}

RowCurve sampled_curve(const AppState& app, const std::string& name, std::uint32_t rank, TimeRange range,
                       std::size_t count) {
  RowCurve out;
  const StepSeries* const curve = app.run->index().counter_curve(rank, name);
  if (curve == nullptr || curve->empty()) {
    out.instead = "rank " + std::to_string(rank) + " has no samples of it";
    return out;
  }
  out.columns = curve->columns(range, count);
  const std::int64_t known_until = store::known_until(app.store(), rank);
  const double width =
      static_cast<double>(range.length()) / static_cast<double>(std::max<std::size_t>(count, 1));
  for (std::size_t i = count; i-- > 0;) {
    if (range.begin_ns + static_cast<std::int64_t>(width * static_cast<double>(i)) <= known_until) break;
    out.columns[i] = {};
  }
  return out;
}

std::string tip_of(const SampledCounter& counter, std::uint32_t rank, const RowCurve& curve, TimeRange range,
                   std::int64_t at_ns) {
  std::string out = counter.name + " of rank " + std::to_string(rank);
  const double width = static_cast<double>(range.length()) /
                       static_cast<double>(std::max<std::size_t>(curve.columns.size(), 1));
  const auto column =
      static_cast<std::size_t>(std::max(0.0, static_cast<double>(at_ns - range.begin_ns) / width));
  if (column >= curve.columns.size() || !curve.columns[column].any) {
    out += curve.instead.empty() ? ": not known here" : ": " + curve.instead;
  } else {
    const ColumnRange& here = curve.columns[column];
    out += ": " + value_text(counter, here.high);
    if (here.low < here.high) out += ", at least " + value_text(counter, here.low);
  }
  return out + ".\n" + meaning_text(counter) + ".";
}

}  // namespace shardscope::gui
