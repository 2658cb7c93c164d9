// Filters the control messages that ranks repeat before a node's collector relays them. Each rank sends its
// presence and its gate every second: with thousands of ranks that would be most of the work of the collector
// above. One message of the node lists all of its ranks instead (wire::RelayHello::present), with a checksum
// of their processes (hello_agreement.h), and only changes pass. Pure.
#pragma once

#include <cstdint>
#include <map>

#include "instrumentation/wire.h"

namespace shardscope::collector {

class RepeatedMessages {
 public:
  /// Whether a hello passes: it is of another process of the rank than the last one that passed.
  [[nodiscard]] bool passes(std::uint32_t rank, std::uint64_t incarnation) {
    Rank& passed = ranks_[rank];
    if (passed.hello && passed.incarnation == incarnation) return false;
    // The first position of another process passes, too.
    if (passed.incarnation != incarnation) passed.placed = false;
    passed.incarnation = incarnation;
    passed.hello = true;
    return true;
  }
  /// Whether a position passes: begins and ends of holds do, the gates that a running rank passes do not.
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
  /// The collector above was restarted, or may have missed messages: everything passes again.
  void forget() { ranks_.clear(); }
  /// The message of this rank that passed last was not sent.
  void forget(std::uint32_t rank) { ranks_.erase(rank); }
  /// The collector above has discarded the rank's position: the next one passes.
  void forget_position(std::uint32_t rank) {
    if (const auto passed = ranks_.find(rank); passed != ranks_.end()) passed->second.placed = false;
  }

 private:
  struct Rank {
    std::uint64_t incarnation = 0;
    bool hello = false, placed = false;  ///< whether `incarnation`, `position` have passed
    instrumentation::wire::Position position;
  };
  std::map<std::uint32_t, Rank> ranks_;
};

}  // namespace shardscope::collector
