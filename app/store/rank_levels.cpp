// Views of one rank at any zoom: levels of detail of all blocks, then sums of whole blocks within a
// column, then each block's own levels of detail, then single spans and changes.
#include <algorithm>

#include "app/store/rank_run.h"

namespace shardscope::store {
namespace {

/// With more blocks than this in view a column has some dozen spans of a row or more: an edge precise to a
/// column is as good as one precise to half of it, and costs half as much.
constexpr std::size_t kManyBlocks = 16;

}  // namespace

void RankRun::add_to_sums(const Block& block) const {
  static const DensityPyramid none;
  for (std::size_t s = 0; s < ev::kStreamCount; ++s) {
    // Waits are spans of the compute lane.
    const bool compute = static_cast<ev::StreamId>(s) == ev::StreamId::compute;
    sums_[s].append(block.lanes[s], compute ? block.waits : none, block.begin.lanes[s].last_ns);
  }
}

void RankRun::renew_sums() const {
  const std::vector<BlockAccess::Damage>& damage = access_.damage();
  const bool own = std::any_of(damage.begin() + static_cast<std::ptrdiff_t>(damage_in_sums_), damage.end(),
                               [&](const BlockAccess::Damage& found) { return found.rank == rank_; });
  damage_in_sums_ = damage.size();
  if (!own) return;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (!blocks_[i].damaged || !left_out_.insert(i).second) continue;
    for (RowSums& sums : sums_) sums.forget(i);
  }
}

void RankRun::density_of(std::size_t i, ev::StreamId stream, std::uint8_t depth,
                         const DensityColumns& columns) const {
  const auto s = static_cast<std::size_t>(stream);
  const RowSums& sums = sums_[s];
  const double widest = columns.bucket_ns();
  const std::uint8_t own = sums.shift(depth, i);
  if (blocks_[i].damaged || own == RowSums::kNone) return;
  const bool waits = depth == kWaits;
  if (!DensityPyramid::covers(own, widest) &&
      (waits || !DensityPyramid::covers(sums.fine_shift(depth, i), widest))) {
    if (const auto known = state(i, RankState::For::spans, BlockAccess::Read::if_time)) {
      const Lane& spans = known->lanes()[s];
      if (waits) {
        spans.density_of_waits(spans.last_ns(), columns);
      } else {
        spans.density(depth, spans.last_ns(), columns);
      }
      return;
    }
  }
  // Without time for the spans, coarser levels are drawn; BlockAccess has noted the denied read.
  const BlockPage* const known = page(i, BlockAccess::Detail::full);
  if (blocks_[i].damaged) return;
  if (known == nullptr) return sums.levels(depth).add_to(columns, sums.begin_ns(i), sums.end_ns(i));
  if (waits) return known->waits.add_to(columns);
  if (depth < known->lanes[s].size()) known->lanes[s][depth].add_to(columns);
}

