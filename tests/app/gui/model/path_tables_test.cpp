// What the Critical path panel shows, against the steps that it is of.
#include "app/gui/model/path_tables.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "app/analysis/critical_path.h"
#include "app/analysis/digest.h"
#include "app/analysis/piece_label.h"
#include "app/gui/model/format.h"
#include "instrumentation/event.h"
#include "tests/app/gui/model_fixture.h"
#include "tests/app/store/synthetic_run.h"

namespace shardscope::gui {
namespace {

TEST_F(Model, PathRowsSumToTheStepLongestFirst) {
  const analysis::Digest digest = analysis::digest_of(data());
  double whole = 0;
  std::size_t steps = 0;
  for (std::size_t i = digest.first_measured(); i < digest.steps().size(); ++i) {
    const auto& step = digest.steps()[i];
    if (!step.path) continue;
    ++steps;
    for (const std::int64_t ns : *step.path) whole += static_cast<double>(ns) * 1e-6;
  }
  ASSERT_GT(steps, 0U);
  const std::vector<PathRow> rows = path_rows(app_.run->summary());
  ASSERT_GT(rows.size(), 1U);
  double sum = 0, shares = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    sum += rows[i].ms;
    shares += rows[i].share_pct;
    EXPECT_LE(rows[i].ms, i == 0 ? rows[i].ms : rows[i - 1].ms);
    EXPECT_LE(rows[i].gain_ms.value_or(0), rows[i].ms + 1e-9);
  }
  EXPECT_NEAR(sum, whole / static_cast<double>(steps), 1e-6);
  EXPECT_NEAR(shares, 100, 1e-6);
}

TEST(PathRows, GiveTheGainOfTheirOwnPart) {
  analysis::Summary summary;
  EXPECT_TRUE(path_rows(summary).empty());
  summary.critical_path =
      analysis::PathSummary{.steps = 4,
                            .ms_per_step = {{"forward", 10.0}, {"transfer", 30.0}, {"idle", 0.5}},
                            .gain_ms_per_step = {{"forward", 4.0}, {"transfer", 25.0}}};
  const std::vector<PathRow> rows = path_rows(summary);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].part, analysis::PathPart::transfer);
  EXPECT_EQ(rows[0].gain_ms, 25.0);
  EXPECT_EQ(rows[1].gain_ms, 4.0);
  EXPECT_FALSE(rows[2].gain_ms);  // not replayed: not zero
}

/// Two ranks whose optimizer is not recorded.
store::Store without_optimizer() {
  store::SyntheticRun run = store::make_synthetic_run({.world = 2});
  for (store::Chunk& chunk : run.chunks)
    std::erase_if(chunk.events, [](const ev::Event& event) {
      return (event.kind == ev::EventKind::phase_begin || event.kind == ev::EventKind::phase_end) &&
             event.code == static_cast<std::uint8_t>(ev::Phase::optimizer);
    });
  store::Store store;
  fill_store(store, run);
  return store;
}

TEST_F(Model, PathOfTwoRunsPutsEachPartOfBTogetherWithThatOfA) {
  Session session_a(without_optimizer());
  session_a.settle();
  const std::array runs{LabelledRun{&session_a, "A"}, LabelledRun{app_.run.get(), "B"}};
  const std::vector<PathRow> a = path_rows(session_a.summary()), b = path_rows(app_.run->summary());
  std::vector<std::array<std::string, 3>> expected;
  const auto expect = [&](const PathRow& row, const char* letter) {
    expected.push_back({analysis::label_of(row.part), milliseconds(row.ms).text(), letter});
  };
  std::size_t of_both = 0, differ = 0;
  for (const PathRow& row : a) {
    expect(row, "A");
    const auto other = std::ranges::find(b, row.part, &PathRow::part);
    if (other == b.end()) continue;
    expect(*other, "B");
    ++of_both;
    differ += milliseconds(row.ms).text() != milliseconds(other->ms).text() ? 1 : 0;
  }
  ASSERT_GT(of_both, 1U);
  ASSERT_GT(differ, 0U) << "a swap of the figures could not be seen";
  const std::size_t before = expected.size();
  for (const PathRow& row : b)
    if (std::ranges::find(a, row.part, &PathRow::part) == a.end()) expect(row, "B");
  ASSERT_GT(expected.size(), before) << "no part is of B alone";

  const Table table = path_table(runs);
  ASSERT_EQ(table.rows.size(), expected.size());
  for (std::size_t row = 0; row < expected.size(); ++row) {
    EXPECT_EQ(table.rows[row][0].text, expected[row][0]) << "row " << row;
    EXPECT_EQ(table.rows[row][1].text, expected[row][1]) << "row " << row;
    EXPECT_EQ(table.rows[row][4].text, expected[row][2]) << "row " << row;
  }
}

TEST_F(Model, PiecesLieOnThePathOfTheirStep) {
  const std::array runs{LabelledRun{app_.run.get(), ""}};
  const PieceTable pieces = piece_table(runs);
  ASSERT_FALSE(pieces.places.empty());
  ASSERT_EQ(pieces.places.size(), pieces.table.rows.size());
  const analysis::Digest digest = analysis::digest_of(data());
  ASSERT_EQ(digest.longest_pieces().size(), pieces.places.size());
  std::int64_t last = INT64_MAX;
  std::size_t named = 0;
  for (std::size_t row = 0; row < pieces.places.size(); ++row) {
    const auto& [rank, begin_ns, end_ns, run] = pieces.places[row];
    EXPECT_LE(end_ns - begin_ns, last);
    last = end_ns - begin_ns;
    const std::uint32_t number = digest.longest_pieces()[row].step;
    const auto step =
        std::ranges::find(digest.steps(), number, [](const analysis::StepDigest& one) { return one.step; });
    ASSERT_NE(step, digest.steps().end());
    const analysis::PathPart part = digest.longest_pieces()[row].piece.part;
    ASSERT_TRUE(step->path);
    EXPECT_GE((*step->path)[static_cast<std::size_t>(part)], end_ns - begin_ns);
    EXPECT_EQ(pieces.table.rows[row][1].text, analysis::label_of(part));
    EXPECT_EQ(pieces.table.rows[row][2].text,
              analysis::piece_label(data(), digest.longest_pieces()[row].piece));
    named += pieces.table.rows[row][2].text.empty() ? 0 : 1;
  }
  EXPECT_GT(named, 0U);
}

}  // namespace
}  // namespace shardscope::gui
