// The flame tree of the current range: the tree shown, and the one being built for a new
// range.
#pragma once

#include "app/gui/model/flame.h"

namespace shardscope::gui {

struct AppState;

enum class FlameScope : std::uint8_t { range, run };
enum class FlameSplit : std::uint8_t { over_ranks, by_rank };

class FlameOfRange {
 public:
  /// The measured range or else the visible one; or the whole run.
  [[nodiscard]] static TimeRange range_of(const AppState& app, FlameScope scope);
  /// Call once per frame: works for about `time`. True while there is more to do.
  bool advance(const AppState& app, FlameScope scope, FlameOf of, std::chrono::nanoseconds time);
  /// The last complete tree; of a previous range while the next one is built. Initially not begun.
  [[nodiscard]] const FlameTree& tree() const noexcept { return shown_; }
  /// Progress of the tree being built, 0 to 1; 1 when none is.
  [[nodiscard]] double progress() const noexcept { return counting_.begun() ? counting_.progress() : 1; }
  /// Whether FlameOf::gpu has data.
  [[nodiscard]] bool has_gpu() const noexcept { return has_gpu_; }
  /// Incremented with each new tree; node indexes of an older one are invalid.
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }

 private:
  FlameTree shown_, counting_;
  std::uint64_t run_ = 0;  ///< Session::number()
  int advances_ = 0;       ///< of counting_
  bool has_gpu_ = false;
  std::uint64_t version_ = 0;
};

/// "measured range, 1.24 ms; mean of 4 ranks": scope and unit of the boxes.
[[nodiscard]] std::string flame_heading(const AppState& app, FlameScope scope, FlameSplit split,
                                        const FlameTree& tree);

}  // namespace shardscope::gui
