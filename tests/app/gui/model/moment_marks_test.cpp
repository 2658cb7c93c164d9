// Moments of a recording with limits: marks on the ruler, their words, rows of the Trace info, and the way
// there.
#include "app/gui/model/moment_marks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "app/gui/model/format.h"
#include "app/gui/model/trace_info.h"
#include "app/store/recorded_run.h"
#include "tests/app/gui/model_fixture.h"

namespace shardscope::gui {
namespace {

store::Moment moment_at(std::int64_t at_ns, const std::string& kind, std::int64_t around_ns = 100) {
  store::Moment moment;
  moment.at_ns = at_ns;
  moment.begin_ns = at_ns - around_ns;
  moment.end_ns = at_ns + around_ns;
  moment.kind = kind;
  moment.text = "what happened";
  return moment;
}

TEST(MomentMarks, StandWhereTheMomentsAreOverWhatIsKept) {
  const std::vector<store::Moment> moments = {moment_at(-50, "before"), moment_at(300, "slow_step"),
                                              moment_at(305, "loss_jump", 200), moment_at(800, "request"),
                                              moment_at(2000, "after")};
  const TimeScale scale{{0, 1000}, 50, 1000};
  const std::vector<MomentMark> marks = moment_marks(moments, scale);
  ASSERT_EQ(marks.size(), 3U);
  EXPECT_FALSE(marks[0].shown) << "what is kept reaches into view, the moment does not";
  EXPECT_FLOAT_EQ(marks[0].kept_from, 50);
  EXPECT_FLOAT_EQ(marks[0].kept_to, 100);
  EXPECT_TRUE(marks[1].shown);
  EXPECT_FLOAT_EQ(marks[1].x, 350);
  EXPECT_EQ(marks[1].moments, (std::vector<std::size_t>{1, 2})) << "they would touch";
  EXPECT_FLOAT_EQ(marks[1].kept_from, 155) << "what either keeps";
  EXPECT_FLOAT_EQ(marks[1].kept_to, 555);
  EXPECT_EQ(marks[2].moments, (std::vector<std::size_t>{3}));
  EXPECT_FLOAT_EQ(marks[2].kept_to, 950);
}

TEST(MomentMarks, SayKindTimePlaceWordsAndWhatIsKept) {
  store::Moment moment = moment_at(8'000'000'000, "slow_step", 2'000'000'000);
  moment.step = 7;
  const std::string tip = tip_of(moment);
  EXPECT_EQ(tip.find("slow_step at 8.00 s (step 7): what happened\n"), 0U) << tip;
  EXPECT_NE(tip.find("Kept around it at full detail: " + timestamp(6'000'000'000, 4'000'000) + " to " +
                     timestamp(10'000'000'000, 4'000'000)),
            std::string::npos)
      << tip;
  const std::vector<store::Moment> two = {moment, moment};
  EXPECT_EQ(tip_of(two, {0, 0, 0, true, {0, 1}}).find("2 moments\nslow_step at"), 0U);
}

class Moments : public Model {
 protected:
  Moments() {
    store::Store store = store::make_synthetic_store();
    middle_ns_ = store.end_ns() / 2;
    store::Moment first = moment_at(store.origin_ns() + middle_ns_, "memory_limit", store.end_ns() / 8);
    first.rank = 1;
    store::RecordedRun run(store);
    run.add_moment(first);
    run.add_moment(moment_at(store.origin_ns() + store.end_ns(), "request", store.end_ns() / 8));
    app_.run = std::make_unique<Session>(std::move(store));
    app_.run->settle();
  }
  std::int64_t middle_ns_ = 0;
};

TEST_F(Moments, HaveRowsInTheTraceInfoThatLeadThere) {
  const Table table = trace_table(app_);
  std::vector<std::size_t> found;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    if (const auto moment = moment_of(table, row)) {
      EXPECT_EQ(*moment, found.size());
      EXPECT_EQ(table.rows[row][1].text.find(app_.store().moments()[*moment].kind), 0U);
      found.push_back(row);
    }
  }
  EXPECT_EQ(found.size(), 2U);
  EXPECT_FALSE(moment_of(table, table.rows.size()));
}

TEST_F(Moments, AreGoneToWithAllThatIsKept) {
  const store::Moment& moment = app_.store().moments()[0];
  go_to_moment(app_, moment);
  EXPECT_EQ(app_.now_ns(), middle_ns_);
  EXPECT_EQ(app_.time.range().begin_ns, moment.begin_ns);
  EXPECT_EQ(app_.time.range().end_ns, moment.end_ns);
  EXPECT_FALSE(app_.follow);
  go_to_moment(app_, app_.store().moments()[1]);
  EXPECT_EQ(app_.time.range().end_ns, app_.store().end_ns()) << "what is kept ends with the run";
  const TimeScale scale{app_.time.range(), 0, 1000};
  EXPECT_TRUE(moment_marks(app_.store().moments(), scale).back().shown) << "where the run ends, as a hang is";
}

/// As of a request long after the last event of a run that hangs.
TEST_F(Moments, WhatIsKeptAfterTheLastEventLeadsToTheEndOfTheRun) {
  store::Moment late = app_.store().moments()[1];
  const std::int64_t end = app_.store().end_ns();
  late.at_ns = late.begin_ns = end + 60'000'000'000;
  late.end_ns = late.begin_ns + end / 4;
  go_to_moment(app_, late);
  EXPECT_EQ(app_.time.range().end_ns, end);
  EXPECT_EQ(app_.time.range().begin_ns, end - end / 4);
}

}  // namespace
}  // namespace shardscope::gui
