#include "app/store/block.h"

#include <utility>

#include "app/store/block_codec.h"
#include "app/store/run_facts.h"
#include "app/store/span_totals.h"

namespace shardscope::store {
namespace {

/// Most stretches of memory over time that a block has of a pool.
constexpr std::size_t kMemoryLeaves = 8;

}  // namespace

Block seal(std::uint32_t rank, RankState& state, RankKeyframe begin, const Pauses& pauses,
           const std::function<void(const RankState&)>& ended) {
  // First: what is read below is of levels of detail and indices that have taken in every event.
  state.settle();
  // What open spans have lasted so far goes into this block's levels of detail, the rest into the next one's.
  state.close_stretch();
  Block block;
  block.rank = rank;
  block.begin = std::move(begin);
  // Before begin_next_stretch(), which empties what the page is made of. The page has the fine levels,
  // `lanes` below the coarse ones.
  block.page = encode_page(state);
  block.statuses = encode_statuses(state);
  for (std::size_t i = 0; i < state.lanes().size(); ++i) {
    const Lane& lane = state.lanes()[i];
    block.lanes[i].end_ns = lane.last_ns();
    // By depth: rows[d] and fine[d] are of the same row, and a reader takes both by d.
    for (std::uint8_t d = 0; d < lane.depth_count(); ++d) {
      block.lanes[i].rows.push_back(coarse(lane.pyramid(d)));
      block.lanes[i].fine.push_back(static_cast<std::uint8_t>(lane.pyramid(d).shift()));
      // A carried span began before this stretch and is the first of its depth. What became of it is stored
      // with this block, since the one that has its beginning is sealed already.
      if (!lane.carried(d)) continue;
      const Span& span = lane.spans(d).front();
      block.carried.push_back({.stream = static_cast<std::uint8_t>(i),
                               .depth = d,
                               .end_ns = span.end_ns,
                               .mark_ns = span.mark_ns});
    }
    if (lane.waits().empty()) continue;
    // Waits are spans of the compute lane.
    if (static_cast<ev::StreamId>(i) == ev::StreamId::compute) block.waits = coarse(lane.waits());
  }
  for (std::size_t p = 0; p < ev::kMemoryPoolCount; ++p) {
    const MemoryIndex& memory = state.memory(p);
    // A pool without changes has no peak: peaks[p] stays as it is made, and changes = 0 says so.
    block.corrections[p].assign(memory.corrections().begin(), memory.corrections().end());
    block.memory[p].changes = static_cast<std::uint32_t>(memory.change_count());
    if (memory.change_count() == 0) continue;
    block.peaks[p] = {.all = *memory.peak(), .model_state = *memory.model_state_peak()};
    block.memory[p].leaves = memory.leaves(kMemoryLeaves);
  }
  // One list for both: unmatched ends are counted by kind and code as instants are.
  block.counts = state.instant_counts();
  block.counts.insert(block.counts.end(), state.unmatched_ends().begin(), state.unmatched_ends().end());
  block.gates = state.gate_count();
  block.notable = state.notable();
  // The last moment at which the stretch is whole.
  if (ended) ended(state);
  // Spans are counted where they end: those that are still open belong to a later block's totals.
  SpanTotals totals;
  state.begin_next_stretch([&](ev::StreamId stream, const Span& span) {
    totals.add({rank, stream}, span, pauses);
  });
  block.totals = totals.rows();
  return block;
}

// Capacities, since these are what memory is taken for.
std::size_t Block::bytes() const noexcept {
  std::size_t bytes = sizeof *this + chunk.capacity() + page.capacity() + statuses.capacity() +
                      waits.bytes() + counts.capacity() * sizeof(InstantCount) +
                      rows.capacity() * sizeof(std::int64_t);
  for (const Lane::Keyframe& lane : begin.lanes) bytes += lane.open.capacity() * sizeof(Lane::Open);
  for (const BlockLane& lane : lanes) {
    bytes += lane.fine.capacity() + lane.rows.capacity() * sizeof(DensityPyramid);
    for (const DensityPyramid& row : lane.rows) bytes += row.bytes();
  }
  for (const TileRow& row : tile) bytes += sizeof row + row.bytes.capacity();
  for (const BlockMemory& pool : memory) bytes += pool.leaves.capacity() * sizeof(MemoryIndex::Leaf);
  return bytes;
}

// What spill() can move, and no more: BlockAccess keeps the sum of it over all blocks.
std::size_t Block::packed_bytes() const noexcept {
  std::size_t bytes = chunk.capacity() + page.capacity() + statuses.capacity();
  for (const TileRow& row : tile) bytes += row.bytes.capacity();
  return bytes;
}

std::size_t BlockPage::bytes() const noexcept {
  std::size_t bytes = sizeof *this + waits.bytes();
  for (const auto& lane : lanes) {
    bytes += lane.capacity() * sizeof(DensityPyramid);
    for (const DensityPyramid& row : lane) bytes += row.bytes();
  }
  return bytes;
}

Missing missing_of(const Block& block) noexcept {
  // Of lost messages no times are known. Values of a file may be anything: sums with the offset are only made
  // where both are plausible times.
  const bool known = block.lost_before == 0 && block.missing_begin_ns < block.missing_end_ns &&
                     plausible(block.missing_begin_ns) && plausible(block.missing_end_ns) &&
                     plausible(block.clock_offset_ns);
  if (!known) return {};
  return {block.missing_begin_ns + block.clock_offset_ns, block.missing_end_ns + block.clock_offset_ns};
}

}  // namespace shardscope::store
