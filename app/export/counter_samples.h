// Sampled counters of a part (app/analysis/counters.h), for the formats that have counters.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "app/analysis/counters.h"
#include "app/export/part.h"

namespace shardscope::exporter {

/// Calls `visit` for the known samples of a rank that the part's events give: series by series, in order of
/// time. An interval that began before the part is cut at the begin of the part. The value that a state has
/// at the begin is known only from its first sample in the part.
void for_each_counter_sample(
    const store::Store& store, std::uint32_t rank, const ExportPart& part,
    const std::function<void(const analysis::CounterSeries&, const analysis::CounterSample&)>& visit);

/// "GPU power (W)"
[[nodiscard]] std::string title_of(const analysis::CounterSeries& series);

}  // namespace shardscope::exporter
