#include "app/store/own_times.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace shardscope::store {
namespace {

/// Steps in a stretch at most. A step number beyond what that allows is damaged: it must not make one stretch
/// of all that came before.
constexpr std::uint32_t kMostShift = 20;

}  // namespace

void OwnTimes::add(std::uint32_t rank, const OwnTime& time) {
  if (!first_step_) first_step_ = time.step;
  // A run that went back to a checkpoint of before this recording began.
  if (time.step < *first_step_) return;
  const std::uint32_t step = time.step - *first_step_;
  if ((step >> kMostShift) >= kMost) return;
  while ((step >> shift_) >= kMost) fold();
  std::vector<Sum>& sums = ranks_[rank];
  if (sums.size() <= (step >> shift_)) sums.resize((step >> shift_) + 1);
  Sum& sum = sums[step >> shift_];
  ++sum.steps;
  sum.own_ns += time.own_ns;
  sum.waited_ns += time.waited_ns;
  sum.changed = true;
}

void OwnTimes::fold() {
  ++shift_;
  all_changed_ = true;
  for (auto& [rank, sums] : ranks_) {
    const std::size_t count = (sums.size() + 1) / 2;
    for (std::size_t i = 0; i < count; ++i) {
      Sum both = sums[2 * i];
      if (2 * i + 1 < sums.size()) {
        const Sum& second = sums[2 * i + 1];
        both.steps += second.steps;
        both.own_ns += second.own_ns;
        both.waited_ns += second.waited_ns;
      }
      sums[i] = both;
    }
    sums.resize(count);
  }
}

OwnTimes::Changes OwnTimes::changes() {
  Changes out{.all = std::exchange(all_changed_, false), .rows = {}};
  for (auto& [rank, sums] : ranks_) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      Sum& sum = sums[i];
      if (sum.steps == 0 || !(out.all || sum.changed)) continue;
      sum.changed = false;
      const std::uint32_t first = *first_step_ + static_cast<std::uint32_t>(i << shift_);
      const std::uint32_t rest = std::numeric_limits<std::uint32_t>::max() - first;
      out.rows.push_back({.rank = rank,
                          .first_step = first,
                          .last_step = first + std::min((std::uint32_t{1} << shift_) - 1, rest),
                          .steps = sum.steps,
                          .own_ns = sum.own_ns,
                          .waited_ns = sum.waited_ns});
    }
  }
  return out;
}

}  // namespace shardscope::store
