// A store's bounds, and queries about the run as a whole; for lanes and states see store_views.cpp.
#include "app/store/store.h"

#include <algorithm>

#include "app/store/store_state.h"

namespace shardscope::store {

Store::Store(Keep keep) : state_(std::make_unique<State>(keep)) {}
Store::~Store() = default;
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;

void Store::seal_after(std::size_t events) { state_->seal_events = std::max<std::size_t>(events, 1); }
void Store::set_cache_bytes(std::size_t bytes) { state_->access.set_cache_bytes(bytes); }
std::size_t Store::cache_bytes() const noexcept { return state_->access.cache_bytes(); }

std::size_t Store::resident_bytes() const {
  std::size_t bytes = cache_bytes();
  for (const auto& [rank, data] : state_->ranks) bytes += data.run.bytes();
  return bytes + state_->steps.bytes();
}

void Store::bound(const Bounds& bounds) {
  state_->access.bounds = bounds;
  state_->steps.keep_at_most(bounds.steps);
}
const std::optional<Store::Bounds>& Store::bounds() const noexcept { return state_->access.bounds; }

Store::Evicted Store::evicted() const {
  Evicted out = state_->evicted;
  if (out.events != 0) out.until_ns = state_->clock.to_run(out.until_ns);
  out.steps = state_->steps.evicted();
  return out;
}

void Store::limit_reading(std::optional<std::chrono::nanoseconds> time,
                          std::chrono::nanoseconds frame) const {
  state_->access.limit(time, frame);
}
bool Store::wants_more() const noexcept { return state_->access.short_of_time(); }
std::span<const std::string> Store::problems() const noexcept { return state_->access.problems(); }

const Store::NotKept& Store::not_kept() const {
  state_->take_damage();
  return state_->not_kept;
}
std::span<const Moment> Store::moments() const { return state_->moments; }
std::span<const OwnTimeRow> Store::own_times() const { return state_->own_times; }

bool Store::is_packed(std::uint32_t rank) const {
  const RankRun* const run = state_->run(rank);
  return run != nullptr && run->is_packed();
}

std::vector<Store::UnmatchedEnds> Store::unmatched_ends() const {
  std::vector<UnmatchedEnds> out;
  for (const auto& [rank, data] : state_->ranks) {
    for (const auto& [kind, ends] : data.run.unmatched_ends()) out.push_back(ends);
  }
  return out;
}

std::optional<ev::Detail> Store::recorded_detail() const {
  std::optional<ev::Detail> most;
  for (const auto& [rank, data] : state_->ranks) most = std::max(most, data.run.recorded_detail());
  return most;
}

std::int64_t Store::largest_clock_residual(std::uint32_t rank, std::int64_t begin_ns,
                                           std::int64_t end_ns) const {
  const auto data = state_->ranks.find(rank);
  if (data == state_->ranks.end()) return 0;
  const auto found =
      data->second.residuals.largest(state_->clock.to_clock(begin_ns), state_->clock.to_clock(end_ns));
  return found.value_or(state_->row(rank).largest_clock_residual_ns);
}

std::uint64_t Store::revision() const noexcept {
  // Damage is found by reading, and changes views from then on.
  return state_->revision + state_->access.damage().size();
}

bool Store::has_tables() const noexcept { return state_->tables.any(); }
const ev::RunTables& Store::tables() const { return state_->tables.of_run(); }
const ev::RunTables* Store::rank_tables(std::uint32_t rank) const { return state_->tables.of_rank(rank); }

std::span<const RankRow> Store::ranks() const { return state_->rows; }
std::span<const StepRow> Store::steps() const { return state_->steps.rows(); }
std::span<const Message> Store::messages() const { return state_->messages.messages(); }
std::span<const Gap> Store::gaps() const {
  state_->take_damage();
  return state_->gaps.gaps();
}
std::int64_t Store::end_ns() const noexcept { return state_->end_ns; }
std::int64_t Store::origin_ns() const noexcept { return state_->clock.origin_ns(); }
std::uint64_t Store::event_count() const noexcept { return state_->events; }
std::uint64_t Store::dropped_count() const noexcept { return state_->dropped; }

std::string Store::name(std::uint32_t rank, std::uint32_t id) const {
  const auto at = state_->names.find(static_cast<std::uint64_t>(rank) << 32 | id);
  return at == state_->names.end() ? std::string() : at->second;
}

}  // namespace shardscope::store
