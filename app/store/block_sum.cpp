#include "app/store/block_sum.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

#include "app/store/kind_set.h"
#include "app/store/span_totals.h"

namespace shardscope::store {
namespace {

/// Most leaves per pool: twice a block's number, so that two blocks can be joined before anything becomes
/// coarser.
constexpr std::size_t kMostLeaves = 16;
/// A user pauses by hand; of more pauses than this a sum keeps the first ones.
constexpr std::size_t kMostPauses = 1024;
/// Counts of a block are stored in 32 bits.
constexpr std::uint64_t kMostCount = std::numeric_limits<std::uint32_t>::max();

using CountKey = std::pair<ev::EventKind, std::uint8_t>;

// Checked before anything changes: add_to_sum() leaves `sum` unchanged where it fails.
bool fits(const Block& a, const Block& b) {
  // `until < a.sequence`: sequence + parts exceeds 2^64, or a block is out of order.
  const std::uint64_t until = b.sequence + b.parts;
  if (until < a.sequence || until - a.sequence > kMostCount) return false;
  std::map<CountKey, std::uint64_t> sums;
  for (const Block* block : {&a, &b}) {
    // In 64 bits, where two sums of 32-bit counts cannot overflow.
    for (const InstantCount& count : block->counts) sums[{count.kind, count.code}] += count.count;
  }
  return std::all_of(sums.begin(), sums.end(), [](const auto& sum) { return sum.second <= kMostCount; });
}

// The steps of a sum are in table sum_steps; of its notable events only pauses are still needed.
void keep_pauses(std::vector<ev::Event>& notable) {
  std::erase_if(notable, [](const ev::Event& event) { return event.kind != ev::EventKind::paused_end; });
  if (notable.size() > kMostPauses) notable.resize(kMostPauses);
}

/// Sets `fine` to the block's own levels of detail.
void fit_levels(Block& block) {
  for (BlockLane& lane : block.lanes) {
    // `fine` has the bucket widths of a page. A sum has no page, only its own levels.
    lane.fine.resize(lane.rows.size());
    for (std::size_t d = 0; d < lane.rows.size(); ++d)
      lane.fine[d] = static_cast<std::uint8_t>(lane.rows[d].shift());
  }
}

/// Builds a new pyramid: a decoded one has its finest buckets only, and cannot be made coarser in place.
void add_levels(DensityPyramid& sum, const DensityPyramid& next) {
  DensityPyramid both;
  // `next` lies after `sum`, as append() requires; the result has at most kBlockBuckets.
  both.append(sum, kBlockBuckets);
  both.append(next, kBlockBuckets);
  both.settle();
  sum = std::move(both);
}

void add_lane(BlockLane& sum, const BlockLane& next) {
  // By depth. A row that only one of the two has is added to an empty one.
  if (sum.rows.size() < next.rows.size()) sum.rows.resize(next.rows.size());
  for (std::size_t d = 0; d < next.rows.size(); ++d) {
    add_levels(sum.rows[d], next.rows[d]);
  }
  sum.end_ns = std::max(sum.end_ns, next.end_ns);
}

void add_memory(BlockMemory& sum, BlockPeaks& peaks, const BlockMemory& next, const BlockPeaks& of_next) {
  // Its peaks are not set: comparing with them would use zeros.
  if (next.changes == 0) return;
  // Before `changes` is added: 0 means that the sum has no peak yet. Of equal peaks the earlier one is kept.
  const auto take = [&](MemorySample& known, const MemorySample& sample) {
    if (sum.changes == 0 || sample.total() > known.total()) known = sample;
  };
  take(peaks.all, of_next.all);
  take(peaks.model_state, of_next.model_state);
  // Saturates at 32 bits, as the number of events does.
  sum.changes = static_cast<std::uint32_t>(
      std::min(std::uint64_t{sum.changes} + next.changes, std::uint64_t{kMostCount}));
  // In order of time, since `next` follows.
  sum.leaves.insert(sum.leaves.end(), next.leaves.begin(), next.leaves.end());
  // Neighbours are merged in pairs, each with the higher peak of the two, so that no peak is lost. The list
  // is halved each time, so the loop ends.
  while (sum.leaves.size() > kMostLeaves) {
    std::vector<MemoryIndex::Leaf> joined;
    for (std::size_t i = 0; i < sum.leaves.size(); i += 2) {
      joined.push_back(sum.leaves[i]);
      // An odd one out stays by itself.
      if (i + 1 == sum.leaves.size()) break;
      const MemoryIndex::Leaf& other = sum.leaves[i + 1];
      if (other.highest.total() > joined.back().highest.total()) joined.back().highest = other.highest;
    }
    sum.leaves = std::move(joined);
  }
}

/// Updates spans that were open when the sum began and still were when `next` began.
void carry_on(Block& sum, const Block& next) {
  std::vector<Block::Carried> carried;
  for (const Block::Carried& span : next.carried) {
    // By depth in the open spans of the block's keyframe.
    const auto open_in = [&](const Block& block) -> const Span* {
      const auto& open = block.begin.lanes[span.stream].open;
      return span.depth < open.size() ? &open[span.depth].span : nullptr;
    };
    const Span *before = open_in(sum), *now = open_in(next);
    // Same begin at the same depth: the same span. Its end in `next` is newer than that in the
    // sum.
    if (before != nullptr && now != nullptr && before->begin_ns == now->begin_ns) carried.push_back(span);
  }
  for (const Block::Carried& span : sum.carried) {
    const bool later = std::any_of(carried.begin(), carried.end(), [&](const Block::Carried& other) {
      return other.stream == span.stream && other.depth == span.depth;
    });
    // Ended in the sum already, or not carried in `next`.
    if (!later) carried.push_back(span);
  }
  sum.carried = std::move(carried);
}

/// Sums missing events. Their interval is on the clock of the sum's offset and covers all known intervals.
void add_missing(Block& sum, const Block& next) {
  // From the clock of next's offset to that of the sum.
  const std::int64_t moved = next.clock_offset_ns - sum.clock_offset_ns;
  const bool known = sum.missing_begin_ns < sum.missing_end_ns;
  if (next.missing_begin_ns < next.missing_end_ns) {
    const std::int64_t begin = next.missing_begin_ns + moved, end = next.missing_end_ns + moved;
    sum.missing_begin_ns = known ? std::min(sum.missing_begin_ns, begin) : begin;
    sum.missing_end_ns = known ? std::max(sum.missing_end_ns, end) : end;
  }
  // Counts are added whether or not times are known.
  sum.dropped_before += next.dropped_before;
  sum.lost_before += next.lost_before;
  sum.shed_before += next.shed_before;
  sum.lost_between += next.lost_between;
  sum.gap = sum.gap || next.gap;
}

}  // namespace

void keep_firsts_of_stretch(std::vector<ev::Event>& rare) {
  KindSet known;
  std::erase_if(rare, [&](const ev::Event& event) {
    if (!ev::has_trait(event.kind, ev::EventTrait::kept_first_of_stretch)) return false;
    const bool repeated = known.has(event.kind);
    known.add(event.kind);
    return repeated;
  });
}

void begin_sum(Block& block) {
  // Only needed to rebuild the block's state from its events.
  for (auto& corrections : block.corrections) corrections.clear();
  block.gates = 0;  // gates cannot be queried
  keep_pauses(block.notable);
  fit_levels(block);
}

void begin_sum(BlockHead& head) {
  head.gates = 0;
  keep_pauses(head.notable);
}

bool add_to_sum(Block& sum, Block next) {
  if (!fits(sum, next)) return false;
  // Both sides must have the form of a sum.
  begin_sum(next);
  add_missing(sum, next);
  carry_on(sum, next);
  // Sequences up to the end of `next`, lost chunks in between included; fits() checked that they fit.
  sum.parts = static_cast<std::uint32_t>(next.sequence + next.parts - sum.sequence);
  sum.events = static_cast<std::uint32_t>(
      std::min(std::uint64_t{sum.events} + next.events, std::uint64_t{kMostCount}));
  sum.begin_ns = std::min(sum.begin_ns, next.begin_ns);
  sum.end_ns = std::max(sum.end_ns, next.end_ns);
  // The largest: a bound on the clock's error for the whole sum.
  sum.clock_residual_ns = std::max(sum.clock_residual_ns, next.clock_residual_ns);
  for (std::size_t s = 0; s < sum.lanes.size(); ++s) add_lane(sum.lanes[s], next.lanes[s]);
  add_levels(sum.waits, next.waits);
  for (std::size_t p = 0; p < ev::kMemoryPoolCount; ++p)
    add_memory(sum.memory[p], sum.peaks[p], next.memory[p], next.peaks[p]);
  // merge() has one row per kind, so that a sum does not grow with the number of its blocks.
  SpanTotals totals;
  totals.merge(sum.totals);
  totals.merge(next.totals);
  sum.totals = totals.rows();
  std::map<CountKey, std::uint64_t> counts;
  // The map gives them in order of kind and code, each once.
  for (const Block* block : {&std::as_const(sum), &std::as_const(next)}) {
    for (const InstantCount& count : block->counts) counts[{count.kind, count.code}] += count.count;
  }
  sum.counts.clear();
  for (const auto& [key, count] : counts)
    sum.counts.push_back({.kind = key.first, .code = key.second, .count = static_cast<std::uint32_t>(count)});
  sum.notable.insert(sum.notable.end(), next.notable.begin(), next.notable.end());
  keep_pauses(sum.notable);
  // Last: lanes may have more rows now, with wider buckets.
  fit_levels(sum);
  return true;
}

}  // namespace shardscope::store
