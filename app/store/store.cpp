#include "app/store/store.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "app/store/chunk.h"
#include "app/store/store_state.h"

namespace shardscope::store {
namespace {

using ev::Event;
using ev::EventKind;

/// Newest events of all ranks together: with many ranks each keeps fewer.
constexpr std::size_t kMostNewest = std::size_t{1} << 22;
constexpr std::size_t kFewestNewest = std::size_t{1} << 11;
constexpr std::uint64_t kMostInChunk = std::uint64_t{1} << 22;
/// Chunks that may be missing before a damaged one whose place is believed.
constexpr std::uint64_t kMostSkipped = std::uint64_t{1} << 32;

}  // namespace

std::int64_t MemorySample::total() const {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

void Store::State::apply_stage(std::int32_t stage) {
  // Every rank's tables say it, and a rank that comes later begins with it.
  if (std::exchange(applied_stage, stage) == stage) return;
  access.model_state = model_state_categories(stage);
  access.initial = initial_state(stage);
  for (auto& [rank, data] : ranks) data.run.set_stage();
}

RankData& Store::State::data(std::uint32_t rank) {
  const auto known = ranks.find(rank);
  if (known != ranks.end()) return known->second;
  (void)row(rank);
  // 192 blocks of 16,384 events, with their spans, are about what the cache holds.
  constexpr std::size_t kBlock = std::size_t{1} << 14;
  constexpr std::size_t kFewest = 4 * kBlock, kMost = 48 * kBlock, kAll = 192 * kBlock;
  access.most_in_view = std::clamp(kAll / (ranks.size() + 1), kFewest, kMost);
  return ranks.try_emplace(rank, rank, access, keep).first->second;
}

RankRow& Store::State::row(std::uint32_t rank) {
  auto at = std::lower_bound(rows.begin(), rows.end(), rank,
                             [](const RankRow& r, std::uint32_t value) { return r.rank < value; });
  if (at == rows.end() || at->rank != rank) {
    at = rows.insert(at, RankRow{});
    at->rank = rank;
  }
  return *at;
}

const RankRun* Store::State::run(std::uint32_t rank) const {
  const auto at = ranks.find(rank);
  return at == ranks.end() ? nullptr : &at->second.run;
}

void Store::State::take_damage() {
  for (; damage_taken < access.damage().size(); ++damage_taken) {
    const BlockAccess::Damage& damage = access.damage()[damage_taken];
    if (damage.let_go) {
      not_kept.events += damage.events;
      not_kept.until_ns = std::max(not_kept.until_ns, to_run(damage.end_ns));
      gaps.add_not_kept({.rank = damage.rank,
                         .begin_ns = to_run(damage.begin_ns),
                         .end_ns = to_run(damage.end_ns),
                         .events = damage.events,
                         .not_kept = true},
                        false);
      continue;
    }
    gaps.add({.rank = damage.rank,
              .begin_ns = to_run(damage.begin_ns),
              .end_ns = to_run(damage.end_ns),
              .events = damage.events,
              .damaged = true});
  }
}

/// Times of the run that are kept as such; events are kept on the collector's clock, which does not move.
void Store::State::shift(std::int64_t delta_ns) {
  take_damage();
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

bool Store::State::note_gap(const RankData& data, const RankRow& row, const Arrival& arrival) {
  const bool missing_chunks = arrival.sequence > data.next_sequence;
  if (arrival.dropped_before == 0 && arrival.lost_before == 0 && !missing_chunks) return false;
  const std::int64_t begin = arrival.usable && arrival.events > 0 ? to_run(arrival.begin_ns) : row.last_ns;
  std::int64_t since = data.has_events ? row.last_ns : begin;
  // Of blocks that became one it is not known before which of them.
  const bool within = arrival.sum && (arrival.dropped_before != 0 || arrival.lost_before != 0);
  std::int64_t until = within ? to_run(arrival.end_ns) : begin;
  if (arrival.lost_before == 0 && !missing_chunks && arrival.missing_begin_ns < arrival.missing_end_ns &&
      plausible(arrival.missing_begin_ns) && plausible(arrival.missing_end_ns) &&
      plausible(arrival.clock_offset_ns)) {
    since = to_run(arrival.missing_begin_ns + arrival.clock_offset_ns);
    until = to_run(arrival.missing_end_ns + arrival.clock_offset_ns);
  }
  // 0 events: an unknown number, because whole messages are missing as well.
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

void Store::State::take_notable(std::uint32_t rank, RankRun& run) {
  for (const Event& event : run.take_notable()) {
    if (event.kind == EventKind::paused_end) {
      steps.paused(rank, event.v0);
    } else {
      steps.add(rank, event, to_run(static_cast<std::int64_t>(event.ticks)));
    }
  }
}

template <typename Take>
void Store::State::arrive(const Arrival& arrival, Take take) {
  RankData& data = this->data(arrival.rank);
  if (arrival.usable && arrival.events > 0 && (!has_origin || arrival.begin_ns < origin_ns)) {
    if (has_origin) shift(origin_ns - arrival.begin_ns);
    origin_ns = arrival.begin_ns;
    has_origin = true;
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
      gaps.add_evicted(arrival.rank, to_run(gone.begin_ns), to_run(gone.end_ns), gone.events);
    }
    if (arrival.events > 0) {
      data.has_events = true;
      row.last_ns = std::max(row.last_ns, to_run(arrival.end_ns));
      end_ns = std::max(end_ns, to_run(arrival.end_ns));
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

template <typename Take>
void Store::State::arrive_sum(Arrival arrival, std::uint64_t count, Take take) {
  arrival.events = count;
  arrival.sum = true;
  RankData& data = this->data(arrival.rank);
  const bool goes_on = data.not_kept_until != 0 && data.not_kept_until == arrival.sequence;
  arrive(arrival, take);
  access.set_ranks(ranks.size());
  not_kept.events += count;
  not_kept.until_ns = std::max(not_kept.until_ns, to_run(arrival.end_ns));
  gaps.add_not_kept({.rank = arrival.rank,
                     .begin_ns = to_run(arrival.begin_ns),
                     .end_ns = to_run(arrival.end_ns),
                     .events = count,
                     .not_kept = true},
                    goes_on);
  data.not_kept_until = data.next_sequence;
}

void Store::State::ingest(const Chunk& chunk, RankRun::Origin origin) {
  if (chunk.sequence < data(chunk.rank).next_sequence) return;  // seen before, e.g. in a snapshot
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

void Store::note_damaged(const Damaged& chunk) {
  // Its own description may be damaged as well: it must not make up a rank, or hide what follows.
  const auto rank = state_->ranks.find(chunk.rank);
  if (rank == state_->ranks.end()) return;
  RankData& data = rank->second;
  const bool next =
      chunk.sequence >= data.next_sequence && chunk.sequence - data.next_sequence < kMostSkipped;
  if (!next || chunk.parts == 0 || chunk.parts > Chunk::kMaxParts || chunk.end_ns < chunk.begin_ns ||
      !plausible(chunk.begin_ns) || !plausible(chunk.end_ns)) {
    return;
  }
  State& s = *state_;
  // What no checksum covers does not move the origin.
  s.origin_ns = s.has_origin ? s.origin_ns : chunk.begin_ns;
  s.has_origin = true;
  (void)s.note_gap(data, s.row(chunk.rank),
                   {.rank = chunk.rank,
                    .sequence = chunk.sequence,
                    .events = chunk.events,
                    .begin_ns = chunk.begin_ns,
                    .end_ns = chunk.end_ns});
  s.gaps.add({.rank = chunk.rank,
              .begin_ns = s.to_run(chunk.begin_ns),
              .end_ns = s.to_run(chunk.end_ns),
              .events = chunk.events <= kMostInChunk ? chunk.events : 0,
              .damaged = true});
  s.end_ns = std::max(s.end_ns, s.to_run(chunk.end_ns));
  data.next_sequence = chunk.sequence + chunk.parts;
  data.run.gap();
  ++s.revision;
}

void Store::note_cut_off(std::uint32_t rank, std::uint64_t events) {
  State& s = *state_;
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

Store::Store(Keep keep) : state_(std::make_unique<State>(keep)) {}
Store::~Store() = default;
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;

void Store::set_tables(std::uint32_t rank, const ev::RunTables& tables) {
  State& s = *state_;
  RankData& data = s.data(rank);
  // Modules, parameters and slices are the same on every rank and, with many ranks, large: kept once.
  // They grow while the run goes on, on one rank a moment before another.
  const auto size = [](const ev::RunTables& t) {
    return t.modules.size() + t.params.size() + t.slices.size();
  };
  const bool poorer = s.tables && size(tables) < size(*s.tables);
  const bool richer = s.tables && size(tables) > size(*s.tables);
  if (!poorer && (!s.tables || rank <= s.tables->rank || richer)) {
    s.tables = tables;
    s.tables->rank = rank;
  }
  ev::RunTables own = tables;
  own.modules.clear();
  own.params.clear();
  own.slices.clear();
  data.tables = std::move(own);
  RankRow& row = s.row(rank);
  if (row.host.empty()) row.host = tables.host;
  if (row.pid == 0) row.pid = tables.pid;
  const ev::RunTables& run = this->tables();
  s.access.parents = module_parents(run);
  s.steps.set_world(run.world);
  s.apply_stage(run.stage);
  ++s.revision;
}

void Store::ingest(const Chunk& chunk) { state_->ingest(chunk, {}); }

void Store::ingest(const Chunk& chunk, std::int64_t row) {
  state_->ingest(chunk, {.in_memory = false, .row = row});
}

namespace {

/// What a block says of itself as it comes in.
template <typename Arrival>
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

void Store::append(Block block) {
  const auto arrival = arrival_of<State::Arrival>(block);
  state_->arrive(arrival, [&](RankRun& run, bool) { run.append(std::move(block)); });
  state_->access.set_ranks(state_->ranks.size());
}

void Store::append(PackedBlock packed, const RankFigures& figures) {
  const auto arrival = arrival_of<State::Arrival>(packed.origin);
  state_->arrive(arrival, [&](RankRun& run, bool) { run.append(std::move(packed), &figures); });
  state_->access.set_ranks(state_->ranks.size());
}

bool Store::is_packed(std::uint32_t rank) const {
  const RankRun* const run = state_->run(rank);
  return run != nullptr && run->is_packed();
}

void Store::append_sum(Block block, std::uint64_t events, std::span<const ev::Event> rare,
                       bool blocks_follow) {
  state_->arrive_sum(arrival_of<State::Arrival>(block), events,
                     [&](RankRun& run, bool) { run.append_sum(std::move(block), rare, blocks_follow); });
}

void Store::append_sum(PackedBlock packed, const RankFigures* figures, std::uint64_t events,
                       std::span<const ev::Event> rare) {
  state_->arrive_sum(arrival_of<State::Arrival>(packed.origin), events, [&](RankRun& run, bool) {
    run.keep_rare(rare);
    run.append(std::move(packed), figures);
  });
}

void Store::restore_steps(std::vector<StepRow> rows, std::uint32_t through, std::int64_t origin_ns) {
  State& s = *state_;
  if (!s.has_origin) {
    s.origin_ns = origin_ns;
    s.has_origin = true;
  }
  for (StepRow& row : rows) {
    row.begin_ns = s.to_run(row.begin_ns);
    row.end_ns = s.to_run(row.end_ns);
  }
  s.steps.restore(std::move(rows), through);
  ++s.revision;
}

void Store::add_moment(Moment moment) {
  for (std::int64_t* ns : {&moment.at_ns, &moment.begin_ns, &moment.end_ns}) *ns = state_->to_run(*ns);
  state_->moments.push_back(std::move(moment));
  ++state_->revision;
}

const Store::NotKept& Store::not_kept() const {
  state_->take_damage();
  return state_->not_kept;
}
std::span<const Moment> Store::moments() const { return state_->moments; }

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

void Store::go_on_from(std::uint32_t rank, BlockTail tail) {
  state_->data(rank).run.go_on_from(tail.begin, std::move(tail.statuses));
}

void Store::go_on_from_last(std::uint32_t rank) { state_->data(rank).run.go_on_from_last(); }

void Store::set_rows(std::unique_ptr<BlockRows> rows) { state_->access.set_rows(std::move(rows)); }
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
  if (out.events != 0) out.until_ns = state_->to_run(out.until_ns);
  out.steps = state_->steps.evicted();
  return out;
}

void Store::limit_reading(std::optional<std::chrono::nanoseconds> time,
                          std::chrono::nanoseconds frame) const {
  state_->access.limit(time, frame);
}
bool Store::wants_more() const noexcept { return state_->access.short_of_time(); }
std::span<const std::string> Store::problems() const noexcept { return state_->access.problems(); }

void Store::set_rank(const RankRow& row) {
  State& s = *state_;
  (void)s.data(row.rank);
  RankRow& own = s.row(row.rank);
  const RankRow old = own;
  own = row;
  // Counts and times of what was ingested are this store's own.
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

std::int64_t Store::largest_clock_residual(std::uint32_t rank, std::int64_t begin_ns,
                                           std::int64_t end_ns) const {
  const auto data = state_->ranks.find(rank);
  if (data == state_->ranks.end()) return 0;
  const auto found = data->second.residuals.largest(state_->to_clock(begin_ns), state_->to_clock(end_ns));
  return found.value_or(state_->row(rank).largest_clock_residual_ns);
}

std::uint64_t Store::revision() const noexcept {
  // What is damaged is found by looking, and looks different from then on.
  return state_->revision + state_->access.damage().size();
}

bool Store::has_tables() const noexcept { return state_->tables.has_value(); }

const ev::RunTables& Store::tables() const {
  static const ev::RunTables none;
  return state_->tables ? *state_->tables : none;
}

const ev::RunTables* Store::rank_tables(std::uint32_t rank) const {
  const auto data = state_->ranks.find(rank);
  return data == state_->ranks.end() || !data->second.tables ? nullptr : &*data->second.tables;
}

std::span<const RankRow> Store::ranks() const { return state_->rows; }
std::span<const StepRow> Store::steps() const { return state_->steps.rows(); }
std::span<const Message> Store::messages() const { return state_->messages.messages(); }
std::span<const Gap> Store::gaps() const {
  state_->take_damage();
  return state_->gaps.gaps();
}
std::int64_t Store::end_ns() const noexcept { return state_->end_ns; }
std::int64_t Store::origin_ns() const noexcept { return state_->origin_ns; }
std::uint64_t Store::event_count() const noexcept { return state_->events; }
std::uint64_t Store::dropped_count() const noexcept { return state_->dropped; }

std::string Store::name(std::uint32_t rank, std::uint32_t id) const {
  const auto at = state_->names.find(static_cast<std::uint64_t>(rank) << 32 | id);
  return at == state_->names.end() ? std::string() : at->second;
}

}  // namespace shardscope::store