void RankRun::density_of_pages(const Range& range, ev::StreamId stream, std::uint8_t depth,
                               const DensityColumns& columns) const {
  using Detail = BlockAccess::Detail;
  const auto s = static_cast<std::size_t>(stream);
  const RowSums& sums = sums_[s];
  const DensityPyramid& whole = sums.levels(depth);
  const double width = columns.width_ns(), widest = columns.bucket_ns();
  // Consecutive blocks without a known page are drawn at once.
  std::size_t coarser = range.last;
  const auto draw_coarser = [&](std::size_t end) {
    if (coarser < end) whole.add_to(columns, sums.begin_ns(coarser), sums.end_ns(end - 1));
    coarser = range.last;
  };
  const auto row_of = [&](const BlockPage* page) -> const DensityPyramid* {
    if (page == nullptr) return nullptr;
    if (depth == kWaits) return &page->waits;
    return depth < page->lanes[s].size() ? &page->lanes[s][depth] : nullptr;
  };
  for (std::size_t i = range.first; i < range.last;) {
    const std::uint8_t shift = sums.shift(depth, i);
    if (shift == RowSums::kNone) {
      ++i;
      continue;
    }
    const std::int64_t from = sums.begin_ns(i);
    if (from >= columns.begin_ns && from < columns.end_ns &&
        static_cast<double>(sums.end_ns(i) - from) < width) {
      const std::size_t column = columns.index(from);
      const std::int64_t edge = columns.at(column + 1);
      std::size_t next = i;  // blocks that lie in this column
      while (next < range.last && sums.end_ns(next) < edge) ++next;
      if (next > i) {
        draw_coarser(i);
        sums.add_to(columns.columns[column], depth, i, next);
        i = next;
        continue;
      }
    }
    const unsigned medium = shift > BlockAccess::kMediumFiner ? shift - BlockAccess::kMediumFiner : 0;
    const Detail detail = DensityPyramid::covers(medium, widest) ? Detail::medium : Detail::full;
    const DensityPyramid* levels = row_of(page(i, detail, BlockAccess::Read::if_time));
    if (levels == nullptr && detail == Detail::full) {
      levels = row_of(page(i, Detail::medium, BlockAccess::Read::never));
    }
    if (levels != nullptr) {
      draw_coarser(i);
      levels->add_to(columns);
    } else if (coarser == range.last) {
      coarser = i;
    }
    ++i;
  }
  draw_coarser(range.last);
}

void RankRun::density(ev::StreamId stream, std::uint8_t depth, std::int64_t now_ns,
                      const DensityColumns& asked) const {
  DensityColumns columns = asked;
  const auto s = static_cast<std::size_t>(stream);
  if (s >= depths_.size() || columns.columns.empty() || columns.end_ns <= columns.begin_ns) return;
  if (!unpack(BlockAccess::Read::if_time)) return;
  if (damage_in_sums_ != access_.damage().size()) renew_sums();
  const RowSums& sums = sums_[s];
  Range range = of_lane(s, columns.begin_ns, columns.end_ns);
  const bool newest = range.last == blocks_.size();
  if (range.last - range.first > kManyBlocks) columns.buckets_each = 1;
  if (sums.levels(depth).covers(columns.bucket_ns())) {
    sums.levels(depth).add_to(columns);
    range.first = range.last;
  } else if (gone_ != 0 && range.first == 0 && !blocks_.empty()) {
    // Evicted blocks have no finer levels.
    sums.levels(depth).add_to(columns, Store::kBegin, sums.begin_ns(0));
  }
  density_of_blocks(range, stream, depth, columns);
  if (!newest) return;
  if (depth == kWaits) {
    head_.state.lanes()[s].density_of_waits(now_ns, columns);
  } else {
    head_.state.lanes()[s].density(depth, now_ns, columns);
  }
}

