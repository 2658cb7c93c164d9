// Why the run hangs, kept up for the window: a diagnosis reads the last two steps of every rank, so it
// is made once for what there is, and of a live run not before that has been quiet for a while.
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

  enum class Run : std::uint8_t { goes_on, held, over };  ///< held: by a pause, or not connected
  /// At every look at a live store. True where what it says has changed.
  bool look(const store::Store& store, Run run, Clock::time_point now);
  /// While a live run hangs; null: it goes on, is paused or over, or no rank waits.
  [[nodiscard]] const analysis::Hang* current_hang() const noexcept {
    return hang_ && !over_ && hang_->hung ? &*hang_ : nullptr;
  }
  /// What the panel shows: of a live run that goes on nothing is diagnosed. Of one that is over, as its end
  /// was recorded: made here, once.
  [[nodiscard]] const analysis::Hang& diagnosis(const store::Store& store, Run run);
  /// Changes with what diagnosis() returns.
  [[nodiscard]] std::uint64_t revision() const noexcept { return revision_; }

 private:
  void set(std::optional<analysis::Hang> hang, std::uint64_t of);
  std::uint64_t events_ = 0, of_ = UINT64_MAX;
  Clock::time_point changed_{}, made_{};
  std::optional<analysis::Hang> hang_;
  analysis::Hang none_;
  bool over_ = false;  ///< hang_ is of the end of a run that is over
  std::uint64_t revision_ = 0;
};

/// A row a rank: what it does, in which collective, for whom it waits.
[[nodiscard]] Table hang_table(const analysis::Hang& hang);

}  // namespace shardscope::gui
