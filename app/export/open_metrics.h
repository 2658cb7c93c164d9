// A live run's figures in the text format of OpenMetrics 1.0 (prometheus.io, openmetrics.io): scraped by a
// Prometheus server or read by node_exporter's textfile collector.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "app/analysis/watch.h"
#include "app/store/store.h"

namespace shardscope::exporter {

/// Figures of the run up to now. Counters never decrease during one `watch`.
class OpenMetrics {
 public:
  /// Adds the steps and triggers of an interval to the counters.
  void count(const analysis::WatchInterval& interval);
  /// The figures of its steps are shown until later ones replace them: a gauge that is absent while no step
  /// ends would be taken for a run that is gone.
  void show(const analysis::WatchInterval& interval);
  /// Whether it has figures of steps.
  [[nodiscard]] bool any_step() const noexcept { return shown_.step != instrumentation::kNoId; }
  /// Another run has begun: figures of steps are not known yet.
  void forget_steps() { shown_ = {}; }
  /// All metrics, ending with "# EOF". Figures that were not recorded are omitted.
  [[nodiscard]] std::string text(const store::Store& store, const analysis::WatchInterval& interval) const;

 private:
  analysis::WatchInterval shown_;  ///< the latest figures of steps
  std::uint64_t steps_ = 0;
  std::array<std::uint64_t, analysis::kTriggerKinds> triggers_{};  ///< by kind
};

}  // namespace shardscope::exporter
