#include "app/store/retention.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace shardscope::store {
namespace {

/// Percentages of `max_bytes`: deletion begins above kFull and ends at kEnough. Data that arrives before the
/// next call of due() fits between kFull and the limit.
constexpr std::uint64_t kFull = 90, kEnough = 85, kOf = 100;

/// Saturating addition: times of a damaged run may have any value.
std::int64_t plus(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return b < 0 ? INT64_MIN : INT64_MAX;
  return sum;
}

}  // namespace

void RetentionPlan::wrote(std::uint32_t rank, std::int64_t id, std::int64_t begin_ns, std::int64_t end_ns,
                          std::uint64_t bytes) {
  const Key key{end_ns, id};
  const Entry entry{rank, begin_ns, bytes};
  (pinned(key, entry) ? pinned_ : blocks_).emplace(key, entry);
  Key& newest = newest_block_[rank];
  if (newest.id <= id) newest = key;
  reached(end_ns);
}

void RetentionPlan::part_ended() {
  std::int64_t reached_ns = std::min(newest_ns_, now_ns_);
  for (const auto& [rank, newest] : newest_block_) reached_ns = std::min(reached_ns, newest.end_ns);
  blocks_.clear();
  pinned_.clear();
  newest_block_.clear();
  const auto ended = [&](const Moment& moment) { return moment.end_ns < reached_ns; };
  for (const Moment& moment : moments_) {
    if (ended(moment)) ended_moments_.push_back(moment);
  }
  if (std::erase_if(moments_, ended) == 0) return;
  std::ranges::sort(ended_moments_, {}, &Moment::at_ns);
  ++moments_revision_;
}

void RetentionPlan::deleted_until(std::int64_t until_ns) {
  if (std::erase_if(ended_moments_, [&](const Moment& moment) { return moment.end_ns <= until_ns; }) != 0)
    ++moments_revision_;
}

bool RetentionPlan::keep(Moment moment) {
  if (retention_.moments == 0) return false;
  const std::int64_t until_ns = std::max(moment.at_ns, moment.lasts_until_ns);
  moment.begin_ns = plus(moment.at_ns, -retention_.around_ns);
  moment.end_ns = plus(until_ns, retention_.around_ns);
  const bool known = std::any_of(moments_.begin(), moments_.end(), [&](const Moment& other) {
    return other.kind == moment.kind && other.begin_ns <= moment.at_ns && until_ns <= other.end_ns;
  });
  if (known) return false;
  const auto at = std::upper_bound(moments_.begin(), moments_.end(), moment.at_ns,
                                   [](std::int64_t ns, const Moment& other) { return ns < other.at_ns; });
  const std::int64_t begin_ns = moment.begin_ns;
  const auto added = moments_.insert(at, std::move(moment));
  ++moments_revision_;
  for (auto block = blocks_.lower_bound({begin_ns, INT64_MIN}); block != blocks_.end();) {
    const auto next = std::next(block);
    if (pinned(block->first, block->second)) pinned_.insert(blocks_.extract(block));
    block = next;
  }
  if (moments_.size() > retention_.moments) forget(eviction_candidate(&*added));
  return true;
}

std::vector<Moment>::iterator RetentionPlan::eviction_candidate(const Moment* added) {
  std::map<std::string, std::size_t> of_kind;
  for (const Moment& moment : moments_) ++of_kind[moment.kind];
  auto found = moments_.end();
  for (auto moment = moments_.begin(); moment != moments_.end(); ++moment) {
    if (moment->kind == kRequested || &*moment == added) continue;
    if (found == moments_.end() || of_kind[moment->kind] > of_kind[found->kind]) found = moment;
  }
  return found == moments_.end() ? moments_.begin() : found;
}

void RetentionPlan::forget(std::vector<Moment>::iterator moment) {
  const std::int64_t begin_ns = moment->begin_ns;
  moments_.erase(moment);
  ++moments_revision_;
  for (auto block = pinned_.lower_bound({begin_ns, INT64_MIN}); block != pinned_.end();) {
    const auto next = std::next(block);
    if (!pinned(block->first, block->second)) blocks_.insert(pinned_.extract(block));
    block = next;
  }
}

bool RetentionPlan::pinned(const Key& key, const Entry& entry) const {
  return std::any_of(moments_.begin(), moments_.end(), [&](const Moment& moment) {
    return entry.begin_ns <= moment.end_ns && key.end_ns >= moment.begin_ns;
  });
}

/// Blocks that ended before the returned time are too old.
std::int64_t RetentionPlan::oldest_by_age() const {
  const std::int64_t newest_ns = std::min(newest_ns_, now_ns_),
                     by_age = plus(newest_ns, -retention_.max_age_ns);
  if (retention_.moments == 0 || pending_ns_ == INT64_MAX) return by_age;
  std::int64_t most = std::max(retention_.max_age_ns, retention_.around_ns);
  if (__builtin_mul_overflow(most, kPendingAges, &most)) most = INT64_MAX;
  return std::min(by_age, std::max(plus(pending_ns_, -retention_.around_ns), plus(newest_ns, -most)));
}

RetentionPlan::Rows RetentionPlan::due(std::uint64_t used_bytes) {
  Rows out;
  if (!retention_.limited() || newest_ns_ == INT64_MIN) return out;
  if (retention_.moment_age_ns > 0) {
    const std::int64_t from_ns = plus(std::min(newest_ns_, now_ns_), -retention_.moment_age_ns);
    while (!moments_.empty() && moments_.front().end_ns < from_ns) forget(moments_.begin());
  }
  const auto take = [&](Blocks::iterator at) {
    out[at->second.rank].push_back(at->first.id);
    used_bytes -= std::min(used_bytes, at->second.bytes);
    return blocks_.erase(at);
  };
  const auto stays = [&](const Blocks::value_type& block) {
    return newest_block_[block.second.rank].id == block.first.id;
  };
  if (retention_.max_age_ns > 0) {
    const std::int64_t from_ns = oldest_by_age();
    for (auto at = blocks_.begin(); at != blocks_.end() && at->first.end_ns < from_ns;)
      at = stays(*at) ? std::next(at) : take(at);
  }
  if (retention_.max_bytes > 0 && used_bytes > retention_.max_bytes / kOf * kFull) {
    const std::uint64_t enough = retention_.max_bytes / kOf * kEnough;
    for (;;) {
      for (auto at = blocks_.begin(); at != blocks_.end() && used_bytes > enough;)
        at = stays(*at) ? std::next(at) : take(at);
      if (used_bytes <= enough || moments_.empty()) break;
      forget(eviction_candidate());
    }
  }
  for (auto& [rank, rows] : out) std::sort(rows.begin(), rows.end());
  return out;
}

}  // namespace shardscope::store
