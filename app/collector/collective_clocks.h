// What collectives say of the ranks' clocks: nobody is through one before everybody has come to it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "app/collector/clock_estimator.h"
#include "instrumentation/event.h"

namespace shardscope::collector {

/// One rank in a collective, on the clock that its estimator is of.
struct Meeting {
  std::int64_t came_ns = 0;   ///< it began
  std::int64_t met_ns = 0;    ///< it knew that all had come: they were there, or it was done
  std::int64_t error_ns = 0;  ///< bound on the error of both
};

/// Puts together what ranks tell, one after the other and some later than others, of the same collective.
/// Watches a few at a time; memory is bounded by these and the world.
class CollectiveMeetings {
 public:
  /// Collectives watched at a time, and for how long their ranks are waited for.
  static constexpr std::size_t kWatched = 16;
  static constexpr double kPatience_s = 5;

  /// Events of a rank in order of time; `to_node_ns` is added to their times. Those of collectives among all
  /// ranks count, where `collective_entered` says that all had come or where the operation cannot end before.
  void add(std::uint32_t rank, std::uint32_t world, std::span<const instrumentation::Event> events,
           std::int64_t to_node_ns, std::int64_t error_ns, double now_s);
  /// What every rank told of one collective, by rank; nothing when there is none that is whole.
  [[nodiscard]] std::optional<std::vector<Meeting>> take();
  /// Sequence numbers begin anew, because a process does.
  void restart() { *this = {}; }

 private:
  struct Watched {
    std::uint32_t sequence = 0;
    instrumentation::CollectiveOp op{};
    bool in_use = false;
    double since_s = 0;
    std::uint32_t missing = 0;      ///< ranks that have not told both
    std::vector<Meeting> of_ranks;  ///< INT64_MIN: not told
  };
  void began(std::uint32_t rank, std::uint32_t world, const instrumentation::Event& event,
             std::int64_t to_node_ns, std::int64_t error_ns, double now_s);
  void met(std::uint32_t rank, const instrumentation::Event& event, std::int64_t to_node_ns,
           std::int64_t error_ns);
  [[nodiscard]] Watched* find(std::uint32_t sequence);
  [[nodiscard]] Watched* room(double now_s);
  void mark() noexcept;

  std::array<Watched, kWatched> watched_;
  std::uint64_t marks_ = 0;   ///< bit of each sequence number watched, modulo 64: most are not
  std::uint32_t newest_ = 0;  ///< sequence number that any rank has told of
  bool heard_ = false;
  double admitted_s_ = -1e300;
};

/// Every rank's own bounds carry over to all others: the last to come had come by its own latest reckoning,
/// and whoever had met the others did so after that. Returns how many of the estimators (one each rank, null
/// where none is known) contradict it; these stay as they were.
std::size_t refine_clocks(std::span<const Meeting> meetings, std::span<ClockEstimator* const> clocks);

}  // namespace shardscope::collector
