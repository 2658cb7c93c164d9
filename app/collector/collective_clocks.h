// Clock samples from collectives: no rank leaves a collective before every rank has entered it, so each one
// bounds the offsets between the ranks' clocks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "app/collector/clock_estimator.h"
#include "app/collector/collector_pace.h"
#include "instrumentation/event.h"
#include "instrumentation/wire.h"

namespace shardscope::collector {

class RankSession;
class RankTable;

/// One rank in one collective, in the time of the clock that its estimator converts.
struct CollectiveSample {
  std::int64_t begin_ns = 0;  ///< this rank entered
  std::int64_t all_arrived_ns =
      0;                      ///< from then on it knew that every rank had: collective_entered, or its end
  std::int64_t error_ns = 0;  ///< bound on the error of both
};

/// Collects the events of each collective from all ranks, which arrive one rank after the other. Memory is
/// bounded by kSlots collectives times the world size.
class CollectiveClockSamples {
 public:
  /// Collectives sampled at a time, and the time to wait for the last rank of one: longer than its node's
  /// collector may hold back the rank's messages.
  static constexpr std::size_t kSlots = 16;
  static constexpr double kTimeout_s = 2 * kLongestPack_s;

  /// Adds events of a rank in order of time; `to_node_ns` is added to their times. Uses collectives among all
  /// ranks that have a `collective_entered` event or whose operation cannot end before every rank has entered
  /// it.
  void add(std::uint32_t rank, std::uint32_t world, std::span<const instrumentation::Event> events,
           std::int64_t to_node_ns, std::int64_t error_ns, double now_s);
  /// The samples of one complete collective, by rank; nullopt while none is complete.
  [[nodiscard]] std::optional<std::vector<CollectiveSample>> take();
  /// A process was restarted: its sequence numbers start over.
  void restart() { *this = {}; }

 private:
  struct Slot {
    std::uint32_t sequence = 0;
    instrumentation::CollectiveOp op{};
    bool in_use = false;
    double since_s = 0;
    std::uint32_t missing = 0;               ///< ranks with one of the two times missing
    std::vector<CollectiveSample> of_ranks;  ///< INT64_MIN: not received
  };
  void add_begin(std::uint32_t rank, std::uint32_t world, const instrumentation::Event& event,
                 std::int64_t to_node_ns, std::int64_t error_ns, double now_s);
  void add_all_arrived(std::uint32_t rank, const instrumentation::Event& event, std::int64_t to_node_ns,
                       std::int64_t error_ns);
  [[nodiscard]] Slot* find(std::uint32_t sequence);
  [[nodiscard]] Slot* free_slot(double now_s);
  void update_marks() noexcept;

  std::array<Slot, kSlots> slots_;
  std::uint64_t marks_ = 0;   ///< bit of each sequence number in a slot, modulo 64: excludes most numbers
  std::uint32_t newest_ = 0;  ///< highest sequence number received
  bool any_seen_ = false;
  double admitted_s_ = -1e300;
};

/// The bounds of each rank's clock narrow those of all others: the last rank had entered by the latest time
/// that its own bounds allow, and no rank had left before that. Returns how many of the estimators (one
/// each rank, null where none is known) contradict it; these are not changed.
std::size_t refine_clocks(std::span<const CollectiveSample> samples, std::span<ClockEstimator* const> clocks);

/// Narrows the clocks of a run by the collectives among its ranks. Owns the samples; the collector's thread
/// passes each accepted batch to learn().
class CollectiveClocks {
 public:
  /// Refines the clocks of `ranks` by the collectives that this batch of `rank` completes; does nothing where
  /// all ranks are on one clock. Returns, for each collective that contradicts round trips, the number of
  /// ranks whose clocks it contradicts; those clocks are not changed.
  [[nodiscard]] std::vector<std::size_t> learn(RankTable& ranks, std::uint32_t world, const RankSession& rank,
                                               const instrumentation::wire::Batch& batch, double now_s);
  /// As CollectiveClockSamples::restart().
  void restart() { samples_.restart(); }

 private:
  CollectiveClockSamples samples_;
};

}  // namespace shardscope::collector
