// The state of one rank at a time: from the keyframe of a block and the changes in it.
#include <algorithm>
#include <chrono>

#include "app/store/rank_run.h"

namespace shardscope::store {
namespace {

using For = RankState::For;

/// Blocks of one rank overlap in time because its threads' rings do; one event with a time far ahead
/// must not make every later query replay the whole run.
constexpr std::size_t kMostReplayed = 8;

/// For a block whose events were not kept: the highest sample of about that time.
CategoryBytes at_most(const Block& block, std::size_t pool, std::int64_t at_ns) {
  const std::vector<MemoryIndex::Leaf>& leaves = block.memory[pool].leaves;
  const auto next =
      std::partition_point(leaves.begin(), leaves.end(),
                           [at_ns](const MemoryIndex::Leaf& leaf) { return leaf.begin_ns <= at_ns; });
  return next == leaves.begin() ? block.begin.memory[pool].bytes : std::prev(next)->highest.bytes;
}

}  // namespace

std::size_t RankRun::base_of(std::int64_t at_ns) const {
  const auto base =
      static_cast<std::size_t>(std::upper_bound(reach_.begin(), reach_.end(), at_ns) - reach_.begin());
  const auto last =
      static_cast<std::size_t>(std::upper_bound(floor_.begin(), floor_.end(), at_ns) - floor_.begin());
  return last > base + kMostReplayed ? last - kMostReplayed : base;
}

bool RankRun::is_known(std::int64_t at_ns) const {
  const std::size_t base = base_of(at_ns);
  if (base == 0 && at_ns <= evicted_until_) return false;
  if (base == reach_.size()) return true;
  // Called for every rank in view: decodes nothing.
  if (is_packed()) {
    const PackedBlock& packed = packed_[base];
    return packed.origin.begin_ns > at_ns || (!packed.sum && !packed.damaged);
  }
  const Block& block = blocks_[base];
  // Between two blocks the next one's keyframe has the state.
  return block.begin_ns > at_ns || (!block.sum && !block.damaged);
}

void RankRun::param_states(std::int64_t at_ns, std::span<ParamState> out) const {
  (void)unpack();
  const std::size_t base = base_of(at_ns);
  if (base == blocks_.size()) {
    head_.state.status().all_at(at_ns, out);
    return;
  }
  bool any = false;
  const std::size_t last = std::max(holding(kFirst, at_ns).last, base + 1);
  for (std::size_t i = base; i < last; ++i) {
    const auto known = state(i, For::states);
    if (known == nullptr) continue;
    if (!any) {
      known->status().all_at(at_ns, out);
    } else {
      known->status().replay(at_ns, out);
    }
    any = true;
  }
  if (!any) std::fill(out.begin(), out.end(), access_.initial);
  head_.state.status().replay(at_ns, out);
}

bool RankRun::read_states(std::int64_t at_ns, std::chrono::nanoseconds time) const {
  const auto began = std::chrono::steady_clock::now();
  (void)unpack();
  const std::size_t base = base_of(at_ns);
  if (base == blocks_.size()) return true;
  bool any = false;
  const std::size_t last = std::max(holding(kFirst, at_ns).last, base + 1);
  for (std::size_t i = base; i < last; ++i) {
    if (access_.is_read(blocks_[i], static_cast<std::uint32_t>(i), For::states)) continue;
    if (any && std::chrono::steady_clock::now() - began >= time) return false;
    (void)state(i, For::states);
    any = true;
  }
  return true;
}

std::vector<Store::StatusChange> RankRun::status_history(std::uint32_t param, std::int64_t until_ns,
                                                         std::size_t most) const {
  std::vector<Store::StatusChange> out;
  const auto take = [&](const StatusIndex& status) {
    for (const Store::StatusChange& change : status.history(param)) {
      if (change.at_ns <= until_ns) out.push_back(change);
    }
  };
  take(head_.state.status());
  for (std::size_t i = holding(kFirst, until_ns).last; i-- > 0 && out.size() < most;) {
    if (const auto known = state(i, For::states)) take(known->status());
  }
  std::stable_sort(out.begin(), out.end(), [](const Store::StatusChange& a, const Store::StatusChange& b) {
    return a.at_ns < b.at_ns;
  });
  if (out.size() > most) out.erase(out.begin(), out.end() - static_cast<std::ptrdiff_t>(most));
  return out;
}

std::vector<BucketState> RankRun::buckets_at(std::int64_t at_ns) const {
  const std::size_t next = holding(kFirst, at_ns).last;
  // The head, unless the time is before it.
  if (next == blocks_.size() && (blocks_.empty() || reach_.back() <= at_ns)) {
    return head_.state.buckets_at(at_ns);
  }
  for (std::size_t i = next; i-- > 0;) {
    if (const auto known = state(i, For::states)) return known->buckets_at(at_ns);
    break;
  }
  return {};
}

MemorySample RankRun::memory_at(std::size_t pool, std::int64_t at_ns) const {
  (void)unpack();
  const std::size_t base = base_of(at_ns);
  MemorySample out{.at_ns = at_ns, .bytes = {}};
  if (const MemorySample* const coarse = history_[pool].at(at_ns);
      coarse != nullptr && base == 0 && at_ns <= history_[pool].end_ns()) {
    return {.at_ns = at_ns, .bytes = coarse->bytes};  // an upper bound, at about that time
  }
  if (base < blocks_.size() && blocks_[base].sum) {
    out.bytes = at_most(blocks_[base], pool, at_ns);
  } else if (base == blocks_.size()) {
    out = head_.state.memory(pool).at(at_ns);
  } else {
    bool any = false;
    const std::size_t last = std::max(holding(kFirst, at_ns).last, base + 1);
    for (std::size_t i = base; i < last; ++i) {
      const auto known = state(i, For::states);
      if (known == nullptr) continue;
      if (!any) {
        out = known->memory(pool).at(at_ns);
      } else {
        known->memory(pool).replay(at_ns, out);
      }
      any = true;
    }
    head_.state.memory(pool).replay(at_ns, out);
  }
  for (std::int64_t& bytes : out.bytes) bytes = std::max<std::int64_t>(bytes, 0);
  return out;
}

std::optional<MemorySample> RankRun::memory_peak(std::size_t pool) const {
  const std::optional<MemorySample> newest = head_.state.memory(pool).peak();
  const std::optional<MemorySample>& sealed = peaks_[pool].all;
  if (!sealed) return newest;
  return newest && newest->total() > sealed->total() ? newest : sealed;
}

std::optional<MemorySample> RankRun::model_state_peak(std::size_t pool) const {
  const std::optional<MemorySample> newest = head_.state.memory(pool).model_state_peak();
  const std::optional<MemorySample>& sealed = peaks_[pool].model_state;
  if (!sealed) return newest;
  return newest && newest->total() > sealed->total() ? newest : sealed;
}

}  // namespace shardscope::store
