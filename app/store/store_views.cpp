// Queries about lanes, instants and states, answered by the ranks' runs; times are converted here from the
// run's to the collector's clock and back.
#include <algorithm>

#include "app/store/merge_in_time.h"
#include "app/store/span_time.h"
#include "app/store/store_state.h"

namespace shardscope::store {

using ev::Event;

std::vector<SpanTotal> StoreQuery::span_totals() const {
  SpanTotals all;
  for (const auto& [rank, data] : state_->ranks) all.merge(data.run.span_totals().rows());
  return all.rows();
}

std::vector<LaneId> StoreQuery::lanes() const {
  std::vector<LaneId> out;
  for (const auto& [rank, data] : state_->ranks) {
    for (std::uint8_t i = 0; i < ev::kStreamCount; ++i) {
      const auto stream = static_cast<ev::StreamId>(i);
      if (data.run.has_lane(stream)) out.push_back({rank, stream});
    }
  }
  return out;
}

void StoreQuery::for_each_span(LaneId lane, std::uint8_t depth, std::int64_t begin_ns, std::int64_t end_ns,
                               const std::function<void(const Span&)>& visit) const {
  const RankRun* run = state_->run(lane.rank);
  if (run == nullptr) return;
  const auto visit_in_run = [&](const Span& span) { visit(state_->clock.to_run(span)); };
  if (depth == kPauses && lane.stream == ev::StreamId::host) {
    run->visit_pauses(state_->clock.to_clock(begin_ns), state_->clock.to_clock(end_ns), visit_in_run);
    return;
  }
  const BlockAccess::BudgetedRead read(state_->access, {begin_ns, end_ns, revision()});
  run->visit_spans(lane.stream, depth, state_->clock.to_clock(begin_ns), state_->clock.to_clock(end_ns),
                   visit_in_run);
}

std::vector<Span> StoreQuery::spans(LaneId lane, std::uint8_t depth, std::int64_t begin_ns,
                                    std::int64_t end_ns) const {
  std::vector<Span> out;
  for_each_span(lane, depth, begin_ns, end_ns, [&](const Span& span) { out.push_back(span); });
  return out;
}

std::uint64_t StoreQuery::span_count(LaneId lane, std::uint8_t depth, std::int64_t begin_ns,
                                     std::int64_t end_ns) const {
  const BlockAccess::BudgetedRead read(state_->access, {begin_ns, end_ns, revision()});
  const RankRun* run = state_->run(lane.rank);
  if (run == nullptr || end_ns <= begin_ns) return 0;
  DensityBucket all;
  const DensityColumns columns{state_->clock.to_clock(begin_ns), state_->clock.to_clock(end_ns), {&all, 1}};
  run->density(lane.stream, depth, state_->clock.origin_ns() + known_until(*this, lane.rank), columns);
  return all.begins;
}

std::vector<std::int64_t> StoreQuery::cuts(LaneId lane) const {
  const RankRun* run = state_->run(lane.rank);
  if (run == nullptr) return {};
  std::vector<std::int64_t> out = run->cuts(lane.stream);
  for (std::int64_t& cut : out) cut = state_->clock.to_run(cut);
  return out;
}

bool StoreQuery::ready(LaneId lane, std::int64_t begin_ns, std::int64_t end_ns) const {
  const BlockAccess::BudgetedRead read(state_->access, {begin_ns, end_ns, revision()});
  const RankRun* run = state_->run(lane.rank);
  return run == nullptr ||
         run->ready(lane.stream, state_->clock.to_clock(begin_ns), state_->clock.to_clock(end_ns));
}

bool StoreQuery::becomes_ready(LaneId lane, std::int64_t begin_ns, std::int64_t end_ns) const {
  const RankRun* run = state_->run(lane.rank);
  return run == nullptr ||
         run->becomes_ready(lane.stream, state_->clock.to_clock(begin_ns), state_->clock.to_clock(end_ns));
}

bool StoreQuery::instants_ready(std::uint32_t rank, std::int64_t begin_ns, std::int64_t end_ns) const {
  const BlockAccess::BudgetedRead read(state_->access, {begin_ns, end_ns, revision()});
  const RankRun* run = state_->run(rank);
  return run == nullptr ||
         run->instants_ready(state_->clock.to_clock(begin_ns), state_->clock.to_clock(end_ns));
}

bool StoreQuery::instants_become_ready(std::uint32_t rank, std::int64_t begin_ns, std::int64_t end_ns) const {
  const RankRun* run = state_->run(rank);
  return run == nullptr ||
         run->instants_become_ready(state_->clock.to_clock(begin_ns), state_->clock.to_clock(end_ns));
}

std::uint8_t StoreQuery::depth_count(LaneId lane) const {
  const RankRun* run = state_->run(lane.rank);
  return run == nullptr ? std::uint8_t{0} : run->depth_count(lane.stream);
}

void StoreQuery::density(LaneId lane, std::uint8_t depth, std::int64_t begin_ns, std::int64_t end_ns,
                         std::span<Density> columns) const {
  const BlockAccess::BudgetedRead read(state_->access, {begin_ns, end_ns, revision()});
  const RankRun* run = state_->run(lane.rank);
  if (run == nullptr || columns.empty() || end_ns <= begin_ns) {
    std::fill(columns.begin(), columns.end(), Density{});
    return;
  }
  RowPictures::Picture& known = state_->pictures.of(lane, depth, columns.size());
  const RowPictures::View view{begin_ns, end_ns, columns.size(), revision()};
  if (known.view == view && (known.whole || !state_->access.has_time())) {
    std::copy_n(known.columns.begin(), columns.size(), columns.begin());
    return;
  }
  const std::uint64_t denied = state_->access.denied();
  std::vector<DensityBucket>& buckets = state_->buckets;
  buckets.assign(columns.size(), {});
  const DensityColumns sums{state_->clock.to_clock(begin_ns), state_->clock.to_clock(end_ns), buckets};
  run->density(lane.stream, depth, state_->clock.origin_ns() + known_until(*this, lane.rank), sums);
  // Columns are whole nanoseconds wide: a difference of one is negligible, except in very narrow ones.
  const bool narrow = sums.width_ns() < 1000;
  const auto per_ns = static_cast<float>(1 / sums.width_ns());
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const DensityBucket& sum = buckets[c];
    const float share =
        narrow ? sum.busy_ns / static_cast<float>(std::max<std::int64_t>(sums.at(c + 1) - sums.at(c), 1))
               : sum.busy_ns * per_ns;
    columns[c].busy = std::min(1.0F, share);
    columns[c].count = std::max(sum.begins, sum.busy_ns > 0 ? 1U : 0U);
    columns[c].dominant = sum.kind();
    columns[c].dominant_code = sum.code();
  }
  // Below one nanosecond most columns are empty: they show the nanosecond that they are a part of.
  for (std::size_t c = columns.size() - 1; sums.width_ns() < 1 && c-- > 0;) {
    if (sums.at(c + 1) == sums.at(c)) columns[c] = columns[c + 1];
  }
  // The view of before the read: blocks found damaged meanwhile are left out the next time.
  known.view = view;
  known.whole = state_->access.denied() == denied;
  std::copy(columns.begin(), columns.end(), known.columns.begin());
}

