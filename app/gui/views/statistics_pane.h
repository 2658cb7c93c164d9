// Statistics of the hits (figures, histogram, groups), as a part of the panels Find and Statistics.
#pragma once

#include <optional>
#include <string>

#include "app/gui/model/found_rows.h"
#include "app/gui/views/context.h"
#include "app/gui/views/table_view.h"

namespace shardscope::gui {

class StatisticsPane {
 public:
  /// `id`: of the table and plot.
  explicit StatisticsPane(std::string id) : id_(std::move(id)) {}
  void draw(Context& ctx, Rect room);
  /// Draws the main figures in one line and removes its height from `room`.
  void line(Context& ctx, Rect& room);

 private:
  void figures(Context& ctx, Rect& room, std::size_t most_lines);
  void plots(Context& ctx, Rect room);
  void title(Context& ctx, Rect line) const;
  void bars(Context& ctx, Rect room);
  /// Arrow keys go along the bars, with Shift over several; Enter shows their spans only.
  /// `places`: of the bars.
  void keys(Context& ctx, const Rect& room, const std::vector<Rect>& places);
  void tip_of_bar(Context& ctx, std::size_t bar) const;
  void show_only(Context& ctx, std::size_t a_bar, std::size_t b_bar) const;
  void by_step(Context& ctx, const Rect& room);
  void groups(Context& ctx, Rect room);

  std::string id_;
  FoundGroups found_;
  TableState state_;
  std::optional<std::size_t> dragged_from_;  ///< bar of the histogram at which the drag began
  std::size_t bar_ = 0;                      ///< bar of the histogram at the keyboard's cursor
  std::optional<std::size_t> bars_from_;     ///< the other end of several bars
};

/// Progress of the search and number of hits: "12 345 spans", "searched 40 000 of 1 200 000
/// spans".
[[nodiscard]] std::string progress_text(const Finder& find);

}  // namespace shardscope::gui