void RankRun::memory_columns(std::size_t pool, std::int64_t begin_ns, std::int64_t end_ns,
                             std::span<MemorySample> columns) const {
  std::fill(columns.begin(), columns.end(), MemorySample{.at_ns = kFirst, .bytes = {}});
  if (columns.empty() || end_ns <= begin_ns) return;
  // Decodes one rank at a time; coarser values would be wrong.
  (void)unpack();
  const MemoryIndex& newest = head_.state.memory(pool);
  if (blocks_.empty()) {
    newest.columns(begin_ns, end_ns, columns);
    return;
  }
  const double width = static_cast<double>(end_ns - begin_ns) / static_cast<double>(columns.size());
  const auto index = [&](std::int64_t ns) {
    if (ns <= begin_ns) return std::size_t{0};
    const double i = static_cast<double>(ns - begin_ns) / width;
    return std::min(static_cast<std::size_t>(i), columns.size() - 1);
  };
  const auto put = [&](std::size_t c, const MemorySample& sample) {
    if (columns[c].at_ns == kFirst || sample.total() > columns[c].total()) columns[c] = sample;
  };
  std::vector<MemorySample> exact;
  const auto take_exact = [&](const MemoryIndex& memory, std::int64_t from, std::int64_t to) {
    if (memory.empty() || to < begin_ns || from >= end_ns) return;
    const std::size_t first = index(from), last = index(std::min(to, end_ns - 1));
    exact.resize(last - first + 1);
    const auto at = [&](std::size_t c) {
      return begin_ns + static_cast<std::int64_t>(width * static_cast<double>(c));
    };
    memory.columns(at(first), last + 1 == columns.size() ? end_ns : at(last + 1), exact);
    for (std::size_t c = first; c <= last; ++c) put(c, exact[c - first]);
  };
  const MemoryHistory& history = history_[pool];
  for (std::size_t l = 0; l < history.leaves().size(); ++l) {
    const MemoryIndex::Leaf& leaf = history.leaves()[l];
    const std::int64_t to =
        l + 1 < history.leaves().size() ? history.leaves()[l + 1].begin_ns : history.end_ns();
    if (to < begin_ns || leaf.begin_ns >= end_ns) continue;
    for (std::size_t c = index(leaf.begin_ns); c <= index(to); ++c) put(c, leaf.highest);
  }
  const Range range = holding(begin_ns, end_ns);
  for (std::size_t i = range.first; i < range.last; ++i) {
    const Block& block = blocks_[i];
    const BlockMemory& memory = block.memory[pool];
    if (memory.changes == 0 || block.damaged) continue;
    // Leaves are enough while each column has one or more.
    const double leaf_ns = static_cast<double>(block.end_ns - block.begin_ns) /
                           static_cast<double>(std::max<std::size_t>(memory.leaves.size(), 1));
    if (width < leaf_ns && !block.sum && worth_reading(range)) {
      if (const auto known = state(i, RankState::For::states, BlockAccess::Read::if_time)) {
        take_exact(known->memory(pool), block.begin_ns, block.end_ns);
        continue;
      }
      if (block.damaged) continue;
    }
    for (std::size_t l = 0; l < memory.leaves.size(); ++l) {
      const MemoryIndex::Leaf& leaf = memory.leaves[l];
      const std::int64_t to = l + 1 < memory.leaves.size() ? memory.leaves[l + 1].begin_ns : block.end_ns;
      if (to < begin_ns || leaf.begin_ns >= end_ns) continue;
      if (width >= leaf_ns) {
        // The sample itself where it is in view, so that no column shows another column's.
        if (leaf.highest.at_ns >= begin_ns && leaf.highest.at_ns < end_ns) {
          put(index(leaf.highest.at_ns), leaf.highest);
        }
        continue;
      }
      for (std::size_t c = index(leaf.begin_ns); c <= index(to); ++c) put(c, leaf.highest);
    }
  }
  if (range.last == blocks_.size() && newest.change_count() > 0) {
    take_exact(newest, head_.origin.begin_ns, head_.origin.end_ns);
  }
  // Columns without a change repeat the bytes at their begin: between two blocks these are known.
  const auto held_at = [&](std::int64_t at_ns) -> std::optional<MemorySample> {
    const auto of = [](const MemoryIndex::Keyframe& keyframe) {
      return MemorySample{.at_ns = keyframe.at_ns, .bytes = keyframe.bytes};
    };
    if (newest.change_count() > 0 && at_ns > head_.origin.end_ns) return of(newest.keyframe());
    const std::size_t next = holding(kFirst, at_ns).last;
    if (next == 0) return MemorySample{};
    if (reach_[next - 1] >= at_ns) return std::nullopt;
    return of(next < blocks_.size() ? blocks_[next].begin.memory[pool] : head_.begin.memory[pool]);
  };
  MemorySample held;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const std::int64_t from = begin_ns + static_cast<std::int64_t>(width * static_cast<double>(c));
    if (columns[c].at_ns == kFirst) {
      columns[c] = held_at(from).value_or(held);
    } else {
      held = columns[c];
    }
    columns[c].at_ns = std::max(columns[c].at_ns, from);
  }
}

}  // namespace shardscope::store