void StoreQuery::for_each_instant(std::uint32_t rank, std::int64_t begin_ns, std::int64_t end_ns,
                                  const std::function<void(const Event&)>& visit) const {
  const RankRun* run = state_->run(rank);
  if (run == nullptr) return;
  run->visit_instants(state_->clock.to_clock(begin_ns), state_->clock.to_clock(end_ns), [&](Event event) {
    event.ticks -= static_cast<std::uint64_t>(state_->clock.origin_ns());
    visit(event);
  });
}

void StoreQuery::for_each_end_without_begin(std::uint32_t rank, std::int64_t begin_ns, std::int64_t end_ns,
                                            const std::function<void(const EndWithoutBegin&)>& visit) const {
  const RankRun* run = state_->run(rank);
  if (run == nullptr) return;
  run->visit_ends_without_begin(state_->clock.to_clock(begin_ns), state_->clock.to_clock(end_ns),
                                [&](EndWithoutBegin end) {
                                  end.at_ns -= state_->clock.origin_ns();
                                  if (end.since_ns != kBegin) end.since_ns -= state_->clock.origin_ns();
                                  visit(end);
                                });
}

std::vector<Event> StoreQuery::instants(std::uint32_t rank, std::int64_t begin_ns,
                                        std::int64_t end_ns) const {
  std::vector<Event> out;
  for_each_instant(rank, begin_ns, end_ns, [&](const Event& event) { out.push_back(event); });
  return out;
}

