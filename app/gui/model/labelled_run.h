// The runs that a panel shows side by side: of a comparison A and B, with their letters.
#pragma once

#include <vector>

#include "app/gui/model/range_communication.h"
#include "app/gui/model/session.h"

namespace shardscope::gui {

struct AppState;

/// A run shown in a panel. `letter` is empty when only one run is open.
struct LabelledRun {
  const Session* run = nullptr;
  const char* letter = "";
  const RangeCommunication::Figures* of_range = nullptr;  ///< in place of the figures of the whole run
  [[nodiscard]] const analysis::Summary& figures() const {
    return of_range != nullptr ? of_range->summary : run->summary();
  }
  [[nodiscard]] const std::vector<analysis::Wait>& longest_waits() const {
    return of_range != nullptr ? of_range->longest_waits : run->longest_waits();
  }
};

/// A, then B if a second run is open, whichever of them the other panels show.
[[nodiscard]] std::vector<LabelledRun> labelled_runs(const AppState& app);
/// The run that panels of one run show.
[[nodiscard]] LabelledRun shown_run(const AppState& app);
/// Index of a letter's colour in Palette::runs.
[[nodiscard]] constexpr std::size_t index_of(const char* letter) noexcept { return *letter == 'B' ? 1 : 0; }

}  // namespace shardscope::gui
