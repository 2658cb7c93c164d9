#include "app/export/counter_samples.h"

#include <algorithm>
#include <cmath>

namespace shardscope::exporter {

void for_each_counter_sample(
    const store::Store& store, std::uint32_t rank, const ExportPart& part,
    const std::function<void(const analysis::CounterSeries&, const analysis::CounterSample&)>& visit) {
  if (!analysis::has_counters(store, rank)) return;  // avoids reading blocks
  analysis::CounterLog counters;
  for_each_instant(store, rank, part,
                   [&](const instrumentation::Event& event) { counters.take(store, rank, event); });
  const std::int64_t from_ns = part.of(rank).from_ns;
  for (const analysis::CounterSeries& series : counters.series()) {
    for (analysis::CounterSample sample : series.samples) {
      if (std::isnan(sample.value)) continue;
      sample.at_ns = std::max(sample.at_ns, from_ns);
      visit(series, sample);
    }
  }
}

std::string title_of(const analysis::CounterSeries& series) {
  return series.unit.empty() ? series.name : series.name + " (" + series.unit + ")";
}

}  // namespace shardscope::exporter
