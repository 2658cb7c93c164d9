#include "app/store/block_sum.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

#include "app/store/span_totals.h"

namespace shardscope::store {
namespace {

constexpr std::size_t kMostLeaves = 16;
/// A user pauses by hand: of more pauses than this a sum keeps the first ones.
constexpr std::size_t kMostPauses = 1024;
constexpr std::uint64_t kMostCount = std::numeric_limits<std::uint32_t>::max();

using CountKey = std::pair<ev::EventKind, std::uint8_t>;

bool fits(const Block& a, const Block& b) {
  const std::uint64_t until = b.sequence + b.parts;
  if (until < a.sequence || until - a.sequence > kMostCount) return false;
  std::map<CountKey, std::uint64_t> sums;
  for (const Block* block : {&a, &b}) {
    for (const InstantCount& count : block->counts) sums[{count.kind, count.code}] += count.count;
  }
  return std::all_of(sums.begin(), sums.end(), [](const auto& sum) { return sum.second <= kMostCount; });
}

void keep_pauses(std::vector<ev::Event>& notable) {
  std::erase_if(notable, [](const ev::Event& event) { return event.kind != ev::EventKind::paused_end; });
  if (notable.size() > kMostPauses) notable.resize(kMostPauses);
}

/// As coarse as it is stored.
void fit_levels(Block& block) {
  for (BlockLane& lane : block.lanes) {
    lane.fine.resize(lane.rows.size());
    for (std::size_t d = 0; d < lane.rows.size(); ++d)
      lane.fine[d] = static_cast<std::uint8_t>(lane.rows[d].shift());
  }
}

/// Anew: what was read back has its finest buckets only, and cannot be made coarser in place.
void add_levels(DensityPyramid& sum, const DensityPyramid& next) {
  DensityPyramid both;
  both.append(sum, kBlockBuckets);
  both.append(next, kBlockBuckets);
  both.settle();
  sum = std::move(both);
}

void add_lane(BlockLane& sum, const BlockLane& next) {
  if (sum.rows.size() < next.rows.size()) sum.rows.resize(next.rows.size());
  for (std::size_t d = 0; d < next.rows.size(); ++d) {
    add_levels(sum.rows[d], next.rows[d]);
  }
  sum.end_ns = std::max(sum.end_ns, next.end_ns);
}

void add_memory(BlockMemory& sum, BlockPeaks& peaks, const BlockMemory& next, const BlockPeaks& of_next) {
  if (next.changes == 0) return;
  const auto take = [&](MemorySample& known, const MemorySample& sample) {
    if (sum.changes == 0 || sample.total() > known.total()) known = sample;
  };
  take(peaks.all, of_next.all);
  take(peaks.model_state, of_next.model_state);
  sum.changes = static_cast<std::uint32_t>(
      std::min(std::uint64_t{sum.changes} + next.changes, std::uint64_t{kMostCount}));
  sum.leaves.insert(sum.leaves.end(), next.leaves.begin(), next.leaves.end());
  while (sum.leaves.size() > kMostLeaves) {
    std::vector<MemoryIndex::Leaf> joined;
    for (std::size_t i = 0; i < sum.leaves.size(); i += 2) {
      joined.push_back(sum.leaves[i]);
      if (i + 1 == sum.leaves.size()) break;
      const MemoryIndex::Leaf& other = sum.leaves[i + 1];
      if (other.highest.total() > joined.back().highest.total()) joined.back().highest = other.highest;
    }
    sum.leaves = std::move(joined);
  }
}

/// A span that was open when the sum began and still was when `next` did: what became of it there.
void carry_on(Block& sum, const Block& next) {
  std::vector<Block::Carried> carried;
  for (const Block::Carried& span : next.carried) {
    const auto open_in = [&](const Block& block) -> const Span* {
      const auto& open = block.begin.lanes[span.stream].open;
      return span.depth < open.size() ? &open[span.depth].span : nullptr;
    };
    const Span *before = open_in(sum), *now = open_in(next);
    if (before != nullptr && now != nullptr && before->begin_ns == now->begin_ns) carried.push_back(span);
  }
  for (const Block::Carried& span : sum.carried) {
    const bool later = std::any_of(carried.begin(), carried.end(), [&](const Block::Carried& other) {
      return other.stream == span.stream && other.depth == span.depth;
    });
    if (!later) carried.push_back(span);
  }
  sum.carried = std::move(carried);
}

/// On the clock of the sum's offset, over all of what is missing in it; where it is not known, nothing.
void add_missing(Block& sum, const Block& next) {
  const std::int64_t moved = next.clock_offset_ns - sum.clock_offset_ns;
  const bool known = sum.missing_begin_ns < sum.missing_end_ns;
  if (next.missing_begin_ns < next.missing_end_ns) {
    const std::int64_t begin = next.missing_begin_ns + moved, end = next.missing_end_ns + moved;
    sum.missing_begin_ns = known ? std::min(sum.missing_begin_ns, begin) : begin;
    sum.missing_end_ns = known ? std::max(sum.missing_end_ns, end) : end;
  }
  sum.dropped_before += next.dropped_before;
  sum.lost_before += next.lost_before;
  sum.shed_before += next.shed_before;
  sum.lost_between += next.lost_between;
  sum.gap = sum.gap || next.gap;
}

}  // namespace

void begin_sum(Block& block) {
  for (auto& corrections : block.corrections) corrections.clear();
  block.gates = 0;  // none can be looked at
  keep_pauses(block.notable);
  fit_levels(block);
}

void begin_sum(BlockHead& head) {
  head.gates = 0;
  keep_pauses(head.notable);
}

bool add_to_sum(Block& sum, Block next) {
  if (!fits(sum, next)) return false;
  begin_sum(next);
  add_missing(sum, next);
  carry_on(sum, next);
  sum.parts = static_cast<std::uint32_t>(next.sequence + next.parts - sum.sequence);
  sum.events = static_cast<std::uint32_t>(
      std::min(std::uint64_t{sum.events} + next.events, std::uint64_t{kMostCount}));
  sum.begin_ns = std::min(sum.begin_ns, next.begin_ns);
  sum.end_ns = std::max(sum.end_ns, next.end_ns);
  sum.clock_residual_ns = std::max(sum.clock_residual_ns, next.clock_residual_ns);
  for (std::size_t s = 0; s < sum.lanes.size(); ++s) add_lane(sum.lanes[s], next.lanes[s]);
  add_levels(sum.waits, next.waits);
  for (std::size_t p = 0; p < ev::kMemoryPoolCount; ++p)
    add_memory(sum.memory[p], sum.peaks[p], next.memory[p], next.peaks[p]);
  SpanTotals totals;
  totals.merge(sum.totals);
  totals.merge(next.totals);
  sum.totals = totals.rows();
  std::map<CountKey, std::uint64_t> counts;
  for (const Block* block : {&std::as_const(sum), &std::as_const(next)}) {
    for (const InstantCount& count : block->counts) counts[{count.kind, count.code}] += count.count;
  }
  sum.counts.clear();
  for (const auto& [key, count] : counts)
    sum.counts.push_back({.kind = key.first, .code = key.second, .count = static_cast<std::uint32_t>(count)});
  sum.notable.insert(sum.notable.end(), next.notable.begin(), next.notable.end());
  keep_pauses(sum.notable);
  fit_levels(sum);
  return true;
}

}  // namespace shardscope::store
