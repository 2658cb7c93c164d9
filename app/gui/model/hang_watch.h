// Hang diagnosis for the window. A diagnosis reads the last two steps of every rank, so it is cached by store
// revision and made for a live run only after no event has arrived for a while.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "app/analysis/hang/hang.h"
#include "app/gui/model/table.h"
#include "app/store/store.h"

namespace shardscope::gui {

class HangWatch {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kQuiet{1500};
  static constexpr std::chrono::seconds kEvery{1};

  enum class Run : std::uint8_t { running, held, over };  ///< held: paused, or not connected
  /// Call when a live store is looked at. True when the diagnosis has changed.
  bool look(const store::Store& store, Run run, Clock::time_point now);
  /// The diagnosis of a live run that hangs; null while it runs, is paused or over, or no rank waits.
  [[nodiscard]] const analysis::Hang* current_hang() const noexcept {
    return hang_ && !over_ && hang_->hung ? &*hang_ : nullptr;
  }
  /// The diagnosis for the panel. A live run that makes progress gets a placeholder text; one that is over is
  /// diagnosed here, once per store revision.
  [[nodiscard]] const analysis::Hang& diagnosis(const store::Store& store, Run run);
  /// Incremented when the result of diagnosis() changes.
  [[nodiscard]] std::uint64_t revision() const noexcept { return revision_; }

 private:
  void set(std::optional<analysis::Hang> hang, std::uint64_t of);
  std::uint64_t events_ = 0, of_ = UINT64_MAX;
  Clock::time_point changed_{}, made_{};
  std::chrono::nanoseconds usual_{};  ///< analysis::usual_wait_ns() of the store at its last revision
  bool judged_long_ = false;          ///< whether the wait was longer than that when the diagnosis was made
  std::optional<analysis::Hang> hang_;
  analysis::Hang none_;
  bool over_ = false;  ///< hang_ was diagnosed after the run was over
  std::uint64_t revision_ = 0;
};

/// One row per rank: what it does, its collective, the ranks it waits for.
[[nodiscard]] Table hang_table(const analysis::Hang& hang);

}  // namespace shardscope::gui
