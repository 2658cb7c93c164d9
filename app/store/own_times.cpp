#include "app/store/own_times.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace shardscope::store {
namespace {

/// A step further from the known ones than this counts only if the rank's next step follows it.
constexpr std::int64_t kNear = 4096;
constexpr std::int64_t kLargest = std::numeric_limits<std::uint32_t>::max();
/// A step further below the first one than this clears the table.
constexpr std::int64_t kMostBelow = std::int64_t{1} << 20;

}  // namespace

bool OwnTimes::is_sure(std::uint32_t rank, std::int64_t step) {
  if (step >= first_step_ - kNear && step <= last_step_ + kNear) {
    odd_.erase(rank);
    return true;
  }
  const auto [odd, is_first] = odd_.try_emplace(rank, step);
  const std::int64_t before = std::exchange(odd->second, step);
  if (is_first || step <= before || step > before + kNear) return false;
  odd_.erase(odd);
  return true;
}

void OwnTimes::add(std::uint32_t rank, const OwnTime& time) {
  const std::int64_t step = time.step;
  if (ranks_.empty()) {
    first_step_ = last_step_ = step;
  } else if (!is_sure(rank, step)) {
    return;
  }
  if (step < first_step_ - kMostBelow) {
    ranks_.clear();
    odd_.clear();
    shift_ = 0;
    all_changed_ = true;
    first_step_ = last_step_ = step;
  }
  if (step < first_step_) begin_at(step);
  last_step_ = std::max(last_step_, step);
  while (((last_step_ - first_step_) >> shift_) >= static_cast<std::int64_t>(kMost)) fold();
  std::vector<Sum>& sums = ranks_[rank];
  const auto stretch = static_cast<std::size_t>((step - first_step_) >> shift_);
  if (sums.size() <= stretch) sums.resize(stretch + 1);
  Sum& sum = sums[stretch];
  ++sum.steps;
  sum.own_ns += time.own_ns;
  sum.waited_ns += time.waited_ns;
  sum.changed = true;
}

void OwnTimes::begin_at(std::int64_t step) {
  // Leaves one interval free: the first one begins at `step` or before.
  while (((last_step_ - step) >> shift_) + 1 >= static_cast<std::int64_t>(kMost)) fold();
  const std::int64_t stretches = (first_step_ - step + (std::int64_t{1} << shift_) - 1) >> shift_;
  first_step_ -= stretches << shift_;
  for (auto& [rank, sums] : ranks_) sums.insert(sums.begin(), static_cast<std::size_t>(stretches), Sum{});
  all_changed_ = true;
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
      const std::int64_t first = first_step_ + static_cast<std::int64_t>(i << shift_);
      const std::int64_t last = first + (std::int64_t{1} << shift_) - 1;
      out.rows.push_back({.rank = rank,
                          .first_step = static_cast<std::uint32_t>(std::max(first, std::int64_t{0})),
                          .last_step = static_cast<std::uint32_t>(std::min(last, kLargest)),
                          .steps = sum.steps,
                          .own_ns = sum.own_ns,
                          .waited_ns = sum.waited_ns});
    }
  }
  return out;
}

}  // namespace shardscope::store
