// Tables of communication and of two runs compared.
#include "app/gui/model/compare_tables.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "app/gui/model/communication_tables.h"
#include "tests/app/gui/model_fixture.h"

namespace shardscope::gui {
namespace {

TEST_F(Model, CommunicationListsEveryRankAndEveryCollectiveOfTheRange) {
  const std::vector<LabelledRun> runs{{app_.run.get(), ""}};
  EXPECT_EQ(overlap_table(runs).rows.size(), data().ranks().size());
  const auto& ops = app_.run->summary().ops;
  ASSERT_FALSE(ops.empty());
  EXPECT_EQ(operation_table(runs).rows.size(), ops.size());
  const SpanTable all = collective_table(*app_.run, 0, 0, data().end_ns() + 1, 1'000'000);
  std::size_t spans = 0;
  for (const ev::StreamId stream : {ev::StreamId::gather, ev::StreamId::reduce, ev::StreamId::compute}) {
    const store::LaneId lane{0, stream};
    for (std::uint8_t depth = 0; depth < data().depth_count(lane); ++depth) {
      for (const store::Span& span : data().spans(lane, depth))
        spans += span.kind == ev::EventKind::collective_begin && span.end_ns != store::kOpen ? 1 : 0;
    }
  }
  EXPECT_EQ(all.places.size(), spans);
  EXPECT_FALSE(all.cut);
  const SpanTable some = collective_table(*app_.run, 0, 0, data().end_ns() + 1, 3);
  EXPECT_EQ(some.table.rows.size(), 3U);
  EXPECT_TRUE(some.cut);
}

TEST_F(Model, OfTwoRunsEveryRowSaysOfWhich) {
  Session other(store::make_synthetic_store());
  other.settle();
  const std::vector<LabelledRun> runs{{app_.run.get(), "A"}, {&other, "B"}};
  const Table ops = operation_table(runs);
  ASSERT_EQ(ops.columns.back().name, "run");
  EXPECT_EQ(ops.rows.size(), app_.run->summary().ops.size() + other.summary().ops.size());
  EXPECT_EQ(ops.rows[0].back().text, "A");
  EXPECT_EQ(ops.rows[1].back().text, "B") << "the same operation of the other run is below";
}

TEST(Change, OfAShareIsInPointsAndOfAllElseInPercent) {
  const auto from_to = [](const char* metric, const char* unit, std::optional<double> a, double b,
                          std::optional<analysis::ConfidenceInterval> interval) {
    return analysis::Difference{.metric = metric, .unit = unit, .a = a, .b = b, .interval = interval};
  };
  analysis::Difference overlap = from_to("overlap", "%", 47, 12, {{-35, -40, -30, 5}});
  overlap.lower_is_better = false;
  const auto points = change_of(overlap);
  ASSERT_TRUE(points);
  EXPECT_EQ(points->text, "\u221235 points");
  EXPECT_FALSE(points->better);
  EXPECT_FALSE(points->in_spread);
  const auto percent = change_of(from_to("step time", "ms", 10, 12.5, {{2.5, 2, 3, 5}}));
  ASSERT_TRUE(percent);
  EXPECT_EQ(percent->text, "+25 %");
  EXPECT_FALSE(percent->better);
  EXPECT_TRUE(change_of(from_to("step time", "ms", 10, 11, {{1, -1, 3, 5}}))->in_spread);
  EXPECT_FALSE(change_of(from_to("step time", "ms", 0, 11, {}))) << "no percentage of nothing";
  EXPECT_FALSE(change_of(from_to("step time", "ms", std::nullopt, 11, {})));
}

TEST(MedianDifference, HasAnIntervalAroundItThatIsTheSameEachTime) {
  std::vector<double> a;
  std::vector<double> b;
  for (int i = 0; i < 40; ++i) {
    a.push_back(100 + i % 5);
    b.push_back(110 + i % 5);
  }
  const auto interval = median_difference(a, b);
  ASSERT_TRUE(interval);
  EXPECT_LE(interval->low, 10);
  EXPECT_GE(interval->high, 10);
  EXPECT_GT(interval->low, 5);
  EXPECT_EQ(interval->low, median_difference(a, b)->low);
  const auto none = median_difference(a, a);
  EXPECT_LE(none->low, 0);
  EXPECT_GE(none->high, 0);
  EXPECT_FALSE(median_difference(std::vector<double>{1, 2}, a));
}

TEST_F(Model, AComparisonOfARunWithItselfFindsNoModuleThatDiffers) {
  Session other(store::make_synthetic_store());
  other.settle();
  const Table modules = module_table(*app_.run, other, 2);
  ASSERT_FALSE(modules.rows.empty());
  for (const auto& row : modules.rows) EXPECT_NEAR(*row[4].value, 0, 1e-9) << row[0].text;
}

}  // namespace
}  // namespace shardscope::gui
