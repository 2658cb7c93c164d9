// Blocks of a recording that are decoded when their rank is queried. [Note: packed blocks] in rank_run.h.
#include <utility>

#include "app/store/rank_run.h"

namespace shardscope::store {

void RankRun::take_figures(const RankFigures& figures) {
  for (std::size_t s = 0; s < ev::kStreamCount; ++s) depths_[s] = std::max(depths_[s], figures.depths[s]);
  for (std::size_t p = 0; p < peaks_.size(); ++p) {
    const auto& [all, model_state] = figures.peaks[p];
    if (all) peaks_[p].take({.all = *all, .model_state = *model_state});
  }
  totals_.merge(figures.totals.rows());
  for (const auto& [key, count] : figures.counts) take_count(key.first, key.second, count);
  take_notable_of(figures.notable);
  packed_gates_ = packed_gates_ || figures.gates;
}

void RankRun::append(PackedBlock packed, const RankFigures* figures) {
  seal_head();
  if (figures != nullptr) take_figures(*figures);
  note_times(packed.origin);
  packed_.push_back(std::move(packed));
}

void RankRun::go_on_from_packed() {
  PackedBlock& last = packed_.back();
  Block block = *access_.unpack(last, BlockAccess::Read::always);
  std::array<std::int64_t, ev::kStreamCount> last_ns{};
  for (std::size_t s = 0; s < ev::kStreamCount; ++s) last_ns[s] = block.lanes[s].end_ns;
  const auto known = access_.state(block, static_cast<std::uint32_t>(packed_.size() - 1),
                                   RankState::For::views, BlockAccess::Read::always);
  last.damaged = last.damaged || block.damaged;
  go_on_from_state(known, last_ns);
}

bool RankRun::unpack(BlockAccess::Read read) const {
  if (packed_.empty()) return true;
  for (; unpacked_ < packed_.size(); ++unpacked_) {
    PackedBlock& packed = packed_[unpacked_];
    std::optional<Block> block = access_.unpack(packed, read);
    if (!block) return false;
    // The end times of a damaged block's lanes are unknown: they must not go back in time.
    for (std::size_t s = 0; block->damaged && s < ev::kStreamCount; ++s) {
      const std::int64_t before = blocks_.empty() ? Lane::kNever : sums_[s].latest_ns(blocks_.size() - 1);
      block->begin.lanes[s].last_ns = block->lanes[s].end_ns = before;
    }
    place(std::move(*block));
    std::vector<std::byte>().swap(packed.bytes);
  }
  std::vector<PackedBlock>().swap(packed_);
  unpacked_ = 0;
  return true;
}

}  // namespace shardscope::store
