#include "app/store/rank_state.h"

#include <algorithm>
#include <utility>

#include "app/store/chunk.h"
#include "app/store/event_time.h"
#include "app/store/merge_in_time.h"
#include "app/store/pauses.h"
#include "app/store/run_facts.h"

namespace shardscope::store {
namespace {

using ev::Event;
using ev::EventKind;

enum class Role : std::uint8_t { unknown, begin, end, mark, instant };

/// Role of each kind in add(), as a table because add() runs for every event.
const std::array<Role, 256>& roles() {
  static const std::array<Role, 256> table = [] {
    std::array<Role, 256> out{};
    for (std::size_t k = 1; k < out.size(); ++k) {
      const auto kind = static_cast<EventKind>(k);
      if (std::string_view(ev::name_of(kind)) == "unknown") continue;
      out[k] = ev::is_begin(kind)                      ? Role::begin
               : ev::is_end(kind)                      ? Role::end
               : kind == EventKind::collective_entered ? Role::mark
                                                       : Role::instant;
    }
    return out;
  }();
  return table;
}

}  // namespace

Missing missing_of(const Chunk& chunk) {
  const auto [begin, end] = chunk.times();
  const bool known = chunk.lost_before == 0 && chunk.missing_begin_ns < chunk.missing_end_ns &&
                     plausible(chunk.missing_begin_ns) && plausible(chunk.missing_end_ns);
  const std::int64_t until = known ? chunk.missing_end_ns : chunk.lost_before == 0 ? begin : end;
  if (!plausible(until) || !plausible(chunk.clock_offset_ns)) return {};
  return {known ? chunk.missing_begin_ns + chunk.clock_offset_ns : Lane::kNever,
          until + chunk.clock_offset_ns};
}

RankState::RankState(For use) : for_(use) {
  if (use == For::totals) {
    for (Lane& lane : lanes_) lane.without_density();
  }
  if (use == For::blocks) status_.without_history();
}

void RankState::expect(std::int64_t ns) noexcept {
  for (Lane& lane : lanes_) lane.expect(ns);
}

RankState::RankState(const RankKeyframe& from, std::vector<ParamState> statuses)
    : status_(std::move(statuses)), buckets_(from.buckets), buckets_before_(from.buckets) {
  for (std::size_t i = 0; i < lanes_.size(); ++i) lanes_[i] = Lane(from.lanes[i], Lane::Detail::levels);
  for (std::size_t p = 0; p < memory_.size(); ++p) memory_[p] = MemoryIndex(from.memory[p]);
}

RankState::RankState(const RankKeyframe& from, std::vector<ParamState> statuses,
                     const Corrections& corrections, For use)
    : for_(use), status_(std::move(statuses)), buckets_(from.buckets), buckets_before_(from.buckets) {
  if (keeps(For::spans)) {
    for (std::size_t i = 0; i < lanes_.size(); ++i) lanes_[i] = Lane(from.lanes[i], Lane::Detail::spans);
  }
  if (use == For::states) status_.without_keyframes();
  if (keeps(For::states)) {
    for (std::size_t p = 0; p < memory_.size(); ++p) memory_[p] = MemoryIndex(from.memory[p], corrections[p]);
  }
}

void RankState::set_stage(const std::array<bool, ev::kMemoryCategoryCount>& model_state,
                          const ParamState& initial) {
  for (MemoryIndex& memory : memory_) memory.set_model_state(model_state);
  status_.set_initial(initial);
}

void RankState::gap(const Missing& missing) {
  std::int64_t until_ns = missing.until_ns;
  // A lane may have been silent longer than the others.
  for (const Lane& lane : lanes_) until_ns = std::max(until_ns, lane.last_ns());
  for (Lane& lane : lanes_) lane.gap(missing.from_ns, until_ns);
  for (MemoryIndex& memory : memory_) memory.gap();
}

void RankState::pass_missing(std::int64_t at_ns, std::optional<Missing>& missing) {
  if (!missing->known()) {
    end_missing(missing);
    return;
  }
  if (at_ns < missing->from_ns) return;
  if (!std::exchange(missing->begun, true)) gap(*missing);
  if (at_ns >= missing->until_ns) end_missing(missing);
}

void RankState::end_missing(std::optional<Missing>& missing) {
  if (!missing) return;
  Missing rest = *missing;
  if (rest.begun) rest.from_ns = Lane::kNever;  // spans begun since then have ended or continue
  gap(rest);
  missing.reset();
}

void RankState::note(const Event& event, std::int64_t at_ns) {
  notable_.push_back(event);
  notable_.back().ticks = static_cast<std::uint64_t>(at_ns);
}

void RankState::add(const Event& event, std::int64_t at_ns, const std::vector<std::uint32_t>& parents) {
  const auto kind = static_cast<std::size_t>(event.kind);
  const auto stream = static_cast<std::size_t>(event.stream);
  if (kind >= roles().size() || stream >= lanes_.size()) return;
  const Role role = roles()[kind];
  if (role != Role::instant && (for_ == For::states || for_ == For::instants)) return;
  switch (role) {
    case Role::begin:
      lanes_[stream].begin(event, at_ns, parents);
      if (event.kind == EventKind::step_begin) note(event, at_ns);
      return;
    case Role::end: {
      const Span* span = lanes_[stream].end(event, at_ns);
      if (span == nullptr) [[unlikely]]
        count_unmatched_end(event, at_ns);
      if (span == nullptr || span->end_ns < at_ns) [[unlikely]] {
        if (for_ == For::views || for_ == For::spans)
          ends_without_begin_.push_back({.at_ns = at_ns,
                                         .stream = event.stream,
                                         .begin = begin_of(event.kind),
                                         .since_ns = span != nullptr ? span->end_ns : Lane::kNever});
      }
      if (event.kind == EventKind::step_end) {
        note(event, at_ns);
        if (span != nullptr) {
          for (Lane& lane : lanes_) lane.step_received(span->begin_ns);
        }
      }
      if (event.kind == EventKind::paused_end && span != nullptr) {
        note(event, at_ns);
        set_pause_length(notable_.back(), span->end_ns - span->begin_ns);
      }
      return;
    }
    case Role::mark:
      lanes_[stream].mark(event, at_ns);
      return;
    case Role::instant:
      add_instant(event, at_ns);
      return;
    case Role::unknown:
      return;
  }
}

void RankState::count_unmatched_end(const Event& end, std::int64_t at_ns) {
  const std::uint8_t explained = lanes_[static_cast<std::size_t>(end.stream)].explains(end, at_ns) ? 1 : 0;
  const auto known =
      std::find_if(unmatched_ends_.begin(), unmatched_ends_.end(),
                   [&](const InstantCount& row) { return row.kind == end.kind && row.code == explained; });
  if (known != unmatched_ends_.end()) {
    ++known->count;
  } else {
    unmatched_ends_.push_back({.kind = end.kind, .code = explained, .count = 1});
  }
}

void RankState::add_of_state(const Event& event, std::int64_t at_ns) {
  switch (event.kind) {
    case EventKind::param_status: {
      const auto change = ev::as<EventKind::param_status>(event);
      status_.push({.at_ns = at_ns,
                    .param = change.param,
                    .module = change.module,
                    .gather = change.gather,
                    .code = event.code});
      return;
    }
    case EventKind::memory_alloc:
    case EventKind::memory_free: {
      const auto change = ev::as<EventKind::memory_alloc>(event);
      const auto pool = static_cast<std::size_t>(change.pool);
      if (pool >= memory_.size()) return;
      memory_[pool].push({.at_ns = at_ns,
                          .delta = event.kind == EventKind::memory_alloc ? change.bytes : -change.bytes,
                          .after = change.pool_bytes,
                          .category = change.category});
      return;
    }
    case EventKind::bucket_open:
    case EventKind::bucket_add:
    case EventKind::bucket_flush:
      bucket_events_.push_back(event);
      bucket_events_.back().ticks = static_cast<std::uint64_t>(at_ns);
      return;
    default:
      return;
  }
}

void RankState::add(std::span<const Event> events, std::int64_t clock_offset_ns,
                    const std::vector<std::uint32_t>& parents, std::optional<Missing>& missing) {
  if (for_ == For::states) {
    for (const Event& event : events) {
      if (static_cast<std::size_t>(event.stream) >= lanes_.size()) continue;
      add_of_state(event, event_time(event) + clock_offset_ns);
    }
    return;
  }
  for (const Event& event : events) {
    const std::int64_t at_ns = event_time(event) + clock_offset_ns;
    note_missing_until(at_ns, missing);
    add(event, at_ns, parents);
  }
}

void RankState::add_instant(const Event& event, std::int64_t at_ns) {
  if (keeps(For::instants)) {
    instants_.push_back(event);
    instants_.back().ticks = static_cast<std::uint64_t>(at_ns);
  } else if (for_ == For::blocks) {
    ++counts_.row(kind_key({}, event.kind, event.code)).first;
  }
  if (ev::role_of(event.kind) == ev::EventRole::step_value) return note(event, at_ns);
  switch (event.kind) {
    case EventKind::param_status:
      if (keeps(For::states)) add_of_state(event, at_ns);
      return;
    case EventKind::memory_alloc:
    case EventKind::memory_free:
      if (keeps(For::states) || for_ == For::totals) add_of_state(event, at_ns);
      return;
    case EventKind::tokens:
      note(event, at_ns);
      return;
    case EventKind::detail_changed: {
      const auto change = ev::as<EventKind::detail_changed>(event);
      for (Lane& lane : lanes_) lane.gap_of_detail(std::min(change.before, change.detail), at_ns);
      return;
    }
    case EventKind::bucket_open:
    case EventKind::bucket_add:
    case EventKind::bucket_flush:
      if (!keeps(For::states)) return;
      buckets_.add(event, at_ns);
      if (for_ != For::blocks) add_of_state(event, at_ns);
      return;
    case EventKind::gate: {
      ++gate_count_;
      if (!keeps(For::instants)) return;
      const auto gate = ev::as<EventKind::gate>(event);
      gates_.push_back({.at_ns = at_ns, .number = gate.number, .kind = gate.gate, .id = gate.id});
      return;
    }
    default:
      return;
  }
}

void RankState::reserve(std::span<const Event> events) {
  if (for_ == For::instants) instants_.reserve(events.size());
  if (for_ != For::states) return;
  std::size_t statuses = 0;
  std::array<std::size_t, 16> memory{};
  for (const Event& event : events) {
    if (event.kind == EventKind::param_status) ++statuses;
    if (event.kind == EventKind::memory_alloc || event.kind == EventKind::memory_free)
      ++memory[static_cast<std::size_t>(ev::as<EventKind::memory_alloc>(event).pool)];
  }
  status_.reserve(statuses);
  for (std::size_t p = 0; p < memory_.size(); ++p) memory_[p].reserve(memory[p]);
}

void RankState::settle() {
  merge_in_time(instants_, std::min(settled_instants_, instants_.size()), event_time);
  merge_in_time(gates_, std::min(settled_gates_, gates_.size()),
                [](const Store::GateRow& gate) { return gate.at_ns; });
  merge_in_time(bucket_events_, std::min(settled_buckets_, bucket_events_.size()), event_time);
  settled_buckets_ = bucket_events_.size();
  settled_instants_ = instants_.size();
  settled_gates_ = gates_.size();
  status_.settle();
  for (MemoryIndex& memory : memory_) memory.settle();
  for (Lane& lane : lanes_) lane.settle();
}

void RankState::close_stretch() {
  for (Lane& lane : lanes_) lane.close_stretch();
}

std::vector<InstantCount> RankState::instant_counts() const {
  std::vector<InstantCount> out;
  const auto add = [&out](const KindTable<std::uint32_t>& table) {
    for (const auto& [key, count] : table.sorted()) {
      out.push_back({static_cast<EventKind>(key >> 8U & 0xFFFFU), static_cast<std::uint8_t>(key), count});
    }
  };
  if (for_ == For::blocks) {
    add(counts_);
    return out;
  }
  KindTable<std::uint32_t> counts;
  for (const Event& event : instants_) ++counts.row(kind_key({}, event.kind, event.code)).first;
  add(counts);
  return out;
}

RankKeyframe RankState::keyframe() const {
  RankKeyframe out;
  for (std::size_t i = 0; i < lanes_.size(); ++i) out.lanes[i] = lanes_[i].keyframe();
  for (std::size_t p = 0; p < memory_.size(); ++p) out.memory[p] = memory_[p].keyframe();
  out.buckets = buckets_.open();
  return out;
}

std::int64_t RankState::open_since() const noexcept {
  std::int64_t since = INT64_MAX;
  for (const Lane& lane : lanes_) {
    if (lane.open_count() > 0) since = std::min(since, lane.spans(0).back().begin_ns);
  }
  return since;
}

const Lane& RankState::lane(ev::StreamId stream) const {
  static const Lane none;
  const auto index = static_cast<std::size_t>(stream);
  return index < lanes_.size() ? lanes_[index] : none;
}

std::vector<BucketState> RankState::buckets_at(std::int64_t at_ns) const {
  BucketTracker replay(buckets_before_);
  for (const Event& event : bucket_events_) {
    if (event_time(event) > at_ns) break;
    replay.add(event, event_time(event));
  }
  return replay.open();
}

std::size_t RankState::bytes() const noexcept {
  std::size_t bytes =
      sizeof *this + status_.bytes() +
      (instants_.capacity() + notable_.capacity() + bucket_events_.capacity()) * sizeof(Event) +
      gates_.capacity() * sizeof(Store::GateRow) + ends_without_begin_.capacity() * sizeof(EndWithoutBegin);
  for (const Lane& lane : lanes_) bytes += lane.bytes();
  for (const MemoryIndex& memory : memory_) bytes += memory.bytes();
  return bytes;
}

}  // namespace shardscope::store
