// Tables of communication and of two runs compared.
#include "app/gui/model/compare_tables.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "app/gui/model/communication_tables.h"
#include "app/gui/model/format.h"
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

TEST(IntervalCell, SaysWhetherItContainsZeroAndWhyThereIsNone) {
  const auto cell = [](double low, double high) {
    return interval_cell(analysis::ConfidenceInterval{(low + high) / 2, low, high, 4}, "ms",
                         "of 12 pairs of steps", "");
  };
  EXPECT_EQ(cell(1, 3).text, "+1.00 to +3.00 ms");
  EXPECT_EQ(cell(1, 3).tip,
            "95 % confidence interval: +1.00 to +3.00 ms around +2.00 ms, of 12 pairs of steps. All of it is "
            "above zero.");
  EXPECT_EQ(cell(1, 3).tone, Tone::normal);
  EXPECT_EQ(cell(-1, 3).text, "\u22121.00 to +3.00 ms");
  EXPECT_EQ(cell(-1, 3).tone, Tone::muted);
  EXPECT_NE(cell(-1, 3).tip.find("Contains zero: no significant difference."), std::string::npos);
  EXPECT_EQ(interval_text({0, -0.0021, 1.5, 4}, "ms"), "\u22122.10 \u00b5s to +1.50 ms") << "units differ";
  const Cell none = interval_cell(std::nullopt, "ms", "", "Only in A");
  EXPECT_EQ(none.text, kMissing);
  EXPECT_EQ(none.tip, "Only in A");
}

TEST(MetricTable, HasTheIntervalOfEachFigureOrAReason) {
  analysis::Comparison comparison;
  comparison.metrics = {{.metric = "step time", .unit = "ms", .a = 10, .b = 12, .interval = {{2, 1, 3, 5}}},
                        {.metric = "peak memory", .unit = "MiB", .a = 10, .b = 12, .of_run = true},
                        {.metric = "fetch wait", .unit = "ms/step", .a = 10, .b = std::nullopt}};
  const Table table = metric_table(comparison);
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(table.columns[4].name, "95 % interval");
  EXPECT_EQ(table.rows[0][4].text, "+1.00 to +3.00 ms");
  EXPECT_EQ(table.rows[1][4].text, kMissing);
  EXPECT_EQ(table.rows[1][4].tip, "One value per run, which does not vary between steps");
  EXPECT_EQ(table.rows[2][4].tip, "B has no value");
}

TEST(MetricTable, WritesAUnitOnceWhereItIsTheSame) {
  EXPECT_EQ(with_spread("78 %", "0.5 %"), "78 ±0.5 %");
  EXPECT_EQ(with_spread("11.2 ms/step", "0.33 ms/step"), "11.2 ±0.33 ms/step");
  EXPECT_EQ(with_spread("61.5 ms", "382 µs"), "61.5 ms ±382 µs");
  EXPECT_EQ(with_spread("8.32k tokens/s", "51.0 tokens/s"), "8.32k ±51.0 tokens/s");
  EXPECT_EQ(with_spread("14", "2"), "14 ±2") << "a count without a unit";
}

}  // namespace
}  // namespace shardscope::gui
