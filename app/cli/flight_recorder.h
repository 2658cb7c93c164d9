// The recorder's own watch over a run of which not everything is kept: what is unusual becomes a moment,
// around which the recording keeps everything. It costs no copy of the events: steps, memory, ends and losses
// of the collector's totals are what it looks at; findings, which need the events themselves, are `watch`'s.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "app/analysis/watch.h"
#include "app/collector/collector.h"

namespace shardscope::cli {

class FlightRecorder {
 public:
  /// `triggers`: by name_of(analysis::TriggerKind); empty: all.
  FlightRecorder(collector::Collector& collector, const store::Retention& retention,
                 std::vector<std::string> triggers);
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;
  /// Called often; looks once a second. Does nothing where everything is kept.
  void look();

 private:
  using Clock = std::chrono::steady_clock;
  void keep(const store::Store& store, const analysis::Trigger& trigger);
  /// Not within what another of its kind keeps.
  [[nodiscard]] bool is_new(const store::Moment& moment);

  collector::Collector& collector_;
  bool on_;
  std::int64_t around_ns_;
  std::vector<std::string> triggers_;
  analysis::Watcher watcher_;
  std::uint64_t events_ = 0;
  Clock::time_point next_{}, changed_ = Clock::now();
  std::vector<store::Moment> found_;
  std::map<std::string, std::int64_t> last_;  ///< by kind: when the last moment was, collector clock
};

}  // namespace shardscope::cli
