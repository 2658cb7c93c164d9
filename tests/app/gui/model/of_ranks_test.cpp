// Figures of one rank are that rank's, and figures of a collective are of that one on every rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "app/gui/model/arrivals.h"
#include "app/gui/model/clock_bound.h"
#include "app/gui/model/details.h"
#include "app/gui/model/details_fields.h"
#include "app/gui/model/state_dump.h"
#include "tests/app/analysis/run_builder.h"
#include "tests/app/gui/model_fixture.h"

namespace shardscope::gui {
namespace {

using namespace test;

class OfRanks : public ::testing::Test {
 protected:
  void show(RunBuilder& run) {
    app_.run = std::make_unique<Session>(std::move(run.build()));
    app_.run->settle();
    app_.place_once();
  }
  AppState app_;
};

TEST_F(OfRanks, UnmatchedEndsAreThoseOfTheRank) {
  RunBuilder run(2);
  for (std::uint32_t rank = 0; rank < 2; ++rank)
    run.span(rank, 0, 1000, EventKind::step_begin, StreamId::host, 0);
  run.instant(1, 500, EventKind::module_end, StreamId::compute, 1);
  show(run);
  const auto unmatched = [&](std::uint32_t rank) {
    const Details details = describe_rank(app_, rank);
    return std::ranges::count_if(details.fields,
                                 [](const auto& field) { return field.label.ends_with(" unmatched"); });
  };
  EXPECT_EQ(unmatched(0), 0);
  EXPECT_EQ(unmatched(1), 1);
}

TEST_F(OfRanks, ACollectiveIsComparedWithItselfOnOtherRanksNotWithItsNeighbours) {
  RunBuilder run(2);
  run.span(0, 100, 200, EventKind::collective_begin, StreamId::gather, 5, 5, kGatherOp, 10, 40);
  run.span(1, 90, 120, EventKind::collective_begin, StreamId::gather, 4, 4, kGatherOp, 10, 40);
  run.span(1, 150, 200, EventKind::collective_begin, StreamId::gather, 5, 5, kGatherOp, 10, 40);
  show(run);
  const store::LaneId lane{0, StreamId::gather};
  const auto all = arrivals(app_.store(), lane, app_.store().spans(lane, 0).front());
  ASSERT_EQ(all.size(), 2U);
  ASSERT_NE(last_to_arrive(all), nullptr);
  EXPECT_EQ(last_to_arrive(all)->rank, 1U);
  EXPECT_EQ(last_to_arrive(all)->late_ns, 50);
  EXPECT_EQ(last_to_arrive({all.front()}), nullptr) << "one alone is not the last of anything";
}

TEST_F(OfRanks, PaddingIsOfTheRankAndOfTheStep) {
  RunBuilder run(2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    run.span(rank, 0, 1000, EventKind::step_begin, StreamId::host, 0);
    run.instant(rank, 500, EventKind::micro_batch, StreamId::host, 0, 0, 4, 0, 30 + rank * 20,
                10 - rank * 10);
  }
  show(run);
  const auto value = [](const Details& details, const std::string& label) {
    const auto found = std::ranges::find(details.fields, label, &Field::label);
    return found == details.fields.end() ? std::string() : found->value;
  };
  EXPECT_EQ(value(describe_rank(app_, 0), "padding"), "25");
  EXPECT_EQ(value(describe_rank(app_, 0), "tokens"), "30");
  EXPECT_EQ(value(describe_rank(app_, 1), "padding"), "") << "of one size without padding";
  EXPECT_EQ(value(describe_rank(app_, 1), "tokens"), "50");
  EXPECT_EQ(value(describe_step(app_, 0), "padding"), "11");
  EXPECT_EQ(value(describe_step(app_, 0), "micro-batches"), "4 samples of 10 to 12 tokens");
}

TEST_F(OfRanks, TheClockOfAllRanksIsTheWorstOfThem) {
  store::Store store;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    store::RankRow row;
    row.rank = rank;
    store.set_rank(row);
    store::Chunk chunk;
    chunk.rank = rank;
    chunk.clock_residual_ns = rank == 1 ? 900 : 100;
    chunk.events = {{10, EventKind::step_begin, StreamId::host, 0, 0, ev::kNoId, ev::kNoId, 0, 0},
                    {90, EventKind::step_end, StreamId::host, 0, 0, ev::kNoId, ev::kNoId, 0, 0}};
    store.ingest(chunk);
  }
  app_.run = std::make_unique<Session>(std::move(store));
  app_.run->settle();
  app_.place_once();
  EXPECT_EQ(clock_bound(app_, 0).in_run_ns, 100);
  EXPECT_EQ(clock_bound(app_, 1).in_run_ns, 900);
  EXPECT_EQ(clock_bound(app_).in_run_ns, 900);
  EXPECT_EQ(clock_bound(app_).in_view_ns, 900);
}

TEST_F(Model, TheDumpNamesWhatIsSelected) {
  app_.selection = {};
  app_.selection.kind = SelectionKind::rank;
  app_.selection.rank = 2;
  const auto selection = nlohmann::json::parse(state_json(app_, {}, 0))["selection"];
  EXPECT_EQ(selection["kind"], "rank");
  EXPECT_EQ(selection["rank"], 2);
}

TEST_F(Model, OnlyAGatherThatCameEarlyLayUnused) {
  const store::LaneId lane{0, ev::StreamId::gather};
  std::size_t early = 0, others = 0;
  for (std::uint8_t depth = 0; depth < data().depth_count(lane); ++depth) {
    for (const store::Span& span : data().spans(lane, depth)) {
      const Fetch* fetch = app_.run->index().fetch_of(0, span);
      if (fetch == nullptr) continue;
      const auto fields = describe_span(app_, lane, span).fields;
      const bool said =
          std::ranges::any_of(fields, [](const auto& field) { return field.label == "unused for"; });
      EXPECT_EQ(said, fetch->outcome() == FetchOutcome::early);
      ++(said ? early : others);
    }
  }
  EXPECT_GT(early, 0U);
  EXPECT_GT(others, 0U);
}

}  // namespace
}  // namespace shardscope::gui
