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
  state.status = ev::held_status_of(change.code);
  state.cause = ev::cause_of(change.code);
  state.since_ns = change.at_ns;
  state.module = change.module;
  state.gather = change.gather;
  return state;
}

/// A late change that is older than the current state does not overwrite it.
void StatusIndex::apply(const Change& change, ParamState& state) noexcept {
  if (change.at_ns >= state.since_ns) state = state_of(change);
}

StatusIndex::StatusIndex(std::vector<ParamState> from) : base_(std::move(from)), latest_(base_) {}

/// Parameters without a change have the initial state everywhere, keyframes included: it
/// may be set late, after tables that arrive late.
void StatusIndex::set_initial(ParamState state) {
  state.since_ns = kNever;
  initial_ = state;
  const auto renew = [&](std::vector<ParamState>& states) {
    for (ParamState& known : states) {
      if (known.since_ns == kNever) known = initial_;
    }
  };
  renew(base_);
  renew(latest_);
  for (Keyframe& keyframe : keyframes_) renew(keyframe.states);
}

void StatusIndex::begin_next_stretch() {
  if (!history_) {
    base_ = latest_;
    return;
  }
  const ParamState initial = initial_;
  *this = StatusIndex(std::move(latest_));
  initial_ = initial;
}

/// Stores a change unsorted; settle() sorts.
void StatusIndex::push(const Change& change) {
  if (change.param >= kMaxParams || changes_.size() >= UINT32_MAX) return;
  if (!history_) {
    if (latest_.size() <= change.param) latest_.resize(change.param + 1, initial_);
    apply(change, latest_[change.param]);
    return;
  }
  changes_.push_back(change);
}

/// [Note: how a status index is kept]
/// Between calls of settle(): changes_[0, settled_) ascend by time, equal times in order of arrival;
/// keyframe.next is the number of changes in the keyframe, and keyframes ascend by it; latest_ is the state
/// after changes_[0, settled_). Changes from settled_ on are unsorted. Nearly always they are later than
/// all before, and settle() is linear in their number; a late change costs a replay from the keyframe
/// before it.
void StatusIndex::settle() {
  if (settled_ == changes_.size()) return;
  // Undo the index from the first change that merging may move; equal or later ones are applied again.
  std::int64_t earliest = INT64_MAX;
  for (std::size_t i = settled_; i < changes_.size(); ++i) earliest = std::min(earliest, changes_[i].at_ns);
  std::size_t keep = settled_;
  while (keep > 0 && changes_[keep - 1].at_ns > earliest) --keep;
  while (!keyframes_.empty() && keyframes_.back().next > keep) keyframes_.pop_back();
  merge_in_time(changes_, settled_, [](const Change& c) { return c.at_ns; });
  if (!with_keyframes_) {
    settled_ = changes_.size();
    return;
  }

  std::size_t replay = keep;
  if (keep < settled_) {  // latest_ has changes that are now after others: restart from the last keyframe
    replay = keyframes_.empty() ? 0 : keyframes_.back().next;
    latest_ = keyframes_.empty() ? base_ : keyframes_.back().states;
  }
  std::size_t next_keyframe =
      (keyframes_.empty() ? 0 : keyframes_.back().next) + keyframe_interval(latest_.size());
  for (std::size_t i = replay; i < changes_.size(); ++i) {
    const Change& change = changes_[i];
    if (latest_.size() <= change.param) latest_.resize(change.param + 1, initial_);
    apply(change, latest_[change.param]);
    if (i + 1 >= next_keyframe) {
      keyframes_.push_back({.next = i + 1, .states = latest_});
      next_keyframe = i + 1 + keyframe_interval(latest_.size());
    }
  }
  settled_ = changes_.size();
}

/// The last keyframe without a change after `at_ns`, then the changes between it and `at_ns`: at most one
/// keyframe interval of them, at any time.
void StatusIndex::all_at(std::int64_t at_ns, std::span<ParamState> out) const {
  std::fill(out.begin(), out.end(), initial_);
  const auto end = static_cast<std::size_t>(
      std::partition_point(changes_.begin(), changes_.begin() + static_cast<std::ptrdiff_t>(settled_),
                           [&](const Change& c) { return c.at_ns <= at_ns; }) -
      changes_.begin());
  const auto keyframe = std::partition_point(keyframes_.begin(), keyframes_.end(),
                                             [&](const Keyframe& k) { return k.next <= end; });
  std::size_t i = 0;
  const std::vector<ParamState>* states = &base_;
  if (keyframe != keyframes_.begin()) {
    states = &(keyframe - 1)->states;
    i = (keyframe - 1)->next;
  }
  std::copy_n(states->begin(), std::min(states->size(), out.size()), out.begin());
  for (; i < end; ++i) {
    if (changes_[i].param < out.size()) apply(changes_[i], out[changes_[i].param]);
  }
}

/// In one pass: `out` has the state before this block, and may have more parameters than its keyframes.
void StatusIndex::replay(std::int64_t at_ns, std::span<ParamState> out) const {
  for (std::size_t i = 0; i < settled_ && changes_[i].at_ns <= at_ns; ++i) {
    if (changes_[i].param < out.size()) apply(changes_[i], out[changes_[i].param]);
  }
}

std::size_t StatusIndex::bytes() const noexcept {
  std::size_t bytes =
      changes_.capacity() * sizeof(Change) + (base_.capacity() + latest_.capacity()) * sizeof(ParamState);
  for (const Keyframe& keyframe : keyframes_) bytes += keyframe.states.capacity() * sizeof(ParamState);
  return bytes;
}

std::vector<Store::StatusChange> StatusIndex::history(std::uint32_t param) const {
  std::vector<Store::StatusChange> out;
  for (std::size_t i = 0; i < settled_; ++i) {
    if (changes_[i].param == param) out.push_back({changes_[i].at_ns, state_of(changes_[i])});
  }
  return out;
}

}  // namespace shardscope::store
