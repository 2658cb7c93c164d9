// The bars of the ruler of steps: one for each step, or, of more steps than there is room for, one for
// several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/gui/model/palette.h"
#include "app/gui/model/session.h"

namespace shardscope::gui {

struct StepBar {
  std::size_t first = 0, last = 0;  ///< the steps [first, last) of Store::steps()
  std::size_t longest = 0;          ///< of them; what follows is of this one
  std::int64_t length_ns = 0;       ///< without pauses; of an open step until now
  std::int64_t worst_ns = 0;  ///< the largest part that was no computation, of the rank where it is largest
  Meaning worst = Meaning::compute;
  bool known = false;    ///< where the step's time went
  bool skipped = false;  ///< one of the steps was
};

/// A run's bars, made again when the run, its analysis or the room has changed: a frame of a recording of a
/// month would else go through all its steps twice.
class StepBars {
 public:
  /// A bar for each step, at most `columns`. Valid until the next call. `target_ns`: how long a step is to
  /// take; 0: that is not said.
  const std::vector<StepBar>& of(const Session& run, std::size_t columns, std::int64_t target_ns = 0);
  /// The length that fills the height: three medians of all steps, or the longest step or the target where
  /// that is less. One slow step, most often the first, must not flatten all others. At least 1.
  [[nodiscard]] double full_ns() const noexcept { return full_ns_; }
  /// Of all steps, without pauses; 0 where there are none.
  [[nodiscard]] std::int64_t median_ns() const noexcept { return median_ns_; }
  /// Steps that took longer than the target.
  [[nodiscard]] std::size_t beyond() const noexcept { return beyond_; }

 private:
  const Session* run_ = nullptr;
  std::uint64_t revision_ = 0;
  std::shared_ptr<const Analysis> analysis_;
  std::size_t columns_ = 0, beyond_ = 0;
  std::int64_t target_ns_ = 0, median_ns_ = 0;
  std::vector<StepBar> bars_;
  double full_ns_ = 1;
};

/// The tool tip of a bar: the step, its length, its worst part, how far it is beyond the target; of several
/// steps the longest.
[[nodiscard]] std::string text_of(const StepBar& bar, const Session& run, std::int64_t target_ns = 0);

}  // namespace shardscope::gui
