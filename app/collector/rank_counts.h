// Number of ranks in each state, updated incrementally: counting thousands of ranks in every round would
// dominate the round's cost. Pure.
#pragma once

#include <cstdint>
#include <set>
#include <unordered_map>

namespace shardscope::collector {

class RankCounts {
 public:
  struct Traits {
    bool connected = false, finished = false;
    bool unsettled = false;    ///< connected, with too few clock samples yet
    bool holding = false;      ///< at a gate
    bool other_clock = false;  ///< its clock is not this machine's
    bool here = false;         ///< connected directly, not through a node's collector
    friend bool operator==(const Traits&, const Traits&) = default;
  };

  /// Sets the rank's present state.
  void note(std::uint32_t rank, Traits now) {
    Traits& noted = ranks_[rank];
    if (noted == now) return;
    count(noted, -1);
    count(now, 1);
    if (now.here != noted.here) now.here ? void(here_.insert(rank)) : void(here_.erase(rank));
    noted = now;
  }
  void forget(std::uint32_t rank) {
    note(rank, {});
    ranks_.erase(rank);
  }

  [[nodiscard]] std::uint32_t connected() const noexcept { return connected_; }
  [[nodiscard]] std::uint32_t finished() const noexcept { return finished_; }
  [[nodiscard]] bool any_unsettled() const noexcept { return unsettled_ != 0; }
  [[nodiscard]] bool any_holding() const noexcept { return holding_ != 0; }
  [[nodiscard]] bool clocks_differ() const noexcept { return other_clock_ != 0; }
  /// Directly connected ranks, in ascending order.
  [[nodiscard]] const std::set<std::uint32_t>& here() const noexcept { return here_; }

 private:
  void count(const Traits& of, int by) noexcept {
    const auto add = [by](std::uint32_t& to, bool is) { to += is ? static_cast<std::uint32_t>(by) : 0U; };
    add(connected_, of.connected);
    add(finished_, of.finished);
    add(unsettled_, of.unsettled);
    add(holding_, of.holding);
    add(other_clock_, of.other_clock);
  }
  std::unordered_map<std::uint32_t, Traits> ranks_;
  std::uint32_t connected_ = 0, finished_ = 0, unsettled_ = 0, holding_ = 0, other_clock_ = 0;
  std::set<std::uint32_t> here_;
};

}  // namespace shardscope::collector
