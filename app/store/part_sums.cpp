#include "app/store/part_sums.h"

#include <algorithm>

#include "app/store/block_sum.h"

namespace shardscope::store {
namespace {

/// Most kept_each events of a rank. They are changes of detail, which a user makes by hand.
constexpr std::size_t kMostRareOfRank = 1024;

}  // namespace

void RareEvents::limit(std::uint32_t rank, std::vector<ev::Event>& rare) {
  Known& known = ranks_[rank];
  keep_firsts_of_stretch(rare);
  std::erase_if(rare, [&](const ev::Event& event) {
    if (ev::has_trait(event.kind, ev::EventTrait::kept_first_of_stretch)) return false;
    if (ev::has_trait(event.kind, ev::EventTrait::kept_each)) return ++known.each > kMostRareOfRank;
    // Blocks kept around a moment are deleted late, so their events may be earlier.
    const auto [first, is_new] = known.firsts.emplace(event.kind, event.ticks);
    if (!is_new && first->second <= event.ticks) return true;
    first->second = event.ticks;
    return false;
  });
}

std::vector<ev::Event> rare_events_of(const Block& block, const Chunk& chunk) {
  std::vector<ev::Event> out;
  const bool has_some = std::any_of(block.counts.begin(), block.counts.end(),
                                    [](const InstantCount& count) { return is_rare(count.kind); });
  if (!has_some) return out;
  for (ev::Event event : chunk.events) {
    if (!is_rare(event.kind)) continue;
    event.ticks += static_cast<std::uint64_t>(chunk.clock_offset_ns);
    out.push_back(event);
  }
  return out;
}

std::optional<std::uint32_t> last_step_of(const Block& block) {
  std::optional<std::uint32_t> last;
  for (const ev::Event& event : block.notable) {
    if (event.kind == ev::EventKind::paused_end) continue;
    // In all other notable kinds the first field is the step, as in step_begin.
    last = std::max(last.value_or(0), ev::as<ev::EventKind::step_begin>(event).step);
  }
  return last;
}

void PartSums::add(const std::vector<std::byte>& packed, std::int64_t id, const Chunk& chunk) {
  // Decoded as a reader does: the block that was just made holds finer levels of detail than the encoded one.
  Block block = decode_block(packed.data(), packed.size());
  std::vector<ev::Event> rare = rare_events_of(block, chunk);
  rare_.limit(block.rank, rare);
  if (const auto step = last_step_of(block)) last_step_ = std::max(last_step_.value_or(0), *step);
  const std::uint64_t events = block.events;
  std::vector<WholeSum>& of_rank = ranks_[block.rank];
  // Events missing between two chunks are counted in the block of the second, so a sum of both includes them.
  const bool next =
      !of_rank.empty() && of_rank.back().block.sequence + of_rank.back().block.parts == block.sequence;
  if (next && add_to_sum(of_rank.back().block, block)) {
    WholeSum& sum = of_rank.back();
    sum.events += events;
    sum.rare.insert(sum.rare.end(), rare.begin(), rare.end());
    keep_firsts_of_stretch(sum.rare);
    sum.id = id;
    return;
  }
  begin_sum(block);
  of_rank.push_back({.block = std::move(block), .rare = std::move(rare), .events = events, .id = id});
}

std::vector<WholeSum> PartSums::sums() const {
  std::vector<WholeSum> out;
  for (const auto& [rank, sums] : ranks_) out.insert(out.end(), sums.begin(), sums.end());
  return out;
}

}  // namespace shardscope::store
