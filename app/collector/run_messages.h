// Messages of the run that the collector writes itself: each is recorded and shown by viewers; those about a
// rank that is connected to it are relayed to the collector above as well.
#pragma once

#include <cstdint>
#include <string>

#include "app/collector/rank_session.h"
#include "app/collector/run_record.h"
#include "app/collector/upstream_relay.h"
#include "instrumentation/clock.h"
#include "instrumentation/host_clock.h"
#include "instrumentation/wire.h"

namespace shardscope::collector {

class RunMessages {
 public:
  using Severity = instrumentation::Severity;

  /// `header`: of messages that the collector sends. All must outlive it.
  RunMessages(RunRecord& record, const instrumentation::HostClock& clock, UpstreamRelay& relay,
              const wire::Header& header)
      : record_(record), clock_(clock), relay_(relay), header_(header) {}

  /// Nanoseconds on the collector's clock. From any thread.
  [[nodiscard]] std::int64_t clock_now() const noexcept {
    return clock_.at(instrumentation::monotonic_now_ns());
  }
  /// Records a message with the present time. Any thread; only after RunRecord::begin().
  void record(std::uint32_t rank, Severity severity, const std::string& text) {
    record_at(rank, clock_now(), severity, text);
  }
  /// `at_ns`: on the collector's clock.
  void record_at(std::uint32_t rank, std::int64_t at_ns, Severity severity, const std::string& text) {
    record_.recorder().message(rank, at_ns, severity, text);
  }
  /// Records a message about a rank that is connected here, and relays it: the collector above cannot observe
  /// that rank itself. Only on the collector's thread.
  void report_rank(const RankSession& rank, Severity severity, const std::string& text);

 private:
  RunRecord& record_;
  const instrumentation::HostClock& clock_;
  UpstreamRelay& relay_;
  const wire::Header& header_;
};

}  // namespace shardscope::collector
