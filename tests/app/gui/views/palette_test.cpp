// The palette lists whatever menus and title lines can do, and does it.
#include <gtest/gtest.h>
#include <implot.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "app/gui/views/commands.h"
#include "app/gui/views/palette_entries.h"
#include "app/gui/views/workspace.h"
#include "tests/app/store/synthetic_run.h"

namespace shardscope::gui {
namespace {

class PaletteList : public ::testing::Test {
 protected:
  PaletteList() {
    ImGui::CreateContext();
    ImPlot::CreateContext();
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    io.DisplaySize = {2000, 900};
    io.BackendFlags |= ImGuiBackendFlags_RendererHasTextures;
    fonts_.at.fill(io.Fonts->AddFontDefault());
    app_.run = std::make_unique<Session>(store::make_synthetic_store());
    app_.run->settle();
    app_.place_once();
    register_views(views_);
    recent_.files = {"/runs/earlier.zscope"};
    ui_.dialog = Dialog::palette;
  }
  ~PaletteList() override {
    ImPlot::DestroyContext();
    ImGui::DestroyContext();
  }
  /// One frame with the title line of every panel, then `look`.
  template <typename Look>
  void frame(Look&& look) {
    ImGui::GetIO().DeltaTime = 1.0F / 60;
    ImGui::NewFrame();
    Canvas canvas(ImGui::GetBackgroundDrawList(), fonts_, ThemeKind::dark);
    Context ctx(app_, ui_, canvas, Pointer{}, 0, {0, 0, 2000, 900});
    ui_.toolbar.clear();
    ImGui::Begin("titles");
    ctx.enter_window();
    for (const auto& view : views_.all()) {
      Rect room{0, 0, 1800, 24};
      ui_.toolbar_of = view->title();
      view->header(ctx, room);
      ui_.toolbar_of = {};
    }
    ImGui::End();
    look(ctx);
    ImGui::EndFrame();
  }
  /// What the palette has in the whole window, with these panels opened too.
  std::set<std::string> window(const std::vector<std::string>& opened) {
    Workspace workspace;
    ImGui::GetIO().ConfigFlags |= ImGuiConfigFlags_DockingEnable;
    std::set<std::string> out;
    for (int i = 0; i < 4 + static_cast<int>(opened.size()); ++i) {  // the first lays out, the next ones open
      ImGui::GetIO().DeltaTime = 1.0F / 60;
      ImGui::NewFrame();
      Canvas canvas(ImGui::GetBackgroundDrawList(), fonts_, ThemeKind::dark);
      Context ctx(app_, workspace.ui(), canvas, Pointer{}, 0, {0, 0, 2000, 900});
      workspace.ui().dialog = Dialog::palette;
      if (i > 0 && i <= static_cast<int>(opened.size()))
        workspace.ui().show_panel = opened[static_cast<std::size_t>(i) - 1];
      workspace.draw(ctx, "workspace");
      for (const PaletteEntry& entry : palette_entries(ctx, workspace.registry(), docks_, recent_, ""))
        out.insert(entry.text);
      ImGui::EndFrame();
    }
    return out;
  }
  std::vector<PaletteEntry> list(Context& ctx, std::string_view typed) {
    return palette_entries(ctx, views_, docks_, recent_, typed);
  }
  std::set<std::string> texts(Context& ctx, std::string_view typed) {
    std::set<std::string> out;
    for (const PaletteEntry& entry : list(ctx, typed)) out.insert(entry.text);
    return out;
  }
  AppState app_;
  UiState ui_;
  Fonts fonts_;
  ViewRegistry views_;
  Docks docks_;
  Recent recent_;
};

TEST_F(PaletteList, HasEverythingThatMenusAndTitleLinesCanDo) {
  frame([&](Context& ctx) {
    const std::set<std::string> all = texts(ctx, "");
    std::size_t expected = 0;
    const auto expect = [&](const std::string& text) {
      EXPECT_TRUE(all.contains(text)) << text;
      ++expected;
    };
    for (const Command& command : commands())
      if (command.available(ctx)) expect(command.name);
    for (const auto& view : views_.all()) expect("Show " + std::string(view->title()));
    for (const std::string& name : docks_.shown(app_.layout_name)) {
      View* const view = views_.find(name);
      ASSERT_NE(view, nullptr) << name;
      expect("Close " + std::string(view->title()));
      for (const Choice& choice : view->choices(app_))
        for (std::size_t i = 0; i < choice.labels.size(); ++i)
          if (static_cast<int>(i) != choice.chosen)
            expect(std::string(view->title()) + ": " + choice.labels[i]);
    }
    for (const std::string& layout : docks_.names()) expect("Layout " + layout);
    for (const std::string& file : recent_.files) expect("Open " + file);
    for (const char* menu_of_layouts : {"Save layout as...", "Reset layout"}) expect(menu_of_layouts);
    EXPECT_GT(expected, 90U);
  });
}

// By names written here: a button that is drawn without being listed is in no list that this could be read
// from.
TEST_F(PaletteList, HasTheButtonsOfTheTopBarAndOfTitleLinesAsTheWindowDrawsThem) {
  const std::set<std::string> all = window({"notes", "inspector"});
  for (const char* button :
       {"Top bar: ?", "Top bar: Light", "Top bar: Layout: Watch", "Top bar: Step", "Top bar: <", "Top bar: >",
        "Timeline: Fit", "Timeline: Rows", "Timeline: Slowest", "Timeline: Expand ranks",
        "Partition map: Fit", "Notes: New", "Notes: Hide flags"})
    EXPECT_TRUE(all.contains(button)) << button;
}

TEST_F(PaletteList, HasButtonsWithinAPanelThatAreOfferedAndPressesThem) {
  EXPECT_TRUE(window({"lecture"}).contains("Lecture: Next scene"));
  int pressed = 0;
  const auto panel = [&](Context& ctx) {
    ui_.panel_of = "Lecture";
    if (ctx.offered("Next scene", true, "")) ++pressed;
    if (ctx.offered("Previous scene", false, "")) pressed += 100;
    ui_.panel_of = {};
  };
  frame([&](Context& ctx) {
    panel(ctx);
    EXPECT_TRUE(list(ctx, "previous scene").empty()) << "it cannot be pressed now";
    const auto entries = list(ctx, "next scene");
    ASSERT_EQ(entries.size(), 1U);
    entries[0].act();
  });
  frame(panel);
  frame(panel);
  EXPECT_EQ(pressed, 1);
}

TEST_F(PaletteList, DeletesTheShownLayoutWhereItIsTheUsersOwn) {
  frame([&](Context& ctx) { EXPECT_TRUE(texts(ctx, "delete layout").empty()); });
  docks_.keep_in_settings();
  ImGui::LoadIniSettingsFromMemory("[Panels][Mine]\ntimeline\n");
  app_.own_layouts = docks_.own_names();
  app_.set_layout("Mine");
  frame([&](Context& ctx) {
    const auto found = list(ctx, "Delete layout Mine");
    ASSERT_EQ(found.size(), 1U);
    found[0].act();
    EXPECT_EQ(app_.layout_name, "Watch");
    EXPECT_FALSE(texts(ctx, "").contains("Layout Mine"));
  });
}

TEST_F(PaletteList, FindsFitThemesAndScaleByThoseWords) {
  frame([&](Context& ctx) {
    EXPECT_TRUE(texts(ctx, "fit").contains("Whole run"));
    EXPECT_TRUE(texts(ctx, "fit").contains("Timeline: Fit"));
    EXPECT_TRUE(texts(ctx, "fit").contains("Partition map: Fit"));
    EXPECT_TRUE(texts(ctx, "theme").contains("Dark theme"));
    EXPECT_TRUE(texts(ctx, "light").contains("Dark theme"));
    EXPECT_TRUE(texts(ctx, "deuteranopia").contains("Colours for colour blindness"));
    EXPECT_TRUE(texts(ctx, "scale").contains("Larger text"));
    EXPECT_TRUE(texts(ctx, "straggler").contains("Go to the slowest rank"));
    EXPECT_TRUE(texts(ctx, "no such words").empty());
  });
}

/// A name that no command has would find nothing, and nothing would say so.
TEST_F(PaletteList, OtherWordsAreOfCommandsThatThereAre) {
  std::size_t with_words = 0;
  for (const Command& command : commands()) with_words += also_called(command).empty() ? 0 : 1;
  EXPECT_EQ(with_words, 17U);
}

TEST_F(PaletteList, PressesTheButtonOfThatPanelInTheNextFrame) {
  app_.time.set({100, 200}, app_.store().end_ns());
  const TimeRange before = app_.time.range();
  app_.elements.zoom(0.5, 0.5);
  const auto choose = [&](const std::string& text) {
    frame([&](Context& ctx) {
      const auto entries = list(ctx, text);
      const auto found = std::ranges::find(entries, text, &PaletteEntry::text);
      ASSERT_NE(found, entries.end()) << text;
      found->act();
    });
    frame([](Context&) {});
    EXPECT_FALSE(ui_.pressed) << text;
  };
  choose("Partition map: Fit");
  EXPECT_DOUBLE_EQ(app_.elements.end - app_.elements.begin, 1);
  EXPECT_EQ(app_.time.range().length(), before.length()) << "the timeline's is another button";
  choose("Timeline: Fit");
  EXPECT_GT(app_.time.range().length(), before.length());
}

}  // namespace
}  // namespace shardscope::gui
