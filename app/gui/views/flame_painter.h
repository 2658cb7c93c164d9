// Draws the boxes of the flame view and knows which one is under the pointer.
#pragma once

#include <optional>
#include <string>

#include "app/gui/model/flame_text.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

class FlamePainter {
 public:
  /// Points: narrower boxes are folded.
  static constexpr float kNarrowest = 3;
  /// `words`: what Find searches for; boxes without it are pale.
  FlamePainter(Context& ctx, const FlameTree& tree, const std::string& words)
      : ctx_(ctx), tree_(tree), words_(words) {}
  /// around: what the top node lies in, as wide as it.
  enum class Look : std::uint8_t { plain, around };
  void box(const FlameFrame& frame, std::optional<std::size_t> rank, const Rect& place, Look look);
  /// Under the boxes of a rank: as long as all of it took, so that own time is seen as what they leave.
  void ground(std::uint32_t node, std::size_t rank, const Rect& place);

  using Hit = FlamePlace;
  [[nodiscard]] const std::optional<Hit>& hit() const noexcept { return hit_; }

 private:
  [[nodiscard]] Rgb color_of(const FlameNode& node) const;
  void label(const FlameFrame& frame, std::optional<std::size_t> rank, const Rect& box, Rgb ink);

  Context& ctx_;
  const FlameTree& tree_;
  const std::string& words_;
  std::optional<Hit> hit_;
};

}  // namespace shardscope::gui
