#include "app/store/recorded_run.h"

#include <algorithm>
#include <utility>

#include "app/store/chunk.h"
#include "app/store/store_state.h"

namespace shardscope::store {
namespace {

constexpr std::uint64_t kMostInChunk = std::uint64_t{1} << 22;
/// Most chunks that may be missing before a damaged chunk whose sequence is accepted.
constexpr std::uint64_t kMostSkipped = std::uint64_t{1} << 32;

/// From a block's own description.
Arrival arrival_of(const BlockOrigin& block) {
  return {.rank = block.rank,
          .sequence = block.sequence,
          .parts = block.parts,
          .events = block.events,
          .dropped_before = block.dropped_before,
          .lost_before = block.lost_before,
          .shed_before = block.shed_before,
          .lost_between = block.lost_between,
          .missing_begin_ns = block.missing_begin_ns,
          .missing_end_ns = block.missing_end_ns,
          .begin_ns = block.begin_ns,
          .end_ns = block.end_ns,
          .clock_offset_ns = block.clock_offset_ns,
          .clock_residual_ns = block.clock_residual_ns,
          .usable = true};
}

}  // namespace

void RecordedRun::set_rows(std::unique_ptr<BlockRows> rows) {
  store_.state_->access.set_rows(std::move(rows));
}

void RecordedRun::append(Block block) {
  const auto arrival = arrival_of(block);
  store_.state_->arrive(arrival, [&](RankRun& run, bool) { run.append(std::move(block)); });
  store_.state_->access.set_ranks(store_.state_->ranks.size());
}

void RecordedRun::append(PackedBlock packed, const RankFigures& figures) {
  const auto arrival = arrival_of(packed.origin);
  store_.state_->arrive(arrival, [&](RankRun& run, bool) { run.append(std::move(packed), &figures); });
  store_.state_->access.set_ranks(store_.state_->ranks.size());
}

void RecordedRun::append_sum(Block block, std::uint64_t events, std::span<const ev::Event> rare,
                             bool blocks_follow) {
  store_.state_->arrive_sum(arrival_of(block), events, [&](RankRun& run, bool) {
    run.append_sum(std::move(block), rare, blocks_follow);
  });
}

void RecordedRun::append_sum(PackedBlock packed, const RankFigures* figures, std::uint64_t events,
                             std::span<const ev::Event> rare) {
  store_.state_->arrive_sum(arrival_of(packed.origin), events, [&](RankRun& run, bool) {
    run.keep_rare(rare);
    run.append(std::move(packed), figures);
  });
}

void RecordedRun::restore_steps(std::vector<StepRow> rows, std::uint32_t through, std::int64_t origin_ns) {
  Store::State& s = *store_.state_;
  s.clock.begin_unless_known(origin_ns);
  for (StepRow& row : rows) {
    row.begin_ns = s.clock.to_run(row.begin_ns);
    row.end_ns = s.clock.to_run(row.end_ns);
  }
  s.steps.restore(std::move(rows), through);
  ++s.revision;
}

void RecordedRun::all_ranks_came() {
  store_.state_->steps.wait_no_longer();
  ++store_.state_->revision;
}

void RecordedRun::add_moment(Moment moment) {
  for (std::int64_t* ns : {&moment.at_ns, &moment.begin_ns, &moment.end_ns})
    *ns = store_.state_->clock.to_run(*ns);
  store_.state_->moments.push_back(std::move(moment));
  ++store_.state_->revision;
}

void RecordedRun::set_own_times(std::vector<OwnTimeRow> rows) {
  store_.state_->own_times = std::move(rows);
  ++store_.state_->revision;
}

void RecordedRun::resume_from(std::uint32_t rank, BlockTail tail) {
  RankRun& run = store_.state_->data(rank).run;
  run.resume_from(tail.begin, std::move(tail.statuses));
  run.settle_levels();
}

void RecordedRun::resume_from_last_block(std::uint32_t rank) {
  RankRun& run = store_.state_->data(rank).run;
  run.resume_from_last_block();
  run.settle_levels();
}

void RecordedRun::ingest(const Chunk& chunk, std::int64_t row) {
  store_.state_->ingest(chunk, {.in_memory = false, .row = row});
}

void RecordedRun::note_damaged(const Damaged& chunk) {
  // Its own description may be damaged too: it must not create a rank, or hide later chunks.
  const auto rank = store_.state_->ranks.find(chunk.rank);
  if (rank == store_.state_->ranks.end()) return;
  RankData& data = rank->second;
  const bool next =
      chunk.sequence >= data.next_sequence && chunk.sequence - data.next_sequence < kMostSkipped;
  if (!next || chunk.parts == 0 || chunk.parts > Chunk::kMaxParts || chunk.end_ns < chunk.begin_ns ||
      !plausible(chunk.begin_ns) || !plausible(chunk.end_ns)) {
    return;
  }
  Store::State& s = *store_.state_;
  // A value without a checksum does not move the origin.
  s.clock.begin_unless_known(chunk.begin_ns);
  (void)s.note_gap(data, s.row(chunk.rank),
                   {.rank = chunk.rank,
                    .sequence = chunk.sequence,
                    .events = chunk.events,
                    .begin_ns = chunk.begin_ns,
                    .end_ns = chunk.end_ns});
  s.gaps.add({.rank = chunk.rank,
              .begin_ns = s.clock.to_run(chunk.begin_ns),
              .end_ns = s.clock.to_run(chunk.end_ns),
              .events = chunk.events <= kMostInChunk ? chunk.events : 0,
              .damaged = true});
  s.end_ns = std::max(s.end_ns, s.clock.to_run(chunk.end_ns));
  data.next_sequence = chunk.sequence + chunk.parts;
  data.run.gap();
  ++s.revision;
}

void RecordedRun::note_cut_off(std::uint32_t rank, std::uint64_t events) {
  Store::State& s = *store_.state_;
  const auto at = s.ranks.find(rank);
  if (at == s.ranks.end() || !at->second.has_events) return;
  const std::int64_t last_ns = s.row(rank).last_ns;
  if (events == 0 && last_ns >= s.end_ns) return;
  s.gaps.add({.rank = rank,
              .begin_ns = last_ns,
              .end_ns = std::max(last_ns, s.end_ns),
              .events = events,
              .cut_off = true});
  ++s.revision;
}

}  // namespace shardscope::store
