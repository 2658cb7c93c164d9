// Times per step of two runs, and the interval of their difference against a formula of its own.
#include "app/gui/model/compared_series.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "app/analysis/spans.h"
#include "app/gui/model/compare_tables.h"
#include "app/gui/model/format.h"
#include "app/gui/model/step_of.h"
#include "tests/app/gui/model_fixture.h"
#include "tests/app/store/event_builder.h"
#include "tests/app/store/synthetic_run.h"

namespace shardscope::gui {
namespace {

using SeriesKind = ev::EventKind;
constexpr std::int64_t kSeriesUs = 1000;

/// A step for each of these times: the forward of one module, alone in its phase, then 1 ms of nothing. Steps
/// are numbered from `first`.
store::Store run_of_modules(const std::vector<int>& us, std::uint32_t first = 0,
                            const std::string& name = "h.0.attn") {
  store::Store store;
  ev::RunTables tables;
  tables.world = tables.local_world = 1;
  tables.modules.push_back({0, ev::kNoId, name, "Attention", {}, true});
  store.set_tables(0, tables);
  store::ChunkBuilder events(0);
  std::int64_t at = 0;
  std::uint32_t step = first;
  const auto forward = static_cast<std::uint8_t>(ev::Phase::forward);
  for (const int time : us) {
    events.host(at, SeriesKind::step_begin, step);
    events.compute(at, SeriesKind::phase_begin, ev::kNoId, forward);
    events.compute(at, SeriesKind::module_begin, 0);
    at += time * kSeriesUs;
    events.compute(at, SeriesKind::module_end, 0);
    events.compute(at, SeriesKind::phase_end, ev::kNoId, forward);
    at += 1000 * kSeriesUs;
    events.host(at, SeriesKind::step_end, step++);
  }
  store.ingest(events.chunk);
  return store;
}

const std::vector<int> kOfA{900, 100, 110, 120, 100, 130, 120, 100, 115, 125, 105, 100, 140};
const std::vector<int> kOfB{100, 120, 160, 150, 140, 160, 140, 150, 155, 145, 150, 170, 160};

TEST(ComparedSeries, TheIntervalIsStudentsOverTheMediansOfBlocks) {
  Session a(run_of_modules(kOfA)), b(run_of_modules(kOfB));
  const ComparedSteps steps = compared_series(a, b, SeriesOf::module, 96);
  ASSERT_EQ(steps.rows.size(), 1U);
  EXPECT_EQ(steps.both, 12U) << "the first step of a run is not measured";
  // Twelve differences make four blocks of three; of each the middle one counts.
  double mean = 0, squares = 0;
  std::vector<double> medians;
  for (std::size_t block = 0; block < 4; ++block) {
    std::vector<double> three;
    for (std::size_t i = 1 + 3 * block; i < 4 + 3 * block; ++i) three.push_back((kOfB[i] - kOfA[i]) * 1e-3);
    std::ranges::sort(three);
    medians.push_back(three[1]);
    mean += three[1] / 4;
  }
  for (const double median : medians) squares += (median - mean) * (median - mean);
  constexpr double kStudent = 3.182446305284263;  // 97.5 %, three degrees of freedom: from a printed table
  const double half = kStudent * std::sqrt(squares / 3) / 2;
  const auto& interval = steps.rows[0].pairs.interval;
  ASSERT_TRUE(interval);
  EXPECT_NEAR(interval->low, mean - half, 1e-9);
  EXPECT_NEAR(interval->high, mean + half, 1e-9);
  EXPECT_EQ(interval->blocks, 4U);
  EXPECT_NEAR(*steps.rows[0].median_a(), 0.1125, 1e-12);
  EXPECT_NEAR(*steps.rows[0].median_b(), 0.150, 1e-12);

  const Table table = series_table(steps, SeriesOf::module, NameCells(a.store()));
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(table.rows[0][0].text, "h.0.attn");
  EXPECT_EQ(table.rows[0][1].text, "forward");
  EXPECT_EQ(table.rows[0][4].text, "+37.5 \u00b5s");
  EXPECT_EQ(table.rows[0][6].text, "+33 %");
  EXPECT_NEAR(*table.rows[0][5].value, mean - half, 1e-9);
  EXPECT_NE(table.rows[0][5].tip.find("of 12 pairs of steps, by the medians of 4 blocks"), std::string::npos)
      << table.rows[0][5].tip;
  EXPECT_EQ(title_of(steps.rows[0], NameCells(a.store())), "h.0.attn forward");
  EXPECT_EQ(steps_text(steps), "12 steps with the same number in both runs");
}

TEST(ComparedSeries, FewPairsAndRowsOfOneRunHaveNoIntervalAndSayWhy) {
  Session a(run_of_modules(kOfA)), few(run_of_modules({500, 120, 130, 140})),
      other(run_of_modules(kOfB, 0, "h.0.mlp")), later(run_of_modules(kOfB, 100));
  const auto row = [&](const Session& b) { return compared_series(a, b, SeriesOf::module, 96).rows.at(0); };
  EXPECT_EQ(why_no_interval(row(few)),
            "3 measured steps with the same number in both runs; an interval takes 8");
  EXPECT_EQ(row(few).a.size(), 3U) << "medians are of the steps of both";
  const ComparedSteps unlike = compared_series(a, other, SeriesOf::module, 96);
  ASSERT_EQ(unlike.rows.size(), 2U);
  EXPECT_EQ(unlike.rows[0].name, "h.0.mlp") << "the larger difference comes first";
  EXPECT_EQ(why_no_interval(unlike.rows[0]), "Only in B: no pairs of steps");
  EXPECT_EQ(why_no_interval(unlike.rows[1]), "Only in A: no pairs of steps");
  const Table table = series_table(unlike, SeriesOf::module, NameCells(a.store()));
  EXPECT_EQ(table.rows[0][2].text, kMissing);
  EXPECT_EQ(table.rows[0][5].text, kMissing);
  EXPECT_EQ(table.rows[0][5].tip, "Only in B: no pairs of steps");
  const ComparedSteps apart = compared_series(a, later, SeriesOf::module, 96);
  EXPECT_EQ(apart.both, 0U);
  EXPECT_EQ(steps_text(apart), "12 steps of A and 12 steps of B, none with the same number: no intervals");
  EXPECT_EQ(apart.rows.at(0).b.size(), 12U) << "the medians are there";
}

TEST(ComparedSeries, OfLongRunsTheLatestStepsOfBothAreRead) {
  Session a(run_of_modules(std::vector<int>(40, 100))), b(run_of_modules(std::vector<int>(30, 150)));
  const ComparedSteps steps = compared_series(a, b, SeriesOf::module, 10);
  EXPECT_EQ(steps.both, 10U);
  EXPECT_EQ(steps.rows.at(0).a.begin()->first, 20U);
  EXPECT_EQ(steps.rows.at(0).a.rbegin()->first, 29U) << "the last step of the shorter run";
}

TEST(ComparedSeries, PhasesAreInOrderWithTheTimeOutsideOfThem) {
  Session a(run_of_modules(kOfA)), b(run_of_modules(kOfB));
  const ComparedSteps steps = compared_series(a, b, SeriesOf::phase, 96);
  ASSERT_EQ(steps.rows.size(), 2U);
  EXPECT_EQ(steps.rows[0].name, "forward");
  EXPECT_NEAR(*steps.rows[0].median_b(), 0.150, 1e-12);
  EXPECT_EQ(steps.rows[1].name, kOutsideOfPhases);
  EXPECT_NEAR(*steps.rows[1].median_a(), 1, 1e-12);
  Session none{store::Store()};
  EXPECT_TRUE(compared_series(none, none, SeriesOf::phase, 96).rows.empty());
  EXPECT_TRUE(series_table({}, SeriesOf::phase, NameCells(none.store())).rows.empty());
}

TEST(ComparedDigest, OfARunThatGoesOnIsContinuedAndOfAnotherRunBegunAnew) {
  Session run(run_of_modules(kOfA)), shorter(run_of_modules({100, 100, 100}));
  ComparedDigest digest;
  EXPECT_EQ(digest.get(), nullptr);
  const auto advance = [&](const Session& of) {
    for (int i = 0; i < 1000; ++i)
      if (digest.advance(of, std::chrono::nanoseconds(1))) return true;
    return false;
  };
  EXPECT_FALSE(digest.advance(run, std::chrono::nanoseconds(1))) << "a step at a time";
  ASSERT_TRUE(advance(run));
  EXPECT_EQ(digest.get()->steps().size(), kOfA.size());
  ASSERT_TRUE(advance(shorter));
  EXPECT_EQ(digest.get()->steps().size(), 3U);
  const ComparedSteps of_digest =
      compared_series(run, run, SeriesOf::collective, 96, {digest.get(), digest.get()});
  EXPECT_EQ(of_digest.both, 2U) << "those of the digest that is given";
}

TEST_F(Model, OfARunAndItselfNothingDiffers) {
  Session other(store::make_synthetic_store());
  other.settle();
  for (const SeriesOf of : {SeriesOf::phase, SeriesOf::module, SeriesOf::collective}) {
    const ComparedSteps steps = compared_series(*app_.run, other, of, 96);
    ASSERT_FALSE(steps.rows.empty()) << static_cast<int>(of);
    for (const ComparedSeries& row : steps.rows) EXPECT_NEAR(row.change(), 0, 1e-9) << row.name << row.figure;
  }
  const ComparedSteps ops = compared_series(*app_.run, other, SeriesOf::collective, 96);
  const auto& summary = app_.run->summary().ops;
  for (const analysis::OpRow& op : summary) {
    const auto row = std::ranges::find_if(ops.rows, [&](const ComparedSeries& one) {
      return one.name == ev::label_of(op.op) && one.figure == kCollectiveTime;
    });
    ASSERT_NE(row, ops.rows.end());
    EXPECT_GT(*row->median_a(), 0);
  }
  const Table table = series_table(ops, SeriesOf::collective, NameCells(data()));
  EXPECT_TRUE(table.rows[0][0].swatch) << "in the colour of the operation";
  EXPECT_EQ(title_of(ops.rows[0], NameCells(data())), ops.rows[0].name + ", " + ops.rows[0].figure);
}

TEST_F(Model, TablesOfARankAreOfThatRank) {
  Session other(store::make_synthetic_store());
  other.settle();
  // Rank 2 of the synthetic run computes longer.
  const auto forward_of = [&](std::optional<std::uint32_t> rank) {
    double sum = 0;
    for (const ComparedSeries& row : compared_series(*app_.run, other, SeriesOf::module, 8, {}, rank).rows)
      sum += row.median_a().value_or(0);
    return sum;
  };
  EXPECT_DOUBLE_EQ(forward_of(std::nullopt), forward_of(0));
  EXPECT_GT(forward_of(2), 1.1 * forward_of(0));
  const auto rows = [&](std::optional<std::uint32_t> rank) {
    return compared_series(*app_.run, other, SeriesOf::parameter, 8, {}, rank).rows;
  };
  ASSERT_FALSE(rows(1).empty());
  EXPECT_EQ(rows(0).size(), rows(std::nullopt).size());
  EXPECT_TRUE(rows(77).empty()) << "no run has it";
}

TEST_F(Model, WaitsKernelsAndParametersAreComparedStepByStep) {
  Session other(store::make_synthetic_store());
  other.settle();
  for (const SeriesOf of : {SeriesOf::wait, SeriesOf::parameter}) {
    const ComparedSteps steps = compared_series(*app_.run, other, of, 8);
    ASSERT_FALSE(steps.rows.empty());
    EXPECT_GT(steps.both, 1U);
    for (const ComparedSeries& row : steps.rows) {
      EXPECT_EQ(row.of, of);
      EXPECT_EQ(row.a.size(), steps.both) << row.name << ": a value for each step, for its distribution";
      EXPECT_DOUBLE_EQ(row.change(), 0) << row.name << ": of the same run";
    }
    const Table table = series_table(steps, of, NameCells(data()));
    EXPECT_EQ(table.rows.size(), steps.rows.size());
  }
  // The waits of a step add up to all that its compute lane has.
  const ComparedSteps waits = compared_series(*app_.run, other, SeriesOf::wait, 8);
  const std::uint32_t last = waits.rows.front().a.rbegin()->first;
  double sum = 0;
  for (const ComparedSeries& row : waits.rows)
    if (row.unit == "ms") sum += row.a.at(last);
  const auto step = std::ranges::find(data().steps(), last, &store::StepRow::step);
  double lane = 0;
  analysis::for_each_span(data(), {0, ev::StreamId::compute}, step->begin_ns, step->end_ns,
                          [&](const store::Span& span) {
                            if (store::is_wait(span.kind) && span.begin_ns >= step->begin_ns)
                              lane += static_cast<double>(span.end_ns - span.begin_ns) * 1e-6;
                          });
  EXPECT_GT(sum, 0);
  EXPECT_NEAR(sum, lane, 1e-6 * lane);
}

TEST_F(Model, ComparedStepsCanBeThoseOfAMeasuredRange) {
  Session other(store::make_synthetic_store());
  other.settle();
  const auto all = data().steps();
  ASSERT_GE(all.size(), 4U);
  const TimeRange range{all[1].begin_ns, all[2].end_ns + 1};
  const auto within = steps_within(all, range);
  ASSERT_TRUE(within);
  EXPECT_EQ(within->first, all[1].step);
  EXPECT_EQ(within->last, all[2].step);
  EXPECT_FALSE(steps_within(all, {all[1].begin_ns + 1, all[1].end_ns + 1})) << "cut at its begin";
  for (const SeriesOf of :
       {SeriesOf::phase, SeriesOf::module, SeriesOf::collective, SeriesOf::wait, SeriesOf::parameter}) {
    const ComparedSteps steps = compared_series(*app_.run, other, of, 96, {}, {}, *within);
    EXPECT_EQ(steps.both, 2U) << static_cast<int>(of);
    for (const ComparedSeries& row : steps.rows)
      for (const auto& [step, value] : row.a) EXPECT_TRUE(within->contains(step)) << row.name;
  }
}

}  // namespace
}  // namespace shardscope::gui
