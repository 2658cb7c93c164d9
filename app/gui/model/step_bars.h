// Bars of the step ruler: one per step, or one for several steps when there are too
// many.
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
  std::size_t first = 0, last = 0;  ///< range [first, last) of Store::steps()
  std::size_t longest = 0;          ///< index of the longest step; the members below describe it
  std::int64_t length_ns = 0;       ///< without pauses; of an open step up to now
  std::int64_t worst_ns = 0;        ///< largest part other than computation, maximum over the ranks
  Meaning worst = Meaning::compute;
  bool known = false;    ///< the parts of the step's time are known
  bool skipped = false;  ///< one of the steps was skipped
};

/// Bars of a run, cached by run, store revision, analysis and width: a recording of a month has too many
/// steps to go through twice per frame.
class StepBars {
 public:
  /// At most `columns` bars, one per step if possible. Valid until the next call. `target_ns`: target
  /// duration of a step; 0: none.
  const std::vector<StepBar>& of(const Session& run, std::size_t columns, std::int64_t target_ns = 0);
  /// The length that fills the height: three medians, or, where less, the longest step or 1.05 times the
  /// target (the larger). A single slow step, often the first, must not flatten all others. At least 1.
  [[nodiscard]] double full_ns() const noexcept { return full_ns_; }
  /// Median of all steps, without pauses; 0 without steps.
  [[nodiscard]] std::int64_t median_ns() const noexcept { return median_ns_; }
  /// Number of steps longer than the target.
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

/// Tooltip of a bar: step, length, largest part other than computation, excess over the target; of several
/// steps the longest one.
[[nodiscard]] std::string text_of(const StepBar& bar, const Session& run, std::int64_t target_ns = 0);

}  // namespace shardscope::gui
