#include "app/store/block_maker.h"

#include <utility>

#include "app/store/block_codec.h"
#include "app/store/run_facts.h"

namespace shardscope::store {

void BlockMaker::tables(const ev::RunTables& tables) {
  // Tables of another rank of a run that names its modules on one only: the known ones have more.
  if (tables.modules.empty() && !parents_.empty()) return;
  parents_ = module_parents(tables);
  source_ = OwnTimeSource::of(tables);
  model_state_ = model_state_categories(tables.stage);
  initial_ = initial_state(tables.stage);
  for (auto& [rank, known] : ranks_) known.state.set_stage(model_state_, initial_);
}

BlockMaker::Rank& BlockMaker::rank(std::uint32_t rank) {
  const auto [at, added] = ranks_.try_emplace(rank);
  if (added) at->second.state.set_stage(model_state_, initial_);
  return at->second;
}

std::optional<Block> BlockMaker::make(const Chunk& chunk) {
  Rank& rank = this->rank(chunk.rank);
  // Events are missing before it if the rank dropped some, messages were lost, or a chunk between was not
  // received.
  const bool gap =
      chunk.dropped_before != 0 || chunk.lost_before != 0 || chunk.sequence != rank.next_sequence;
  rank.next_sequence = chunk.sequence + chunk.parts;
  std::optional<Missing> missing;
  if (gap) missing = missing_of(chunk);
  // Implausible times would make levels of detail of that length: the chunk gets no block, its
  // events stay.
  const auto [begin, end] = chunk.times();
  if (!plausible(begin) || !plausible(end) || !plausible(chunk.clock_offset_ns)) {
    rank.state.end_missing(missing);
    rank.own_lacks = true;
    return std::nullopt;
  }
  rank.state.expect(end - begin);
  rank.state.add(chunk.events, chunk.clock_offset_ns, parents_, missing);
  rank.state.end_missing(missing);
  rank.pauses.add_of(rank.state.notable());
  Block block = seal(chunk.rank, rank.state, std::move(rank.begin), rank.pauses, [&](const RankState& ended) {
    if (sketches_ != nullptr) sketches_->add(chunk.rank, ended, rank.pauses);
    if (own_times_ == nullptr) return;
    const bool lacks = std::exchange(rank.own_lacks, false) || gap;
    for (const OwnTime& time : rank.own.take(ended, source_, lacks)) own_times_->add(chunk.rank, time);
  });
  // Pauses can still overlap spans that are open, no further back. The next block begins with the spans
  // open now.
  rank.pauses.forget_before(rank.state.open_since());
  rank.begin = rank.state.keyframe();
  // With few ranks the memory for the next chunk is kept; with thousands it would be most of the recorder's
  // memory.
  if (ranks_.size() > kRanksWithRoom) rank.state.shrink();
  block.sequence = chunk.sequence;
  block.parts = chunk.parts;
  block.events = static_cast<std::uint32_t>(chunk.events.size());
  block.dropped_before = chunk.dropped_before;
  block.lost_before = chunk.lost_before;
  block.shed_before = chunk.shed_before;
  block.lost_between = chunk.lost_between;
  block.missing_begin_ns = chunk.missing_begin_ns;
  block.missing_end_ns = chunk.missing_end_ns;
  block.clock_offset_ns = chunk.clock_offset_ns;
  block.clock_residual_ns = chunk.clock_residual_ns;
  // On the collector's clock, as the store expects; the chunk's own times are on the rank's.
  block.begin_ns = begin + chunk.clock_offset_ns;
  block.end_ns = end + chunk.clock_offset_ns;
  block.gap = gap;
  return block;
}

void BlockMaker::measure_rest() {
  if (own_times_ == nullptr) return;
  for (auto& [number, rank] : ranks_) {
    for (const OwnTime& time : rank.own.rest(source_)) own_times_->add(number, time);
  }
}

std::vector<Block> BlockMaker::tails() {
  std::vector<Block> out;
  for (auto& [number, rank] : ranks_) {
    Block& tail = out.emplace_back();
    tail.rank = number;
    tail.begin = rank.begin;
    tail.statuses = encode_statuses(rank.state);
  }
  return out;
}

}  // namespace shardscope::store
