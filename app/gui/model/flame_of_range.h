// The flame tree of what is looked at: the one that is shown, and the one that is being counted for another
// range meanwhile.
#pragma once

#include "app/gui/model/flame.h"

namespace shardscope::gui {

struct AppState;

enum class FlameScope : std::uint8_t { range, run };
enum class FlameSplit : std::uint8_t { over_ranks, by_rank };

class FlameOfRange {
 public:
  /// The measured range, else what the timeline shows; or all of the run.
  [[nodiscard]] static TimeRange range_of(const AppState& app, FlameScope scope);
  /// Once a frame: counts for about `time` at most. True while there is more to do.
  bool advance(const AppState& app, FlameScope scope, FlameOf of, std::chrono::nanoseconds time);
  /// Of an earlier range while another one is counted; not begun at first.
  [[nodiscard]] const FlameTree& tree() const noexcept { return shown_; }
  /// Of the one that is counted, 0 to 1; 1: nothing is.
  [[nodiscard]] double progress() const noexcept { return counting_.begun() ? counting_.progress() : 1; }
  /// Whether there is a GPU's work to choose.
  [[nodiscard]] bool has_gpu() const noexcept { return has_gpu_; }
  /// Grows with each tree that is shown: nodes of an older one are of nothing any more.
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }

 private:
  FlameTree shown_, counting_;
  std::uint64_t run_ = 0;  ///< Session::number()
  int advances_ = 0;       ///< of what is counted
  bool has_gpu_ = false;
  std::uint64_t version_ = 0;
};

/// "measured range, 1.24 ms; mean of 4 ranks": what the boxes are of.
[[nodiscard]] std::string flame_heading(const AppState& app, FlameScope scope, FlameSplit split,
                                        const FlameTree& tree);

}  // namespace shardscope::gui
