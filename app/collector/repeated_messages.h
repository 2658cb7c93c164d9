// What a node's collector passes on of what its ranks repeat. Each rank sends every second that it is there
// and at which gate it is: with thousands of ranks that would be most of what the collector above does. One
// message of the node lists all of its ranks instead (wire::RelayHello::present), with a sum of which
// processes they are (greeting_agreement.h): only what has changed passes. Pure.
#pragma once

#include <cstdint>
#include <map>

#include "instrumentation/wire.h"

namespace shardscope::collector {

class RepeatedMessages {
 public:
  /// Of another process of the rank than the last that passed.
  [[nodiscard]] bool passes(std::uint32_t rank, std::uint64_t incarnation) {
    Rank& passed = ranks_[rank];
    if (passed.greeted && passed.incarnation == incarnation) return false;
    // The place of another process of the rank is passed on.
    if (passed.incarnation != incarnation) passed.placed = false;
    passed.incarnation = incarnation;
    passed.greeted = true;
    return true;
  }
  /// Whether a rank holds is passed on; which of many gates it has just passed is not.
  [[nodiscard]] bool passes(std::uint32_t rank, const instrumentation::wire::Position& position) {
    Rank& passed = ranks_[rank];
    const auto& before = passed.position;
    const bool changed = !passed.placed || position.position.holding != before.position.holding ||
                         (position.position.holding && position.position.number != before.position.number) ||
                         position.detail != before.detail ||
                         position.lease_expirations != before.lease_expirations;
    if (!changed) return false;
    passed.position = position;
    passed.placed = true;
    return true;
  }
  /// The collector above is another than before, or may have missed some: everything is passed on.
  void forget() { ranks_.clear(); }
  /// Of this rank, what was passed on last has not got there.
  void forget(std::uint32_t rank) { ranks_.erase(rank); }
  /// The collector above has forgotten where it is.
  void forget_position(std::uint32_t rank) {
    if (const auto passed = ranks_.find(rank); passed != ranks_.end()) passed->second.placed = false;
  }

 private:
  struct Rank {
    std::uint64_t incarnation = 0;
    bool greeted = false, placed = false;  ///< `incarnation`, `position` are of what has passed
    instrumentation::wire::Position position;
  };
  std::map<std::uint32_t, Rank> ranks_;
};

}  // namespace shardscope::collector
