// Widgets by what they draw, without a display: tool tips of buttons, points of a plot.
#include <gtest/gtest.h>
#include <imgui_internal.h>
#include <implot.h>
#include <implot_internal.h>

#include <string>
#include <utility>
#include <vector>

#include "app/gui/views/choices.h"
#include "app/gui/views/plots.h"
#include "app/gui/views/table_view.h"

namespace shardscope::gui {
namespace {

/// Frames of ImGui with its own font.
class Widgets : public ::testing::Test {
 protected:
  Widgets() {
    ImGui::CreateContext();
    ImPlot::CreateContext();
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    io.DisplaySize = {800, 600};
    io.BackendFlags |= ImGuiBackendFlags_RendererHasTextures;
    fonts_.at.fill(io.Fonts->AddFontDefault());
  }
  ~Widgets() override {
    ImPlot::DestroyContext();
    ImGui::DestroyContext();
  }
  template <typename Draw>
  void drawn(float x, float y, Draw&& draw) {
    ImGui::GetIO().DeltaTime = 1.0F / 60;
    ImGui::GetIO().AddMousePosEvent(x, y);
    ImGui::NewFrame();
    Canvas canvas(ImGui::GetBackgroundDrawList(), fonts_, ThemeKind::dark);
    Pointer pointer;
    pointer.x = x;
    pointer.y = y;
    Context ctx(app_, ui_, canvas, pointer, 0, {0, 0, 800, 600});
    draw(ctx);
    ctx.draw_tip();
    ImGui::EndFrame();
  }
  /// In a window that covers everything.
  template <typename Draw>
  void in_window(float x, float y, Draw&& draw) {
    drawn(x, y, [&](Context& ctx) {
      ImGui::SetNextWindowPos({0, 0});
      ImGui::SetNextWindowSize({800, 600});
      ImGui::Begin("window", nullptr, ImGuiWindowFlags_NoDecoration);
      ctx.enter_window();
      draw(ctx);
      ImGui::End();
    });
  }
  /// Down and up, each with the frames that ImGui takes to move its cursor.
  template <typename Frame>
  static void press_key(ImGuiKey key, Frame&& frame) {
    for (const bool down : {true, false}) {
      ImGui::GetIO().AddKeyEvent(key, down);
      for (int i = 0; i < 3; ++i) frame();
    }
  }
  /// ImGui's tooltip is shown in the last frame.
  static bool has_tip() {
    const ImGuiWindow* const tip = ImGui::FindWindowByName("##Tooltip_00");
    return tip != nullptr && tip->Active && !tip->Hidden && tip->DrawList->VtxBuffer.Size > 0;
  }
  AppState app_;
  UiState ui_;
  Fonts fonts_;
};

TEST_F(Widgets, AButtonShowsItsTipUnderThePointerOnlyAlsoWhileItCannotBePressed) {
  constexpr Rect kPlace{100, 100, 80, 24};
  const auto tip_at = [&](float x, float y, bool enabled, const char* tip) {
    for (int i = 0; i < 3; ++i)
      in_window(x, y, [&](Context& ctx) { ctx.button(kPlace, "Pause", enabled, Context::Look::plain, tip); });
    return has_tip();
  };
  for (const bool enabled : {true, false}) {
    EXPECT_TRUE(tip_at(120, 110, enabled, "Hold every rank")) << enabled;
    EXPECT_FALSE(tip_at(300, 300, enabled, "Hold every rank")) << enabled;
    EXPECT_FALSE(tip_at(120, 110, enabled, "")) << enabled;
  }
}

TEST_F(Widgets, WhatIsDrawnByHandIsReachedByTheKeyboardToo) {
  ImGuiIO& io = ImGui::GetIO();
  io.ConfigFlags |= ImGuiConfigFlags_NavEnableKeyboard;
  int at = -1, chosen = -1;
  const auto frame = [&] {
    in_window(-1, -1, [&](Context& ctx) {
      at = -1;
      for (int i = 0; i < 3; ++i) {
        const Context::KeyItem key =
            ctx.key_item({40, 60 + 40.0F * static_cast<float>(i), 80, 24}, static_cast<unsigned>(1000 + i));
        if (key.at) at = i;
        if (key.chosen) chosen = i;
      }
    });
  };
  const auto press = [&](ImGuiKey key) { press_key(key, frame); };
  frame();
  press(ImGuiKey_Tab);
  EXPECT_EQ(at, 0);
  press(ImGuiKey_DownArrow);
  EXPECT_EQ(at, 1);
  press(ImGuiKey_Enter);
  EXPECT_EQ(chosen, 1);
}

/// What is drawn by hand takes the arrow keys; Tab goes on to what is beside it, and without the keyboard's
/// cursor arrows are not its.
TEST_F(Widgets, AnAreaTakesTheArrowKeysUntilTabLeavesIt) {
  ImGui::GetIO().ConfigFlags |= ImGuiConfigFlags_NavEnableKeyboard;
  int across = 0, down = 0, entered = 0, pressed = 0;
  const auto frame = [&] {
    in_window(-1, -1, [&](Context& ctx) {
      const Context::KeyArea area = ctx.key_area({40, 60, 300, 100}, "lanes");
      across += area.across;
      down += area.down;
      entered += area.chosen ? 1 : 0;
      if (ctx.button({40, 200, 80, 24}, "beside")) ++pressed;
    });
  };
  const auto press = [&](ImGuiKey key) { press_key(key, frame); };
  frame();
  press(ImGuiKey_Tab);
  EXPECT_EQ(ui_.keyboard_at, "lanes");
  for (const ImGuiKey key :
       {ImGuiKey_RightArrow, ImGuiKey_RightArrow, ImGuiKey_LeftArrow, ImGuiKey_DownArrow})
    press(key);
  EXPECT_EQ(across, 1);
  EXPECT_EQ(down, 1) << "the arrow does not go to the button below";
  press(ImGuiKey_Enter);
  EXPECT_EQ(entered, 1);
  press(ImGuiKey_Tab);
  press(ImGuiKey_Enter);
  EXPECT_EQ(pressed, 1);
  press(ImGuiKey_LeftArrow);
  EXPECT_EQ(across, 1) << "the area has not the cursor";
}

TEST_F(Widgets, ImGuisScrollBarMovesWhatIsDrawnByHand) {
  float offset = 0;
  const auto at = [&](float x, float y, float content) {
    in_window(x, y, [&](Context& ctx) { ctx.scroll("rows", {40, 60, 300, 200}, content, offset); });
  };
  offset = 500;
  at(-1, -1, 150);
  EXPECT_EQ(offset, 0) << "all of it is in view";
  offset = 500;
  at(-1, -1, 600);
  EXPECT_EQ(offset, 400) << "not beyond its end";
  offset = 0;
  for (int i = 0; i < 2; ++i) at(336, 70, 600);
  ImGui::GetIO().AddMouseButtonEvent(0, true);
  for (int i = 0; i < 2; ++i) at(336, 70, 600);
  for (int i = 0; i < 2; ++i) at(336, 137, 600);
  EXPECT_NEAR(offset, 200, 12) << "a third of the bar is a third of the content";
  ImGui::GetIO().AddMouseButtonEvent(0, false);
  for (int i = 0; i < 2; ++i) at(336, 137, 600);
}

/// Of three with one label each is an item of its own, and one that cannot be pressed is passed over.
TEST_F(Widgets, ButtonsAreReachedAndPressedByTheKeyboard) {
  ImGuiIO& io = ImGui::GetIO();
  io.ConfigFlags |= ImGuiConfigFlags_NavEnableKeyboard;
  std::vector<int> pressed;
  const auto frame = [&] {
    drawn(-1, -1, [&](Context& ctx) {
      ImGui::SetNextWindowPos({0, 0});
      ImGui::SetNextWindowSize({800, 600});
      ImGui::Begin("buttons");
      ctx.enter_window();
      for (int i = 0; i < 3; ++i) {
        if (ctx.button({40 + 100.0F * static_cast<float>(i), 60, 80, 24}, "Same", i != 1))
          pressed.push_back(i);
      }
      ImGui::End();
    });
  };
  const auto press = [&](ImGuiKey key) { press_key(key, frame); };
  frame();
  press(ImGuiKey_Tab);
  press(ImGuiKey_Enter);
  EXPECT_EQ(pressed, (std::vector<int>{0}));
  press(ImGuiKey_RightArrow);
  press(ImGuiKey_Space);
  EXPECT_EQ(pressed, (std::vector<int>{0, 2}));
}

TEST_F(Widgets, AnArrowGoesIntoAListAndTabPastIt) {
  ImGuiIO& io = ImGui::GetIO();
  io.ConfigFlags |= ImGuiConfigFlags_NavEnableKeyboard;
  Table table;
  table.columns = {{"name", 1.0F}};
  for (const char* name : {"a", "b", "c"}) table.add({{name, {}, Tone::normal, {}, ""}});
  TableState state;
  std::vector<std::string> pressed;
  const auto frame = [&] {
    drawn(-1, -1, [&](Context& ctx) {
      ImGui::SetNextWindowPos({0, 0});
      ImGui::SetNextWindowSize({800, 600});
      ImGui::Begin("list");
      ctx.enter_window();
      if (ctx.button({40, 40, 80, 24}, "above", true)) pressed.push_back("above");
      const TableHit hit = draw_table(ctx, "##list", {40, 80, 400, 200}, table, state);
      if (hit.clicked) pressed.push_back(table.rows[*hit.clicked][0].text);
      if (ctx.button({40, 300, 80, 24}, "below", true)) pressed.push_back("below");
      ImGui::End();
    });
  };
  const auto press = [&](ImGuiKey key) { press_key(key, frame); };
  for (int i = 0; i < 3; ++i) frame();
  press(ImGuiKey_Tab);
  press(ImGuiKey_DownArrow);
  press(ImGuiKey_DownArrow);
  press(ImGuiKey_Enter);
  EXPECT_EQ(pressed, (std::vector<std::string>{"b"})) << "the first row, then the second";
  press(ImGuiKey_Escape);
  press(ImGuiKey_Tab);
  press(ImGuiKey_Enter);
  EXPECT_EQ(pressed, (std::vector<std::string>{"b", "below"})) << "Escape leaves the list";
}

TEST_F(Widgets, APathIsShortenedUntilItFits) {
  drawn(-1, -1, [&](Context& ctx) {
    const auto room_for = [&](const char* text) { return ctx.canvas.width(text, Font::small); };
    EXPECT_EQ(ctx.canvas.fitting_path(room_for("h.3.mlp"), "transformer.h.3.mlp", Font::small), "h.3.mlp");
    EXPECT_EQ(ctx.canvas.fitting_path(room_for("h.3.mlp") - 1, "transformer.h.3.mlp", Font::small), "mlp");
    EXPECT_EQ(ctx.canvas.fitting_path(1, "transformer.h.3.mlp", Font::small), "mlp")
        << "nothing shorter is a name";
  });
}

TEST(Choices, TheLastOnesGiveWayFirstAndNoneIsLost) {
  const auto fit = [](float room) { return fit_choices({200, 100}, {80, 60}, 50, room); };
  constexpr ChoiceForm hidden = ChoiceForm::hidden;
  EXPECT_EQ(fit(300), (std::vector{ChoiceForm::buttons, ChoiceForm::buttons}));
  EXPECT_EQ(fit(299), (std::vector{ChoiceForm::buttons, ChoiceForm::menu}));
  EXPECT_EQ(fit(259), (std::vector{ChoiceForm::menu, ChoiceForm::menu}));
  EXPECT_EQ(fit(139), (std::vector{ChoiceForm::menu, hidden}));
  EXPECT_EQ(fit(129), (std::vector{hidden, hidden})) << "all of them are in one menu";
}

TEST_F(Widgets, APlotMarksItsValuesWhileTheyAreFew) {
  const auto vertices = [&](std::size_t values) {
    StepPlot plot;
    plot.title = "values";
    plot.curves.push_back({"one", {}, 0x00FF00});
    for (std::size_t i = 0; i < values; ++i) plot.curves[0].values.push_back(static_cast<double>(i % 7));
    int count = 0;
    drawn(-1, -1, [&](Context& ctx) {
      ImGui::SetNextWindowPos({0, 0});
      ImGui::SetNextWindowSize({800, 600});
      ImGui::Begin("plot");
      step_plot(ctx, {20, 30, 700, 300}, plot);
      count = ImGui::GetWindowDrawList()->VtxBuffer.Size;
      ImGui::End();
    });
    return count;
  };
  const int one_more = vertices(42) - vertices(41);  // of the line alone
  EXPECT_GT(vertices(40) - vertices(39), one_more + 4);
  EXPECT_LT(vertices(41), vertices(40)) << "41 values are a line without marks";
}

/// The choice is by plot, and a curve with values up to 0 is not drawn down to them.
TEST_F(Widgets, APlotIsLogarithmicWhereChosen) {
  StepPlot plot;
  plot.title = "values";
  plot.curves.push_back({"one", {0, 1, 10, 100}, 0x00FF00});
  const auto scale_and_low = [&] {
    std::pair<bool, double> out;
    for (int frame = 0; frame < 2; ++frame) {
      drawn(-1, -1, [&](Context& ctx) {
        ImGui::SetNextWindowPos({0, 0});
        ImGui::SetNextWindowSize({800, 600});
        ImGui::Begin("plot");
        step_plot(ctx, {20, 30, 700, 300}, plot);
        const ImPlotPlot* const shown = ImPlot::GetPlot("##values");
        out = {shown->Axes[ImAxis_Y1].Scale == ImPlotScale_Log10, shown->Axes[ImAxis_Y1].Range.Min};
        ImGui::End();
      });
    }
    return out;
  };
  EXPECT_FALSE(scale_and_low().first);
  app_.plot_scales.set("another", AxisScale::logarithmic);
  EXPECT_FALSE(scale_and_low().first);
  app_.plot_scales.set("values", AxisScale::logarithmic);
  EXPECT_TRUE(scale_and_low().first);
  EXPECT_GT(scale_and_low().second, 0.5) << "below the least value above 0";
  plot.curves[0].values = {1, 10, 100, 2000};
  app_.plot_scales.set("values", AxisScale::automatic);
  EXPECT_TRUE(scale_and_low().first) << "over three decades";
  app_.plot_scales.set("values", AxisScale::linear);
  EXPECT_FALSE(scale_and_low().first);
}

/// A window that connects in a run's first step goes on showing all steps.
TEST_F(Widgets, TheAxisOfOneStepGrowsWithTheRun) {
  StepPlot plot;
  plot.title = "values";
  plot.curves.push_back({"one", {}, 0x00FF00});
  for (const std::size_t values : {std::size_t{1}, std::size_t{12}}) {
    plot.curves[0].values.assign(values, 3.0);
    for (int frame = 0; frame < 3; ++frame) {
      drawn(-1, -1, [&](Context& ctx) {
        ImGui::SetNextWindowPos({0, 0});
        ImGui::SetNextWindowSize({800, 600});
        ImGui::Begin("plot");
        step_plot(ctx, {20, 30, 700, 300}, plot);
        ImGui::End();
      });
    }
    EXPECT_TRUE(ui_.steps.all) << values << " steps, and nothing was zoomed";
  }
  EXPECT_EQ(ui_.steps.end, 11.5);
}

}  // namespace
}  // namespace shardscope::gui
