#include "app/store/status_index.h"

#include <algorithm>

#include "app/store/merge_in_time.h"

namespace shardscope::store {
namespace {

/// Replaying this many changes costs about as much as copying a keyframe.
std::size_t keyframe_interval(std::size_t params) noexcept { return std::max<std::size_t>(1024, 4 * params); }

}  // namespace

ParamState StatusIndex::state_of(const Change& change) noexcept {
  ParamState state;
  state.status = change.code & 0xFU;
  state.cause = static_cast<ev::StatusCause>(change.code >> 4);
  state.since_ns = change.at_ns;
  state.module = change.module;
  state.gather = change.gather;
  return state;
}

void StatusIndex::push(const Change& change) {
  if (change.param >= kMaxParams || changes_.size() >= UINT32_MAX) return;
  changes_.push_back(change);
}

void StatusIndex::settle() {
  if (settled_ == changes_.size()) return;
  // Undo the index from the first change that merging may move; equal or later ones are looked at again.
  std::int64_t earliest = INT64_MAX;
  for (std::size_t i = settled_; i < changes_.size(); ++i) earliest = std::min(earliest, changes_[i].at_ns);
  std::size_t keep = settled_;
  while (keep > 0 && changes_[keep - 1].at_ns > earliest) --keep;
  for (std::size_t i = settled_; i-- > keep;) places_[changes_[i].param].pop_back();
  while (!keyframes_.empty() && keyframes_.back().next > keep) keyframes_.pop_back();
  merge_in_time(changes_, settled_, [](const Change& c) { return c.at_ns; });

  std::size_t replay = keep;
  if (keep < settled_) {
    replay = keyframes_.empty() ? 0 : keyframes_.back().next;
    latest_ = keyframes_.empty() ? std::vector<ParamState>{} : keyframes_.back().states;
  }
  std::size_t next_keyframe =
      (keyframes_.empty() ? 0 : keyframes_.back().next) + keyframe_interval(latest_.size());
  for (std::size_t i = replay; i < changes_.size(); ++i) {
    const Change& change = changes_[i];
    if (latest_.size() <= change.param) latest_.resize(change.param + 1, initial_);
    latest_[change.param] = state_of(change);
    if (i >= keep) {
      if (places_.size() <= change.param) places_.resize(change.param + 1);
      places_[change.param].push_back(static_cast<std::uint32_t>(i));
    }
    if (i + 1 >= next_keyframe) {
      keyframes_.push_back({.next = i + 1, .states = latest_});
      next_keyframe = i + 1 + keyframe_interval(latest_.size());
    }
  }
  settled_ = changes_.size();
}

void StatusIndex::shift(std::int64_t delta_ns) {
  for (Change& change : changes_) change.at_ns += delta_ns;
  const auto move = [&](std::vector<ParamState>& states) {
    for (ParamState& state : states) state.since_ns += delta_ns;
  };
  for (Keyframe& keyframe : keyframes_) move(keyframe.states);
  move(latest_);
}

ParamState StatusIndex::at(std::uint32_t param, std::int64_t at_ns) const {
  if (param >= places_.size()) return initial_;
  const std::vector<std::uint32_t>& places = places_[param];
  const auto after = std::partition_point(places.begin(), places.end(),
                                          [&](std::uint32_t i) { return changes_[i].at_ns <= at_ns; });
  return after == places.begin() ? initial_ : state_of(changes_[*(after - 1)]);
}

void StatusIndex::all_at(std::int64_t at_ns, std::span<ParamState> out) const {
  std::fill(out.begin(), out.end(), initial_);
  const auto end = static_cast<std::size_t>(
      std::partition_point(changes_.begin(), changes_.begin() + static_cast<std::ptrdiff_t>(settled_),
                           [&](const Change& c) { return c.at_ns <= at_ns; }) -
      changes_.begin());
  const auto keyframe = std::partition_point(keyframes_.begin(), keyframes_.end(),
                                             [&](const Keyframe& k) { return k.next <= end; });
  std::size_t i = 0;
  if (keyframe != keyframes_.begin()) {
    const Keyframe& base = *(keyframe - 1);
    std::copy_n(base.states.begin(), std::min(base.states.size(), out.size()), out.begin());
    i = base.next;
  }
  for (; i < end; ++i) {
    if (changes_[i].param < out.size()) out[changes_[i].param] = state_of(changes_[i]);
  }
}

std::vector<Store::StatusChange> StatusIndex::history(std::uint32_t param) const {
  std::vector<Store::StatusChange> out;
  if (param >= places_.size()) return out;
  out.reserve(places_[param].size());
  for (const std::uint32_t i : places_[param]) out.push_back({changes_[i].at_ns, state_of(changes_[i])});
  return out;
}

}  // namespace shardscope::store
