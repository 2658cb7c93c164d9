// What stands in panels in words and under the pointer, of runs whose figures are known.
#include "tests/app/gui/written.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/analysis/gpu_activity.h"
#include "app/gui/model/details.h"
#include "app/gui/model/format.h"
#include "app/gui/platform/font_files.h"
#include "tests/app/store/odd_ends.h"
#include "tests/app/store/synthetic_gpu.h"
#include "tests/app/store/synthetic_run.h"

namespace shardscope::gui {
namespace {

/// A note, a path or a module's name in Chinese is drawn, where a font for it is installed.
TEST(Fonts, OtherScriptsAreDrawn) {
  AppState app;
  app.run = std::make_unique<Session>(store::Store());
  const Written page(app, "notes", 600, 300);
  for (const auto& [language, letter] :
       {std::pair{"zh-cn", U'\u4E2D'}, std::pair{"ja", U'\u3042'}, std::pair{"ko", U'\uAC00'}}) {
    if (find_font_of(language, letter).path.empty()) continue;
    EXPECT_TRUE(ImGui::GetIO().FontDefault->IsGlyphInFont(static_cast<ImWchar>(letter))) << language;
  }
  EXPECT_TRUE(find_font_of("en", U'\uE123').path.empty()) << "no font has this letter";
}

class Words : public ::testing::Test {
 protected:
  Words() {
    app_.run = std::make_unique<Session>(store::make_synthetic_store());
    app_.run->settle();
    app_.place_once();
  }
  AppState app_;
};

/// Rank 1 was killed, and rank 0 failed because of it.
TEST(WordsOfTheBanner, BlameTheRankThatWasKilledNotTheOneThatNoticed) {
  AppState app;
  app.run = std::make_unique<Session>(store::odd_ends());
  app.run->settle();
  app.place_once();
  const Written window(app, "workspace", 1400, 800);
  const auto banner = window.place_of("Rank 1 was killed by signal 9 (SIGKILL) at ");
  ASSERT_TRUE(banner) << window.text();
  EXPECT_LT(banner->y, 120) << "under the top bar";
}

/// What was chosen in What if is of the run that it was chosen for.
TEST_F(Words, WhatIfBeginsAnewWithAnotherRunOfTheSameSource) {
  app_.other = std::make_unique<Session>(store::make_synthetic_store());
  app_.other->settle();
  app_.what_if_changes = std::vector{analysis::Change{"zero_optimization.reduce_bucket_size", "123457"}};
  Written panel(app_, "whatif", 1200, 700);
  ASSERT_TRUE(panel.has("123457")) << panel.text();
  app_.swap_runs();
  panel.frames();
  EXPECT_FALSE(panel.has("123457"));
  EXPECT_TRUE(panel.has("Change a setting, then click Simulate"));
}

/// Where Find's hits are no more than the first of those that there are.
TEST_F(Words, FiguresOfASearchThatWasCutShortSaySoAndWhyUnderThePointer) {
  app_.run->poll({});  // as in a window, which searches between its frames
  SpanQuery query;
  query.most = 100;
  Finder& find = app_.find;
  find.search.start(query);
  while (find.search.advance(app_.store(), std::chrono::hours(1))) {
  }
  while (find.statistics.advance(find.search, std::chrono::hours(1))) {
  }
  while (find.rows.advance(find.search, std::chrono::hours(1))) {
  }
  ASSERT_TRUE(find.search.cut_short());
  Written panel(app_, "statistics", 900, 500);
  const auto line = panel.last_place_of(find.coverage());  // first it stands in what Find says
  ASSERT_TRUE(line) << panel.text();
  EXPECT_FALSE(panel.has("More spans match than are kept"));
  panel.point_at(*line);
  EXPECT_TRUE(panel.has("More spans match than are kept. These figures cover those searched first"))
      << panel.text();
}

TEST_F(Words, ThePeakOfMemoryIsNamedWithItsTimeWhereItIsOutOfView) {
  const auto peak = app_.store().memory_peak(app_.memory_rank, app_.memory_pool);
  ASSERT_TRUE(peak);
  const std::string amount = "peak " + bytes(peak->total()).text();
  const std::string with_time = amount + " at " + timestamp(peak->at_ns, 1'000'000);
  const std::int64_t end = app_.store().end_ns();
  app_.time.set({0, end}, end);
  Written panel(app_, "memory", 900, 500);
  EXPECT_TRUE(panel.has(amount)) << panel.text();
  EXPECT_FALSE(panel.has(with_time)) << "it is marked in the curve";
  if (peak->at_ns < end / 2)
    app_.time.set({peak->at_ns + end / 4, peak->at_ns + end / 2}, end);
  else
    app_.time.set({peak->at_ns - end / 2, peak->at_ns - end / 4}, end);
  panel.frames();
  EXPECT_TRUE(panel.has(with_time)) << panel.text();
}

TEST_F(Words, WhatIsMovedInAStepIsExplainedUnderThePointer) {
  Written panel(app_, "communication", 1200, 700);
  const auto line = panel.place_of("elements per step and rank");
  ASSERT_TRUE(line) << panel.text();
  panel.point_at(*line);
  EXPECT_TRUE(panel.has("Measured against ZeRO's expression")) << panel.text();
  EXPECT_TRUE(panel.has(app_.run->summary().comm_expression)) << panel.text();
  EXPECT_TRUE(panel.has("Elements of full tensors; an all-reduce counts twice.")) << panel.text();
}

/// Each of the choices has a table of its own.
TEST_F(Words, ComparedAreFiguresThenPhasesModulesCollectivesAndSettings) {
  store::SyntheticOptions options;
  options.prefetch_elems = 0;
  app_.other = std::make_unique<Session>(store::make_synthetic_store(options));
  app_.other->settle();
  Written panel(app_, "compare", 1400, 900);
  EXPECT_TRUE(panel.has("tokens per second")) << panel.text();
  EXPECT_TRUE(panel.has("elements communicated")) << panel.text();
  const auto choose = [&](const char* what) {
    const auto place = panel.place_of(what);
    ASSERT_TRUE(place) << panel.text();
    panel.click(*place);
  };
  choose("phases");
  EXPECT_FALSE(panel.has("tokens per second")) << panel.text();
  EXPECT_TRUE(panel.has("outside of phases")) << panel.text();
  choose("by phase");
  EXPECT_TRUE(panel.has("each phase from its begin")) << panel.text();
  choose("modules");
  EXPECT_FALSE(panel.has("tokens per second")) << panel.text();
  EXPECT_TRUE(panel.has("h.2.mlp backward")) << panel.text();
  choose("collectives");
  EXPECT_FALSE(panel.has("h.2.mlp backward")) << panel.text();
  EXPECT_TRUE(panel.has("all-gather")) << panel.text();
  choose("settings");
  EXPECT_FALSE(panel.has("all-gather")) << panel.text();
  choose("figures");
  EXPECT_TRUE(panel.has("tokens per second")) << panel.text();
}

TEST_F(Words, TheTimelineSaysWhyAStreamOfTheGpuWasIdle) {
  app_.run = std::make_unique<Session>(store::make_synthetic_gpu_store());
  app_.run->settle();
  app_.place_once();
  app_.timeline.expanded.insert(0);
  const store::LaneId lane{0, ev::StreamId::gpu_compute};
  const std::vector<store::Span> kernels = app_.store().spans(lane, 0);
  std::set<std::string> said;
  for (std::size_t i = 1; i < kernels.size() && said.size() < 3; ++i) {
    const analysis::Interval gap{kernels[i - 1].end_ns, kernels[i].begin_ns};
    if (gap.begin >= gap.end) continue;
    const analysis::GapTimes times = analysis::explain_gap_before(app_.store(), lane, gap, kernels[i]);
    const auto most = std::ranges::max_element(times);
    if (*most == 0) continue;
    const std::string words = analysis::words_of(static_cast<analysis::GapCause>(most - times.begin()));
    if (!said.insert(words).second) continue;
    // A view that the gap fills to a half.
    const std::int64_t length = gap.end - gap.begin;
    app_.time.set({gap.begin - length / 2, gap.end + length / 2}, app_.store().end_ns());
    const Written panel(app_, "timeline", 1600, 900);
    EXPECT_TRUE(panel.has(words)) << words << ": " << panel.text();
  }
  EXPECT_GE(said.size(), 2U);
}

class WordsOfASpan : public Words {
 protected:
  /// The first span with a history, at least `least_fields` fields, and this number of spans that it depends
  /// on or that depend on it.
  bool select(std::size_t least_fields, std::size_t least_related, std::size_t most_related) {
    for (const store::LaneId lane : app_.store().lanes()) {
      for (std::uint8_t depth = 0; depth < app_.store().depth_count(lane); ++depth) {
        for (const store::Span& span : app_.store().spans(lane, depth)) {
          app_.select_span(lane, span);
          details_ = describe_selection(app_);
          if (!details_.history.empty() && details_.fields.size() >= least_fields &&
              details_.related.size() >= least_related && details_.related.size() <= most_related)
            return true;
        }
      }
    }
    return false;
  }
  [[nodiscard]] std::size_t fields(const Written& panel) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(details_.fields, [&](const Field& one) { return panel.has(one.label); }));
  }
  Details details_;
};

