// How many operations that the host started may be unfinished (docs/zero.md C6).
//
// [Note: limiting without querying completion]
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

/// A limit of the configuration, where 0 means no limit.
[[nodiscard]] constexpr std::optional<std::size_t> max_ongoing(std::int64_t configured) noexcept {
  if (configured <= 0) return std::nullopt;
  return static_cast<std::size_t>(configured);
}

/// Tracks started operations and returns the oldest when it must finish first. Ids may repeat: each start
/// counts.
template <typename Id>
class InFlightLimit {
 public:
  /// `most` operations may be unfinished when another is started, so most + 1 after it; nullopt: no limit.
  explicit InFlightLimit(std::optional<std::size_t> most) : most_(most) {}

  /// Before another operation starts: returns the one that must finish first, if any, and stops tracking it.
  [[nodiscard]] std::optional<Id> admit() {
    if (!most_ || started_.size() <= *most_) return std::nullopt;
    const Id oldest = started_.front();
    started_.pop_front();
    return oldest;
  }
  void started(Id id) {
    if (most_) started_.push_back(id);
  }
  /// All started operations have finished.
  void all_done() noexcept { started_.clear(); }
  [[nodiscard]] std::size_t in_flight() const noexcept { return started_.size(); }
  [[nodiscard]] std::optional<std::size_t> most() const noexcept { return most_; }

 private:
  std::optional<std::size_t> most_;
  std::deque<Id> started_;
};

}  // namespace shardscope::plan
