// Adds a block or chunk, live or from a recording: gaps before it, time zero, counts, rank
// rows.
#include <algorithm>

#include "app/store/pauses.h"
#include "app/store/store_state.h"

namespace shardscope::store {

using ev::Event;
using ev::EventKind;

RankData& StoreQuery::State::data(std::uint32_t rank) {
  const auto known = ranks.find(rank);
  if (known != ranks.end()) return known->second;
  (void)row(rank);
  // 192 blocks of 16,384 events, with their spans, are about what fits the cache.
  constexpr std::size_t kBlock = std::size_t{1} << 14;
  constexpr std::size_t kFewest = 4 * kBlock, kMost = 48 * kBlock, kAll = 192 * kBlock;
  access.most_in_view = std::clamp(kAll / (ranks.size() + 1), kFewest, kMost);
  return ranks.try_emplace(rank, rank, access, keep).first->second;
}

RankRow& StoreQuery::State::row(std::uint32_t rank) {
  auto at = std::lower_bound(rows.begin(), rows.end(), rank,
                             [](const RankRow& r, std::uint32_t value) { return r.rank < value; });
  if (at == rows.end() || at->rank != rank) {
    at = rows.insert(at, RankRow{});
    at->rank = rank;
  }
  return *at;
}

const RankRun* StoreQuery::State::run(std::uint32_t rank) const {
  const auto at = ranks.find(rank);
  return at == ranks.end() ? nullptr : &at->second.run;
}

void StoreQuery::State::take_damage() {
  for (; damage_taken < access.damage().size(); ++damage_taken) {
    const BlockAccess::Damage& damage = access.damage()[damage_taken];
    if (damage.deleted) {
      not_kept.events += damage.events;
      not_kept.until_ns = std::max(not_kept.until_ns, clock.to_run(damage.end_ns));
      gaps.add_not_kept({.rank = damage.rank,
                         .begin_ns = clock.to_run(damage.begin_ns),
                         .end_ns = clock.to_run(damage.end_ns),
                         .events = damage.events,
                         .not_kept = true},
                        false);
      continue;
    }
    gaps.add({.rank = damage.rank,
              .begin_ns = clock.to_run(damage.begin_ns),
              .end_ns = clock.to_run(damage.end_ns),
              .events = damage.events,
              .damaged = true});
  }
}

/// Shifts times stored as run times; events are stored on the collector's clock, which does not move.
void StoreQuery::State::shift(std::int64_t delta_ns) {
  for (RankRow& row : rows) row.last_ns += delta_ns;
  messages.shift(delta_ns);
  gaps.shift(delta_ns);
  steps.shift(delta_ns);
  end_ns += delta_ns;
  not_kept.until_ns += delta_ns;
  for (Moment& moment : moments) {
    for (std::int64_t* ns : {&moment.at_ns, &moment.begin_ns, &moment.end_ns}) *ns += delta_ns;
  }
}

bool StoreQuery::State::note_gap(const RankData& data, const RankRow& row, const Arrival& arrival) {
  const bool missing_chunks = arrival.sequence > data.next_sequence;
  if (arrival.dropped_before == 0 && arrival.lost_before == 0 && !missing_chunks) return false;
  const std::int64_t begin =
      arrival.usable && arrival.events > 0 ? clock.to_run(arrival.begin_ns) : row.last_ns;
  std::int64_t since = data.has_events ? row.last_ns : begin;
  // A sum of several blocks does not have the position of the missing events.
  const bool within = arrival.sum && (arrival.dropped_before != 0 || arrival.lost_before != 0);
  std::int64_t until = within ? clock.to_run(arrival.end_ns) : begin;
  if (arrival.lost_before == 0 && !missing_chunks && arrival.missing_begin_ns < arrival.missing_end_ns &&
      plausible(arrival.missing_begin_ns) && plausible(arrival.missing_end_ns) &&
      plausible(arrival.clock_offset_ns)) {
    since = clock.to_run(arrival.missing_begin_ns + arrival.clock_offset_ns);
    until = clock.to_run(arrival.missing_end_ns + arrival.clock_offset_ns);
  }
  // 0 events: an unknown number, because whole messages are missing too.
  const bool count_known = arrival.lost_before == 0 && !missing_chunks;
  gaps.add({.rank = arrival.rank,
            .begin_ns = std::min(since, until),
            .end_ns = std::max(since, until),
            .events = count_known ? arrival.dropped_before : 0,
            .shed = count_known ? std::min(arrival.shed_before, arrival.dropped_before) : 0,
            .messages = arrival.lost_before,
            .messages_between = std::min(arrival.lost_between, arrival.lost_before)});
  return true;
}

void StoreQuery::State::take_notable(std::uint32_t rank, RankRun& run) {
  for (const Event& event : run.take_notable()) {
    if (event.kind == EventKind::paused_end) {
      steps.paused(rank, pause_length(event));
    } else {
      steps.add(rank, event, clock.to_run(static_cast<std::int64_t>(event.ticks)));
    }
  }
}

void StoreQuery::State::arrive(const Arrival& arrival, const TakeEvents& take) {
  RankData& data = this->data(arrival.rank);
  if (arrival.usable && arrival.events > 0 && clock.is_before_origin(arrival.begin_ns)) {
    take_damage();  // converted by the old origin: its gaps are shifted with the others
    shift(clock.begin_at(arrival.begin_ns));
  }
  RankRow& row = this->row(arrival.rank);
  const bool gap = note_gap(data, row, arrival);
  data.next_sequence = arrival.sequence + arrival.parts;
  if (arrival.usable) {
    take(data.run, gap);
    take_notable(arrival.rank, data.run);
    if (const RankRun::Evicted gone = data.run.take_evicted(); gone.events != 0) {
      evicted.until_ns = std::max(evicted.until_ns, gone.end_ns);
      evicted.events += gone.events;
      gaps.add_evicted(arrival.rank, clock.to_run(gone.begin_ns), clock.to_run(gone.end_ns), gone.events);
    }
    if (arrival.events > 0) {
      data.has_events = true;
      row.last_ns = std::max(row.last_ns, clock.to_run(arrival.end_ns));
      end_ns = std::max(end_ns, clock.to_run(arrival.end_ns));
    }
    row.clock_offset_ns = arrival.clock_offset_ns;
    row.clock_residual_ns = arrival.clock_residual_ns;
    row.largest_clock_residual_ns = std::max(row.largest_clock_residual_ns, arrival.clock_residual_ns);
    // A chunk's offset is that of its last event.
    if (arrival.events > 0) {
      data.drift.add(arrival.end_ns, arrival.clock_offset_ns, arrival.clock_residual_ns);
      data.residuals.add(arrival.begin_ns, arrival.end_ns, arrival.clock_residual_ns);
      row.clock_drift = data.drift.value();
    }
  } else if (gap) {
    data.run.gap();
  }
  events += arrival.events;
  dropped += arrival.dropped_before;
  row.events += arrival.events;
  row.dropped += arrival.dropped_before;
  row.lost_messages += arrival.lost_before;
  ++revision;
}

void StoreQuery::State::arrive_sum(Arrival arrival, std::uint64_t count, const TakeEvents& take) {
  arrival.events = count;
  arrival.sum = true;
  RankData& data = this->data(arrival.rank);
  const bool adjacent = data.not_kept_until != 0 && data.not_kept_until == arrival.sequence;
  arrive(arrival, take);
  access.set_ranks(ranks.size());
  not_kept.events += count;
  not_kept.until_ns = std::max(not_kept.until_ns, clock.to_run(arrival.end_ns));
  gaps.add_not_kept({.rank = arrival.rank,
                     .begin_ns = clock.to_run(arrival.begin_ns),
                     .end_ns = clock.to_run(arrival.end_ns),
                     .events = count,
                     .not_kept = true},
                    adjacent);
  data.not_kept_until = data.next_sequence;
}

}  // namespace shardscope::store
