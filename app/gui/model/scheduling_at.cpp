#include "app/gui/model/scheduling_at.h"

#include <algorithm>

namespace shardscope::gui {

const analysis::Scheduling& SchedulingAt::of(const store::Store& store, std::uint32_t rank,
                                             std::int64_t at_ns) {
  const auto micro = analysis::micro_step_at(store, rank, at_ns);
  if (!micro) {  // returns the reason; cheap, as no scheduler runs
    key_.reset();
    scheduling_ = analysis::compare_scheduling(store, rank, at_ns);
    return scheduling_;
  }
  const Key key{&store, rank, micro->front().number, micro->back().number};
  if (key_ != key) {
    scheduling_ = analysis::compare_scheduling(store, rank, at_ns);
    key_ = key;
  }
  return scheduling_;
}

std::optional<std::size_t> SchedulingAt::difference_from(const analysis::Scheduling& scheduling,
                                                         std::uint64_t gate) {
  const auto& differences = scheduling.comparison.differences;
  const auto found = std::find_if(differences.begin(), differences.end(), [&](const auto& difference) {
    return scheduling.gates.at(static_cast<std::size_t>(difference.visit)).number >= gate;
  });
  if (found == differences.end()) return std::nullopt;
  return static_cast<std::size_t>(found - differences.begin());
}

}  // namespace shardscope::gui
