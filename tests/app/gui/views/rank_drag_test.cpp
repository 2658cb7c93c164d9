// A rank's header under the pointer: clicked, dragged, and the drag taken back.
#include "app/gui/views/rank_drag.h"

#include <gtest/gtest.h>
#include <imgui.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "app/gui/model/rank_order.h"
#include "app/gui/model/rank_pace.h"
#include "app/gui/views/commands.h"
#include "app/gui/views/rank_header.h"
#include "app/gui/views/span_painter.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::gui {
namespace {

using namespace test;

constexpr Rect kHeaders{0, 0, 150, 400};

/// Frames of ImGui with its own font; low rows of three ranks.
class RankHeaders : public ::testing::Test {
 protected:
  RankHeaders() {
    ImGui::CreateContext();
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    io.DisplaySize = {800, 600};
    io.DeltaTime = 1.0F / 60;
    io.BackendFlags |= ImGuiBackendFlags_RendererHasTextures;
    fonts_.at.fill(io.Fonts->AddFontDefault());
    RunBuilder run(3);
    for (std::uint32_t rank = 0; rank < 3; ++rank)
      run.span(rank, 0, 1000 + rank, EventKind::step_begin, StreamId::host, 0);
    app_.run = std::make_unique<Session>(std::move(run.build()));
    app_.run->settle();
    app_.place_once();
    app_.timeline.heat = true;
    arrange_ranks(app_);
  }
  ~RankHeaders() override { ImGui::DestroyContext(); }

  enum class Button : std::uint8_t { pressed, held, released };
  /// What the timeline does with its headers in a frame. `escape`: that key goes down.
  void frame(float y, Button button, bool escape = false) {
    ImGui::NewFrame();
    Canvas canvas(ImGui::GetBackgroundDrawList(), fonts_, ThemeKind::dark);
    Pointer pointer;
    pointer.x = 10;
    pointer.y = y;
    pointer.down[0] = button != Button::released;
    pointer.pressed[0] = button == Button::pressed;
    pointer.released[0] = button == Button::released;
    Context ctx(app_, ui_, canvas, pointer, seconds_ += 1.0 / 60, {0, 0, 800, 600});
    const KeyPress press{key::kEscape, 0};
    if (escape) ctx.keys = {&press, 1};
    run_pressed(ctx, false, false);
    const TimelineRows rows = layout_rows(app_.store(), app_.timeline);
    drag_.look(ctx, rows, kHeaders, -app_.timeline_scroll);
    const TimeScale scale{app_.time.range(), 160, 600};
    SpanPainter painter(ctx, scale);
    const RankPaces paces(app_);
    for (const TimelineRow& row : rows.rows) {
      if (!row.heat) continue;
      draw_heat_row(ctx, row, {0, row.y, 150, row.height}, {160, row.y, 600, row.height}, painter, paces,
                    drag_.clicked() == row.rank);
    }
    ImGui::EndFrame();
  }
  float middle_of(std::uint32_t rank) {
    const TimelineRows rows = layout_rows(app_.store(), app_.timeline);
    for (const TimelineRow& row : rows.rows)
      if (row.kind == RowKind::rank && row.rank == rank) return row.y + row.height / 2;
    return -1;
  }
  AppState app_;
  UiState ui_;
  Fonts fonts_;
  RankDrag drag_;
  double seconds_ = 0;
};

TEST_F(RankHeaders, AClickOnALowRowCountsWhereThePointerHasLeftIt) {
  const float y = middle_of(1);
  frame(y, Button::pressed);
  frame(y + 3, Button::held);
  frame(y + 3, Button::released);
  EXPECT_EQ(app_.selection.rank, 1U);
  EXPECT_TRUE(app_.timeline.expanded.contains(1));
}

TEST_F(RankHeaders, AreMovedByKeysButNotWhileOneTypes) {
  app_.select_rank(1);
  const auto press_up = [&](bool typing) {
    ImGui::NewFrame();
    Canvas canvas(ImGui::GetBackgroundDrawList(), fonts_, ThemeKind::dark);
    Context ctx(app_, ui_, canvas, {}, 0, {0, 0, 800, 600});
    const KeyPress up{key::kUp, key::kAlt};
    ctx.keys = {&up, 1};
    run_pressed(ctx, typing, false);
    ImGui::EndFrame();
  };
  press_up(true);
  EXPECT_EQ(app_.timeline.order, RankOrder::number) << "in a text field it moves the caret";
  press_up(false);
  EXPECT_EQ(app_.timeline.order, RankOrder::own);
  EXPECT_EQ(ui_.show_panel, "timeline");
}

TEST_F(RankHeaders, EscapeTakesBackADragAndLeavesTheSelection) {
  app_.select_rank(2);
  for (const float moved : {0.0F, 300.0F}) {
    const float y = middle_of(0);
    frame(y, Button::pressed);
    frame(y + moved, Button::held);
    frame(y + moved, Button::held, true);
    frame(y + moved, Button::released);
    EXPECT_EQ(app_.selection.rank, 2U) << moved << " px: neither cleared nor clicked on";
    EXPECT_EQ(app_.timeline.order, RankOrder::number) << moved;
    ui_.captured = nullptr;
  }
  frame(middle_of(0), Button::pressed);
  frame(300, Button::held);
  frame(300, Button::released);
  EXPECT_EQ(app_.timeline.order, RankOrder::own) << "without it the rank is moved";
  frame(300, Button::released, true);
  EXPECT_EQ(app_.selection.kind, SelectionKind::none) << "while nothing is held it clears the selection";
}

}  // namespace
}  // namespace shardscope::gui
