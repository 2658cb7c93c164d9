// What a node's collector passes on of what its ranks say again and again. Each rank says every second that
// it is there and at which gate it is: with thousands of ranks that would be most of what the collector above
// does. One message of the node names all of its ranks instead (wire::RelayHello::present). Pure.
#pragma once

#include <cstdint>
#include <map>

#include "instrumentation/wire.h"

namespace shardscope::collector {

class RepeatedMessages {
 public:
  /// The same is passed on again after so long, should the first have been lost.
  static constexpr double kAgain_s = 10;

  [[nodiscard]] bool passes(std::uint32_t rank, std::uint64_t incarnation, double now_s) {
    Rank& said = ranks_[rank];
    if (said.incarnation == incarnation && now_s - said.hello_s < kAgain_s) return false;
    said.incarnation = incarnation;
    said.hello_s = now_s;
    return true;
  }
  /// Whether a rank holds is news; which of many gates it has just passed is not.
  [[nodiscard]] bool passes(std::uint32_t rank, const instrumentation::wire::Position& position,
                            double now_s) {
    Rank& said = ranks_[rank];
    const auto& before = said.position;
    const bool news = position.position.holding != before.position.holding ||
                      (position.position.holding && position.position.number != before.position.number) ||
                      position.detail != before.detail ||
                      position.lease_expirations != before.lease_expirations;
    if (!news && now_s - said.position_s < kAgain_s) return false;
    said.position = position;
    said.position_s = now_s;
    return true;
  }
  /// The collector above is another than before, or may have missed some: everything is passed on.
  void forget() { ranks_.clear(); }
  /// Of this rank, what was passed on last has not got there.
  void forget(std::uint32_t rank) { ranks_.erase(rank); }

 private:
  struct Rank {
    std::uint64_t incarnation = 0;
    double hello_s = -1e300, position_s = -1e300;
    instrumentation::wire::Position position;
  };
  std::map<std::uint32_t, Rank> ranks_;
};

}  // namespace shardscope::collector
