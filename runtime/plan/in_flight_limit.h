// How far the host may run ahead of what it has started (docs/zero.md C6).
//
// [Note: limiting without asking what has finished]
// Before it waits for the next handle, DeepSpeed drops finished events from the left, and if more than two
// are left it waits for the oldest of them. One is added between two such checks, so at most three are
// tracked. Waiting for a finished one returns at once: with three tracked, waiting for the oldest has the
// same effect whether finished ones were dropped before or not. So the device is not queried, and the
// decision does not depend on the clock: it is the same on all ranks and in a simulation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace shardscope::plan {

/// Kinds of operation whose number in flight is limited.
enum class LimitedOperation : std::uint8_t { gathers, reductions };

/// A limit as the configuration has it: 0 stands for none.
[[nodiscard]] constexpr std::optional<std::size_t> max_ongoing(std::int64_t configured) noexcept {
  if (configured <= 0) return std::nullopt;
  return static_cast<std::size_t>(configured);
}

/// Counts what is started and says when the oldest must be done first. Ids may repeat: each start counts.
template <typename Id>
class InFlightLimit {
 public:
  /// `most` may be unfinished when another is started, so most + 1 after it; none: no limit.
  explicit InFlightLimit(std::optional<std::size_t> most) : most_(most) {}

  /// Another is about to start: the one that must be done before, if any. It is no longer tracked.
  [[nodiscard]] std::optional<Id> admit() {
    if (!most_ || started_.size() <= *most_) return std::nullopt;
    const Id oldest = started_.front();
    started_.pop_front();
    return oldest;
  }
  void started(Id id) {
    if (most_) started_.push_back(id);
  }
  /// All are known to be done.
  void all_done() noexcept { started_.clear(); }
  [[nodiscard]] std::size_t in_flight() const noexcept { return started_.size(); }
  [[nodiscard]] std::optional<std::size_t> most() const noexcept { return most_; }

 private:
  std::optional<std::size_t> most_;
  std::deque<Id> started_;
};

}  // namespace shardscope::plan
