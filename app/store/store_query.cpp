// Queries about the run as a whole; for lanes and states see store_views.cpp.
#include "app/store/store_query.h"

#include <algorithm>

#include "app/store/store_state.h"

namespace shardscope::store {

StoreQuery::StoreQuery(Keep keep) : state_(std::make_unique<State>(keep)) {}
StoreQuery::~StoreQuery() = default;
StoreQuery::StoreQuery(StoreQuery&&) noexcept = default;
StoreQuery& StoreQuery::operator=(StoreQuery&&) noexcept = default;

std::size_t StoreQuery::cache_bytes() const noexcept { return state_->access.cache_bytes(); }

std::size_t StoreQuery::resident_bytes() const {
  std::size_t bytes = cache_bytes();
  for (const auto& [rank, data] : state_->ranks) bytes += data.run.bytes();
  return bytes + state_->steps.bytes();
}

const std::optional<StoreQuery::Bounds>& StoreQuery::bounds() const noexcept { return state_->access.bounds; }

StoreQuery::Evicted StoreQuery::evicted() const {
  Evicted out = state_->evicted;
  if (out.events != 0) out.until_ns = state_->clock.to_run(out.until_ns);
  out.steps = state_->steps.evicted();
  return out;
}

void StoreQuery::limit_reading(std::optional<std::chrono::nanoseconds> time,
                               std::chrono::nanoseconds frame) const {
  state_->access.limit(time, frame);
}
bool StoreQuery::wants_more() const noexcept { return state_->access.short_of_time(); }
std::span<const std::string> StoreQuery::problems() const noexcept { return state_->access.problems(); }

const StoreQuery::NotKept& StoreQuery::not_kept() const {
  state_->take_damage();
  return state_->not_kept;
}
std::span<const Moment> StoreQuery::moments() const { return state_->moments; }
std::span<const OwnTimeRow> StoreQuery::own_times() const { return state_->own_times; }

bool StoreQuery::is_packed(std::uint32_t rank) const {
  const RankRun* const run = state_->run(rank);
  return run != nullptr && run->is_packed();
}

std::vector<StoreQuery::UnmatchedEnds> StoreQuery::unmatched_ends() const {
  std::vector<UnmatchedEnds> out;
  for (const auto& [rank, data] : state_->ranks) {
    for (const auto& [kind, ends] : data.run.unmatched_ends()) out.push_back(ends);
  }
  return out;
}

std::optional<ev::Detail> StoreQuery::recorded_detail() const {
  std::optional<ev::Detail> most;
  for (const auto& [rank, data] : state_->ranks) most = std::max(most, data.run.recorded_detail());
  return most;
}

std::int64_t StoreQuery::largest_clock_residual(std::uint32_t rank, std::int64_t begin_ns,
                                                std::int64_t end_ns) const {
  const auto data = state_->ranks.find(rank);
  if (data == state_->ranks.end()) return 0;
  const auto found =
      data->second.residuals.largest(state_->clock.to_clock(begin_ns), state_->clock.to_clock(end_ns));
  return found.value_or(state_->row(rank).largest_clock_residual_ns);
}

std::uint64_t StoreQuery::revision() const noexcept {
  // Damage is found by reading, and changes views from then on.
  return state_->revision + state_->access.damage().size();
}

bool StoreQuery::has_tables() const noexcept { return state_->tables.any(); }
const ev::RunTables& StoreQuery::tables() const { return state_->tables.of_run(); }
const ev::RunTables* StoreQuery::rank_tables(std::uint32_t rank) const {
  return state_->tables.of_rank(rank);
}

std::span<const RankRow> StoreQuery::ranks() const { return state_->rows; }
std::span<const StepRow> StoreQuery::steps() const { return state_->steps.rows(); }

std::span<const Rewind> StoreQuery::rewinds() const { return state_->steps.rewinds(); }
std::span<const Message> StoreQuery::messages() const { return state_->messages.messages(); }
std::span<const Gap> StoreQuery::gaps() const {
  state_->take_damage();
  return state_->gaps.gaps();
}
std::int64_t StoreQuery::end_ns() const noexcept { return state_->end_ns; }
std::int64_t StoreQuery::origin_ns() const noexcept { return state_->clock.origin_ns(); }
std::uint64_t StoreQuery::event_count() const noexcept { return state_->events; }
std::uint64_t StoreQuery::dropped_count() const noexcept { return state_->dropped; }

std::string StoreQuery::name(std::uint32_t rank, std::uint32_t id) const {
  const auto at = state_->names.find(static_cast<std::uint64_t>(rank) << 32 | id);
  return at == state_->names.end() ? std::string() : at->second;
}

}  // namespace shardscope::store
