// Detects unusual events of a run whose recording has limits: each becomes a moment, around which the
// recording keeps everything. Needs no copy of the events: it reads steps, memory, ends and losses from the
// collector's totals. Findings, which need the events themselves, are left to `watch`.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "app/analysis/watch.h"
#include "app/cli/detail_switch.h"
#include "app/cli/retention_options.h"
#include "app/collector/collector.h"

namespace shardscope::cli {

class FlightRecorder {
 public:
  FlightRecorder(collector::Collector& collector, const collector::CollectorOptions& options,
                 const RetentionOptions& kept);
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;
  /// Call often; it looks once a second. Where everything is kept it only answers requests.
  void look();

 private:
  using Clock = std::chrono::steady_clock;
  void look_at(const store::Store& store, bool asked, Clock::time_point now);
  /// Answers requests of viewers.
  void answer(std::vector<store::Moment> asked_for, const std::string& stopped);
  void found(const store::Store& store, const analysis::Trigger& trigger);
  /// Keeps a new moment; returns the outcome as text.
  std::string keep(store::Moment moment, const std::string& stopped);
  /// Whether no earlier moment of its kind keeps its time.
  [[nodiscard]] bool is_new(const store::Moment& moment);
  /// Collector clock.
  [[nodiscard]] std::int64_t now_ns() const;

  collector::Collector& collector_;
  instrumentation::HostClock clock_;
  std::string off_;  ///< why requests are refused; empty: they are not
  std::int64_t around_ns_;
  bool sized_;
  std::vector<std::string> triggers_;
  analysis::Watcher watcher_;
  DetailSwitch detail_;
  std::uint32_t step_ = instrumentation::kNoId;  ///< the last completed one
  std::uint64_t events_ = 0;
  Clock::time_point next_{}, changed_ = Clock::now();
  std::vector<store::Moment> found_;
  std::map<std::string, std::int64_t> kept_until_;  ///< by kind: what its last moment keeps, collector clock
};

}  // namespace shardscope::cli
