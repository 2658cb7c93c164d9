// A live rank's run within bounds: which blocks are spilled, and which are evicted.
#include <algorithm>
#include <utility>

#include "app/store/block_sum.h"
#include "app/store/rank_run.h"

namespace shardscope::store {
namespace {

/// Blocks that are never evicted: the latest events can always be shown.
constexpr std::size_t kFewest = 2 * kTileBlocks;
/// Part of the blocks evicted at once, so that the lists are rarely moved.
constexpr std::size_t kShare = 8;
/// A user changes the detail by hand: a rank keeps no more rare instants than this.
constexpr std::size_t kMostRare = 1024;

}  // namespace

std::size_t RankRun::index_bytes() const {
  std::size_t each = 2 * sizeof(std::int64_t) + BlockAccess::kDetails * sizeof(KnownPage) +
                     tiles_.size() * sizeof(KnownTile) / kTileBlocks;
  for (const RowSums& sums : sums_) each += sums.bytes_per_block();
  return block_bytes_ + blocks_.size() * each;
}

void RankRun::keep_bounds() {
  const Store::Bounds& bounds = *access_.bounds;
  const auto note_index = [&] {
    access_.index_bytes -= index_bytes_;
    index_bytes_ = index_bytes();
    access_.index_bytes += index_bytes_;
  };
  const auto some = [&] {
    return std::max(blocks_.size() / kShare / kTileBlocks * kTileBlocks, kTileBlocks);
  };
  note_index();
  // The newest tile is computed from pages that must be in memory.
  while (access_.packed_bytes > bounds.packed_bytes && spilled_ + kTileBlocks < blocks_.size()) {
    if (access_.spilled_bytes() < bounds.file_bytes && access_.spill(blocks_[spilled_])) {
      ++spilled_;
      continue;
    }
    if (blocks_.size() < kFewest + kTileBlocks) break;
    evict(some());
  }
  note_index();
  if (access_.index_bytes <= bounds.index_bytes || blocks_.size() < kFewest + kTileBlocks) return;
  evict(some());
  note_index();
}

bool RankRun::keeps_rare(ev::EventKind kind) const {
  if (rare_.size() >= kMostRare) return false;
  return !ev::has_trait(kind, ev::EventTrait::kept_first) ||
         std::none_of(rare_.begin(), rare_.end(),
                      [kind](const ev::Event& event) { return event.kind == kind; });
}

void RankRun::keep_rare_instants(std::size_t block) {
  using ev::EventKind;
  // Of kinds that are not kept_each, only the rank's first is kept.
  const auto known_already = [&](EventKind kind) {
    return std::any_of(rare_.begin(), rare_.end(),
                       [kind](const ev::Event& event) { return event.kind == kind; });
  };
  const auto wanted = [&](EventKind kind) {
    return ev::has_trait(kind, ev::EventTrait::kept_each) || (is_rare(kind) && !known_already(kind));
  };
  const KindSet& kinds = blocks_[block].kinds;
  const auto has = [&](EventKind kind) { return kinds.has(kind) && wanted(kind); };
  if (std::none_of(kRareKinds.begin(), kRareKinds.end(), has)) return;
  const std::shared_ptr<const RankState> known = state(block, RankState::For::instants);
  if (known == nullptr) return;
  for (const ev::Event& event : known->instants()) {
    if (wanted(event.kind) && keeps_rare(event.kind)) rare_.push_back(event);
  }
}

void RankRun::evict(std::size_t n) {
  const auto drop = [](auto& list, std::size_t count) {
    list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(std::min(count, list.size())));
  };
  (void)unpack();
  if (evicted_.events == 0) evicted_.begin_ns = floor_.front();
  evicted_.end_ns = evicted_until_ = reach_[n - 1];
  for (std::size_t i = 0; i < n; ++i) {
    const Block& block = blocks_[i];
    keep_rare_instants(i);
    evicted_.events += block.events;
    for (std::size_t p = 0; p < history_.size(); ++p)
      history_[p].append(block.memory[p].leaves, block.end_ns);
    access_.forget(block);
    block_bytes_ -= block.bytes() - block.packed_bytes();
  }
  blocks_.erase(blocks_.begin(), blocks_.begin() + static_cast<std::ptrdiff_t>(n));
  drop(reach_, n);
  drop(floor_, n);
  for (RowSums& sums : sums_) sums.evict(n);
  for (std::vector<KnownPage>& pages : pages_) drop(pages, n);
  for (auto& [row, tiles] : tiles_) {
    drop(tiles, n / kTileBlocks);
    for (KnownTile& tile : tiles) tile.none_of -= std::min(n, tile.none_of);
  }
  std::set<std::size_t> left_out;
  for (const std::size_t i : left_out_) {
    if (i >= n) left_out.insert(i - n);
  }
  left_out_ = std::move(left_out);
  spilled_ -= std::min(n, spilled_);
  gone_ += n;
  pauses_.forget_before(std::min(head_.state.open_since(), evicted_.end_ns));
}

}  // namespace shardscope::store