std::vector<Event> StoreQuery::instants_of(std::uint32_t rank, ev::EventKind kind) const {
  const RankRun* run = state_->run(rank);
  std::vector<Event> found;
  if (run == nullptr || run->instant_count(kind, std::nullopt) == 0) return found;
  found = run->instants_of(kind);
  for (Event& event : found) event.ticks -= static_cast<std::uint64_t>(state_->clock.origin_ns());
  return found;
}

std::optional<Event> StoreQuery::first_instant(std::uint32_t rank, ev::EventKind kind) const {
  const RankRun* run = state_->run(rank);
  std::optional<Event> found = run == nullptr ? std::nullopt : run->first_instant(kind);
  if (found) found->ticks -= static_cast<std::uint64_t>(state_->clock.origin_ns());
  return found;
}

std::uint64_t StoreQuery::instant_count(std::uint32_t rank, ev::EventKind kind) const {
  const RankRun* run = state_->run(rank);
  return run == nullptr ? 0 : run->instant_count(kind, std::nullopt);
}

std::uint64_t StoreQuery::instant_count(std::uint32_t rank, ev::EventKind kind, std::uint8_t code) const {
  const RankRun* run = state_->run(rank);
  return run == nullptr ? 0 : run->instant_count(kind, code);
}

ParamState StoreQuery::param_state(std::uint32_t rank, std::uint32_t param, std::int64_t at_ns) const {
  if (param >= StatusIndex::kMaxParams) return {};
  std::vector<ParamState> states(param + std::size_t{1});
  param_states(rank, at_ns, states);
  return states[param];
}

void StoreQuery::param_states(std::uint32_t rank, std::int64_t at_ns, std::span<ParamState> out) const {
  const RankRun* run = state_->run(rank);
  if (run == nullptr) {
    std::fill(out.begin(), out.end(), ParamState{});
    return;
  }
  run->param_states(state_->clock.to_clock(at_ns), out);
  for (ParamState& state : out) state = state_->clock.to_run(state);
}

bool StoreQuery::read_states(std::uint32_t rank, std::int64_t at_ns, std::chrono::nanoseconds time) const {
  const RankRun* run = state_->run(rank);
  return run == nullptr || run->read_states(state_->clock.to_clock(at_ns), time);
}

std::vector<StoreQuery::StatusChange> StoreQuery::status_history(std::uint32_t rank, std::uint32_t param,
                                                                 std::int64_t until_ns,
                                                                 std::size_t most) const {
  const RankRun* run = state_->run(rank);
  if (run == nullptr) return {};
  std::vector<StatusChange> out = run->status_history(param, state_->clock.to_clock(until_ns), most);
  for (StatusChange& change : out) {
    change.at_ns = state_->clock.to_run(change.at_ns);
    change.state = state_->clock.to_run(change.state);
  }
  return out;
}

std::vector<BucketState> StoreQuery::buckets_at(std::uint32_t rank, std::int64_t at_ns) const {
  const RankRun* run = state_->run(rank);
  if (run == nullptr) return {};
  std::vector<BucketState> out = run->buckets_at(state_->clock.to_clock(at_ns));
  for (BucketState& bucket : out) bucket.since_ns = state_->clock.to_run(bucket.since_ns);
  return out;
}

bool StoreQuery::is_known(std::uint32_t rank, std::int64_t at_ns) const {
  const RankRun* run = state_->run(rank);
  return run == nullptr || run->is_known(state_->clock.to_clock(at_ns));
}

