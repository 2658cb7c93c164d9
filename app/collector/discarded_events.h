// Events of a rank's earlier processes that a node's collector has discarded and not yet reported upstream:
// their number, their time range, and how many of them may have arrived all the same. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <variant>

#include "instrumentation/wire.h"

namespace shardscope::collector {

class DiscardedEvents {
 public:
  [[nodiscard]] bool empty() const noexcept { return events_ == 0; }
  /// Adds a batch's events and the drops that it reports. Ignores other bodies.
  void add(const instrumentation::wire::Body& body) {
    const auto* batch = std::get_if<instrumentation::wire::Batch>(&body);
    if (batch == nullptr) return;
    events_ += batch->events.size() + batch->dropped_here;
    cover(batch->begin_ns, batch->end_ns);
    // In a batch that reports drops its range is that of the drops.
    for (const instrumentation::Event& event : batch->events) {
      const auto at_ns = static_cast<std::int64_t>(event.ticks);
      cover(at_ns, at_ns + 1);
    }
  }
  /// Adds events whose times are not known.
  void add(std::uint64_t events) noexcept { events_ += events; }
  /// Marks part of the added events as sent and unconfirmed: they may have arrived.
  void add_under_way(std::uint64_t events) noexcept { under_way_ += events; }
  void add(const DiscardedEvents& other) noexcept {
    events_ += other.events_;
    under_way_ += other.under_way_;
    cover(other.begin_ns_, other.end_ns_);
  }

  /// A batch without events that reports them as dropped; the caller fills in its clock and relay.
  [[nodiscard]] instrumentation::wire::Batch as_drops() const {
    instrumentation::wire::Batch batch;
    batch.dropped_here = events_;
    if (begin_ns_ <= end_ns_) {
      batch.begin_ns = begin_ns_;
      batch.end_ns = end_ns_;
    }
    return batch;
  }
  [[nodiscard]] std::string text(std::uint32_t rank) const {
    return "rank " + std::to_string(rank) + ": " + std::to_string(events_) +
           " events of an earlier process of it were discarded by its node's collector" +
           (under_way_ == 0 ? ""
                            : ", " + std::to_string(under_way_) +
                                  " of them sent without a receipt: these may have arrived") +
           "; the rank was restarted more often than the collector above received anything";
  }

 private:
  void cover(std::int64_t begin_ns, std::int64_t end_ns) noexcept {
    begin_ns_ = std::min(begin_ns_, begin_ns);
    end_ns_ = std::max(end_ns_, end_ns);
  }
  std::uint64_t events_ = 0, under_way_ = 0;
  std::int64_t begin_ns_ = INT64_MAX, end_ns_ = INT64_MIN;
};

}  // namespace shardscope::collector
