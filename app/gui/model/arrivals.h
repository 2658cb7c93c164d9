// When each rank entered one collective: shows which rank the others waited for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "app/store/store.h"

namespace shardscope::gui {

struct Arrival {
  std::uint32_t rank = 0;
  std::int64_t at_ns = 0;    ///< when the rank's stream reached the collective
  std::int64_t late_ns = 0;  ///< delay after the first rank
};

/// Arrival times of all recorded ranks, in order of rank, at the collective that span `one` on `lane` belongs
/// to. A collective has the same sequence number on all ranks, and none ends before all have entered: the
/// spans of the other ranks overlap this one.
[[nodiscard]] std::vector<Arrival> arrivals(const store::Store& store, store::LaneId lane,
                                            const store::Span& one);

/// Who waited for whom at a barrier, of one of its ranks: "barrier, waits for rank 2", "barrier, last to
/// arrive". Only "barrier" where no other rank's was recorded.
[[nodiscard]] std::string barrier_text(const std::vector<Arrival>& all, std::uint32_t rank);

/// barrier_text() of the barriers that are drawn: arrivals() reads the lanes of all ranks.
class BarrierTexts {
 public:
  /// `run`: Session::number(). `barrier`: a collective that is a barrier.
  [[nodiscard]] std::string of(std::uint64_t run, const store::Store& store, store::LaneId lane,
                               const store::Span& barrier);

 private:
  static constexpr std::size_t kMost = 4096;  ///< more than fit on a screen
  std::uint64_t run_ = 0;
  std::map<std::tuple<std::uint32_t, instrumentation::StreamId, std::int64_t>, std::string> texts_;
};

/// The last rank to arrive, or null with fewer than two ranks.
[[nodiscard]] const Arrival* last_to_arrive(const std::vector<Arrival>& all);

}  // namespace shardscope::gui