/// Beside them the relation, and the begin of the history.
TEST_F(WordsOfASpan, WithOneRelationAPanelHasRoomForEveryField) {
  ASSERT_TRUE(select(5, 1, 1));
  ASSERT_FALSE(details_.history.empty());
  const auto height = static_cast<float>(240 + 22 * details_.fields.size());
  const Written panel(app_, "inspector", 600, height);
  EXPECT_EQ(fields(panel), details_.fields.size()) << panel.text();
  EXPECT_TRUE(panel.has(details_.related[0].text)) << panel.text();
  EXPECT_TRUE(panel.has(details_.history[0].text)) << panel.text();
}

TEST_F(WordsOfASpan, AClickOnARelationGoesToTheOtherEnd) {
  ASSERT_TRUE(select(4, 1, SIZE_MAX));
  const RelatedRow row = details_.related.front();
  ASSERT_NE(app_.selection.span->begin_ns, row.span.begin_ns);
  app_.cursor_ns.reset();
  app_.timeline.expanded.clear();
  Written panel(app_, "inspector", 600, static_cast<float>(400 + 22 * details_.fields.size()));
  const auto place = panel.place_of(row.text);
  ASSERT_TRUE(place) << panel.text();
  panel.click(*place);
  ASSERT_TRUE(app_.selection.span);
  EXPECT_EQ(app_.selection.span->begin_ns, row.span.begin_ns);
  EXPECT_EQ(app_.selection.lane, row.lane);
  EXPECT_EQ(app_.cursor_ns, row.span.begin_ns);
  EXPECT_TRUE(app_.timeline.expanded.contains(row.lane.rank)) << "its lanes are open";
}

TEST_F(WordsOfASpan, ALowPanelIsScrolledToItsLastRow) {
  ASSERT_TRUE(select(4, 4, SIZE_MAX));
  const std::string last =
      details_.inside.empty() ? details_.history.back().text : details_.inside.back().text;
  Written panel(app_, "inspector", 600, 210);
  EXPECT_GE(fields(panel), 4U) << panel.text();
  EXPECT_FALSE(panel.has(last)) << panel.text();
  panel.point_at({300, 150});
  for (int turn = 0; turn < 60; ++turn) {
    ImGui::GetIO().AddMouseWheelEvent(0, -3);
    panel.frames(1);
  }
  panel.frames();
  EXPECT_TRUE(panel.has(last)) << panel.text();
  EXPECT_TRUE(panel.has(details_.title)) << "which stays above";
}

}  // namespace
}  // namespace shardscope::gui