MemorySample StoreQuery::memory_at(std::uint32_t rank, ev::MemoryPool pool, std::int64_t at_ns) const {
  const RankRun* run = state_->run(rank);
  const auto index = static_cast<std::size_t>(pool);
  if (run == nullptr || index >= ev::kMemoryPoolCount) return {.at_ns = at_ns, .bytes = {}};
  return state_->clock.to_run(run->memory_at(index, state_->clock.to_clock(at_ns)));
}

std::optional<MemorySample> StoreQuery::memory_peak(std::uint32_t rank, ev::MemoryPool pool) const {
  const RankRun* run = state_->run(rank);
  const auto index = static_cast<std::size_t>(pool);
  if (run == nullptr || index >= ev::kMemoryPoolCount) return std::nullopt;
  const std::optional<MemorySample> peak = run->memory_peak(index);
  return peak ? std::optional(state_->clock.to_run(*peak)) : std::nullopt;
}

std::optional<MemorySample> StoreQuery::model_state_peak(std::uint32_t rank, ev::MemoryPool pool) const {
  const RankRun* run = state_->run(rank);
  const auto index = static_cast<std::size_t>(pool);
  if (run == nullptr || index >= ev::kMemoryPoolCount) return std::nullopt;
  const std::optional<MemorySample> peak = run->model_state_peak(index);
  return peak ? std::optional(state_->clock.to_run(*peak)) : std::nullopt;
}

void StoreQuery::memory_columns(std::uint32_t rank, ev::MemoryPool pool, std::int64_t begin_ns,
                                std::int64_t end_ns, std::span<MemorySample> columns) const {
  const BlockAccess::BudgetedRead read(state_->access, {begin_ns, end_ns, revision()});
  const RankRun* run = state_->run(rank);
  const auto index = static_cast<std::size_t>(pool);
  std::fill(columns.begin(), columns.end(), MemorySample{});
  if (run == nullptr || index >= ev::kMemoryPoolCount || end_ns <= begin_ns) return;
  run->memory_columns(index, state_->clock.to_clock(begin_ns), state_->clock.to_clock(end_ns), columns);
  for (MemorySample& sample : columns) sample = state_->clock.to_run(sample);
}

std::vector<StoreQuery::GateRow> StoreQuery::gates(std::uint32_t rank, std::int64_t begin_ns,
                                                   std::int64_t end_ns) const {
  std::vector<GateRow> out;
  const RankRun* run = state_->run(rank);
  if (run == nullptr) return out;
  run->visit_gates(state_->clock.to_clock(begin_ns), state_->clock.to_clock(end_ns),
                   [&](const GateRow& gate) { out.push_back(state_->clock.to_run(gate)); });
  // Blocks overlap in time because the rings of a rank's threads do.
  merge_in_time(out, 0, [](const GateRow& gate) { return gate.at_ns; });
  return out;
}

bool StoreQuery::has_gates(std::uint32_t rank) const {
  const RankRun* run = state_->run(rank);
  return run != nullptr && run->has_gates();
}

std::optional<StoreQuery::GateRow> StoreQuery::gate_before(std::uint32_t rank, std::int64_t at_ns,
                                                           const GateMatch& match) const {
  const RankRun* run = state_->run(rank);
  if (run == nullptr) return std::nullopt;
  const auto found = run->gate_before(state_->clock.to_clock(at_ns), [&](const GateRow& gate) {
    return !match || match(state_->clock.to_run(gate));
  });
  return found ? std::optional(state_->clock.to_run(*found)) : std::nullopt;
}

std::optional<StoreQuery::GateRow> StoreQuery::gate_after(std::uint32_t rank, std::int64_t at_ns,
                                                          const GateMatch& match) const {
  const RankRun* run = state_->run(rank);
  if (run == nullptr) return std::nullopt;
  const auto found = run->gate_after(state_->clock.to_clock(at_ns), [&](const GateRow& gate) {
    return !match || match(state_->clock.to_run(gate));
  });
  return found ? std::optional(state_->clock.to_run(*found)) : std::nullopt;
}

}  // namespace shardscope::store
