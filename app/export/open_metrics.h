// A live run's figures in the text format of OpenMetrics 1.0 (prometheus.io, openmetrics.io): what a
// Prometheus server scrapes and what node_exporter's textfile collector reads.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "app/analysis/watch.h"
#include "app/store/store.h"

namespace shardscope::exporter {

/// Figures of the whole run up to now: counters never fall while one `watch` runs.
class OpenMetrics {
 public:
  /// Counts the steps and triggers of an interval.
  void take(const analysis::WatchInterval& interval);
  /// All metrics, ending with "# EOF". Figures that were not recorded are left out.
  [[nodiscard]] std::string text(const store::Store& store, const analysis::WatchInterval& interval) const;

 private:
  std::uint64_t steps_ = 0;
  std::array<std::uint64_t, analysis::kTriggerKinds> triggers_{};  ///< by kind
};

}  // namespace shardscope::exporter
