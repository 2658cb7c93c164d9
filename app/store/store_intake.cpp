// Input of a live run to a store: tables, chunks of events, rows of ranks, messages and names.
#include <algorithm>
#include <utility>

#include "app/store/chunk.h"
#include "app/store/store_state.h"

namespace shardscope::store {
namespace {

/// Newest events of all ranks together: with many ranks each keeps fewer.
constexpr std::size_t kMostNewest = std::size_t{1} << 22;
constexpr std::size_t kFewestNewest = std::size_t{1} << 11;

}  // namespace

void StoreQuery::State::apply_stage(std::int32_t stage) {
  // The same in every rank's tables; a rank added later starts with it.
  if (std::exchange(applied_stage, stage) == stage) return;
  access.model_state = model_state_categories(stage);
  access.initial = initial_state(stage);
  for (auto& [rank, data] : ranks) data.run.set_stage();
}

void Store::set_tables(std::uint32_t rank, const ev::RunTables& tables) {
  State& s = *state_;
  (void)s.data(rank);
  s.tables.take(rank, tables);
  RankRow& row = s.row(rank);
  if (row.host.empty()) row.host = tables.host;
  if (row.pid == 0) row.pid = tables.pid;
  const ev::RunTables& run = s.tables.of_run();
  s.access.parents = module_parents(run);
  s.steps.set_world(run.world);
  s.apply_stage(run.stage);
  ++s.revision;
}

void StoreQuery::State::ingest(const Chunk& chunk, RankRun::Origin origin) {
  if (chunk.sequence < data(chunk.rank).next_sequence) return;  // a repetition, e.g. in a snapshot
  const auto [begin, end] = chunk.times();
  const bool usable = plausible(begin) && plausible(end) && plausible(chunk.clock_offset_ns);
  access.set_ranks(ranks.size());
  const std::size_t fair = std::max(kFewestNewest, kMostNewest / std::max<std::size_t>(ranks.size(), 1));
  const std::size_t most = seal_events == SIZE_MAX ? SIZE_MAX : std::min(seal_events, fair);
  arrive({.rank = chunk.rank,
          .sequence = chunk.sequence,
          .parts = chunk.parts,
          .events = chunk.events.size(),
          .dropped_before = chunk.dropped_before,
          .lost_before = chunk.lost_before,
          .shed_before = chunk.shed_before,
          .lost_between = chunk.lost_between,
          .missing_begin_ns = chunk.missing_begin_ns,
          .missing_end_ns = chunk.missing_end_ns,
          .begin_ns = usable ? begin + chunk.clock_offset_ns : 0,
          .end_ns = usable ? end + chunk.clock_offset_ns : 0,
          .clock_offset_ns = chunk.clock_offset_ns,
          .clock_residual_ns = chunk.clock_residual_ns,
          .usable = usable},
         [&](RankRun& run, bool gap) { run.add(chunk, gap, origin, most); });
}

void Store::ingest(const Chunk& chunk) { state_->ingest(chunk, {}); }

void Store::set_rank(const RankRow& row) {
  State& s = *state_;
  (void)s.data(row.rank);
  RankRow& own = s.row(row.rank);
  const RankRow old = own;
  own = row;
  // Counts and times of ingested events are this store's own.
  own.events = std::max(old.events, row.events);
  own.dropped = std::max(old.dropped, row.dropped);
  own.lost_messages = std::max(old.lost_messages, row.lost_messages);
  own.last_ns = std::max(old.last_ns, row.last_ns);
  own.clock_drift = old.clock_drift;
  if (own.host.empty()) own.host = old.host;
  if (own.pid == 0) own.pid = old.pid;
  if (row.clock_offset_ns == 0 && row.clock_residual_ns == 0) {
    own.clock_offset_ns = old.clock_offset_ns;
    own.clock_residual_ns = old.clock_residual_ns;
  }
  own.largest_clock_residual_ns =
      std::max({old.largest_clock_residual_ns, row.largest_clock_residual_ns, row.clock_residual_ns});
  ++s.revision;
}

void Store::add_message(Message message) {
  state_->messages.add(std::move(message));
  ++state_->revision;
}

void Store::add_name(std::uint32_t rank, std::uint32_t id, std::string name) {
  state_->names[static_cast<std::uint64_t>(rank) << 32 | id] = std::move(name);
  ++state_->revision;
}

}  // namespace shardscope::store
