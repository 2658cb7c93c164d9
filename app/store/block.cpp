#include "app/store/block.h"

#include <utility>

#include "app/store/block_codec.h"
#include "app/store/run_facts.h"
#include "app/store/span_totals.h"

namespace shardscope::store {
namespace {

/// Most intervals of memory over time per pool of a block.
constexpr std::size_t kMemoryLeaves = 8;

}  // namespace

Block seal(std::uint32_t rank, RankState& state, RankKeyframe begin, const Pauses& pauses,
           const std::function<void(const RankState&)>& ended) {
  // First: levels of detail and indices must include every event before they are read.
  state.settle();
  // Durations of open spans so far go into this block's levels of detail, the rest into the next one's.
  state.close_stretch();
  Block block;
  block.rank = rank;
  block.begin = std::move(begin);
  // Before begin_next_stretch(), which clears the input of the page. The page has the fine levels,
  // `lanes` below the coarse ones.
  block.page = encode_page(state);
  block.statuses = encode_statuses(state);
  for (std::size_t i = 0; i < state.lanes().size(); ++i) {
    const Lane& lane = state.lanes()[i];
    block.lanes[i].end_ns = lane.last_ns();
    // By depth: rows[d] and fine[d] belong to the same row, and a reader takes both by d.
    for (std::uint8_t d = 0; d < lane.depth_count(); ++d) {
      block.lanes[i].rows.push_back(coarse(lane.pyramid(d)));
      block.lanes[i].fine.push_back(static_cast<std::uint8_t>(lane.pyramid(d).shift()));
      // A carried span began before this block and is the first of its depth. Its end is stored
      // in this block, because the one with its begin is sealed already.
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
    // A pool without changes has no peak: peaks[p] keeps its default, and changes = 0 marks that.
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
  // Last use of the block's spans and levels of detail before they are cleared.
  if (ended) ended(state);
  // Spans are counted in the block where they end: open ones belong to a later block's totals.
  SpanTotals totals;
  state.begin_next_stretch([&](ev::StreamId stream, const Span& span) {
    totals.add({rank, stream}, span, pauses);
  });
  block.totals = totals.rows();
  return block;
}

// Capacities, because that is the allocated memory.
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

// Exactly the data that spill() can move: BlockAccess keeps the sum of it over all blocks.
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
  // Times of lost messages are unknown. Values of a file may be anything: sums with the offset are computed
  // only where both are plausible times.
  const bool known = block.lost_before == 0 && block.missing_begin_ns < block.missing_end_ns &&
                     plausible(block.missing_begin_ns) && plausible(block.missing_end_ns) &&
                     plausible(block.clock_offset_ns);
  if (!known) return {};
  return {block.missing_begin_ns + block.clock_offset_ns, block.missing_end_ns + block.clock_offset_ns};
}

}  // namespace shardscope::store
