// Draws the boxes of the flame view and finds the one under the pointer or the keyboard's cursor.
#pragma once

#include <optional>
#include <string>

#include "app/gui/model/flame_text.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

class FlamePainter {
 public:
  /// points; narrower boxes are merged
  static constexpr float kNarrowest = 3;
  /// points; wider boxes have a name, and the keyboard reaches them
  static constexpr float kNamed = 22;
  /// `words`: the search words; boxes that do not match are pale.
  FlamePainter(Context& ctx, const FlameTree& tree, const std::string& words)
      : ctx_(ctx), tree_(tree), words_(words) {}
  /// around: an ancestor of the top node, drawn at full width.
  enum class Look : std::uint8_t { plain, around };
  void box(const FlameFrame& frame, std::optional<std::size_t> rank, const Rect& place, Look look);
  /// Background of a rank's boxes, as long as the node's total: self time is the part left uncovered.
  void ground(std::uint32_t node, std::size_t rank, const Rect& place);

  using Hit = FlamePlace;
  /// The box under the pointer, or else at the keyboard's cursor.
  [[nodiscard]] const std::optional<Hit>& hit() const noexcept { return hit_ ? hit_ : at_; }
  /// Enter or Space was pressed on the box at the keyboard's cursor.
  [[nodiscard]] bool chosen() const noexcept { return chosen_; }
  /// Place of the box at the keyboard's cursor, of those that scroll.
  [[nodiscard]] const std::optional<Rect>& cursor() const noexcept { return cursor_; }
  /// Outlines the box at the keyboard's cursor; call after all boxes, which would cover it.
  void outline_cursor();

 private:
  [[nodiscard]] Rgb color_of(const FlameNode& node) const;
  void label(const FlameFrame& frame, std::optional<std::size_t> rank, const Rect& box, Rgb ink);

  Context& ctx_;
  const FlameTree& tree_;
  const std::string& words_;
  std::optional<Hit> hit_, at_;
  std::optional<Rect> cursor_, outlined_;
  bool chosen_ = false;
};

}  // namespace shardscope::gui
