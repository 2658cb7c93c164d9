// The window's diagnosis of a run that hangs: not before it has been quiet, once for what there is,
// and gone when the run goes on.
#include "app/gui/model/hang_watch.h"

#include <gtest/gtest.h>

#include <array>

#include "app/store/chunk.h"

namespace shardscope::gui {
namespace {

namespace ev = instrumentation;

using namespace std::chrono_literals;
using Run = HangWatch::Run;

class HangWatchTest : public testing::Test {
 protected:
  void SetUp() override {
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      ev::RunTables tables;
      tables.rank = rank;
      tables.world = 2;
      tables.stage = 3;
      store_.set_tables(rank, tables);
      store::RankRow row;
      row.rank = rank;
      row.connected = true;
      store_.set_rank(row);
    }
    add(0, 1'000'000, ev::EventKind::step_begin, ev::StreamId::host);
    add(1, 1'000'000, ev::EventKind::step_begin, ev::StreamId::host);
    add(0, 1'500'000, ev::EventKind::step_end, ev::StreamId::host);
    add(1, 1'500'000, ev::EventKind::step_end, ev::StreamId::host);
    add(0, 2'000'000, ev::EventKind::collective_begin, ev::StreamId::gather);
  }
  void add(std::uint32_t rank, std::int64_t at_ns, ev::EventKind kind, ev::StreamId stream) {
    store::Chunk chunk;
    chunk.rank = rank;
    chunk.sequence = sequences_[rank]++;
    ev::Event event;
    event.ticks = static_cast<std::uint64_t>(at_ns);
    event.kind = kind;
    event.stream = stream;
    event.a = kind == ev::EventKind::collective_begin ? 1 : 0;
    chunk.events.push_back(event);
    store_.ingest(std::move(chunk));
  }
  store::Store store_;
  HangWatch watch_;
  HangWatch::Clock::time_point now_{std::chrono::hours(1)};
  std::array<std::uint64_t, 2> sequences_{};
};

TEST_F(HangWatchTest, SaysNothingBeforeTheRunIsQuietAndNothingOnceItGoesOn) {
  EXPECT_FALSE(watch_.look(store_, Run::running, now_));
  EXPECT_FALSE(watch_.look(store_, Run::running, now_ + 1s));
  EXPECT_EQ(watch_.current_hang(), nullptr);
  EXPECT_EQ(watch_.diagnosis(store_, Run::running).text, "The run continues: events come in.");
  EXPECT_TRUE(watch_.look(store_, Run::running, now_ + 2s));
  ASSERT_NE(watch_.current_hang(), nullptr);
  EXPECT_EQ(watch_.current_hang()->headline.substr(0, 34), "Rank 0 waits for rank 1 in all-gat");
  EXPECT_FALSE(watch_.look(store_, Run::running, now_ + 10s)) << "nothing has changed: nothing is drawn";
  EXPECT_EQ(hang_table(*watch_.current_hang()).rows.size(), 2U);
  add(1, 3'000'000, ev::EventKind::collective_begin, ev::StreamId::gather);
  EXPECT_TRUE(watch_.look(store_, Run::running, now_ + 11s));
  EXPECT_EQ(watch_.current_hang(), nullptr);
}

TEST_F(HangWatchTest, APausedRunDoesNotHang) {
  EXPECT_FALSE(watch_.look(store_, Run::held, now_));
  EXPECT_FALSE(watch_.look(store_, Run::held, now_ + 10s));
  EXPECT_EQ(watch_.current_hang(), nullptr);
}

TEST_F(HangWatchTest, ARunThatHasEndedDoesNotHangWhateverWasSaidBefore) {
  (void)watch_.look(store_, Run::running, now_);
  ASSERT_TRUE(watch_.look(store_, Run::running, now_ + 2s));
  ASSERT_NE(watch_.current_hang(), nullptr);
  EXPECT_TRUE(watch_.look(store_, Run::over, now_ + 3s)) << "the banner goes";
  EXPECT_EQ(watch_.current_hang(), nullptr);
  EXPECT_FALSE(watch_.look(store_, Run::over, now_ + 4s));
  // The panel shows how the recorded end was; that is no run that hangs now.
  EXPECT_EQ(watch_.diagnosis(store_, Run::over).ranks.size(), 2U);
  EXPECT_EQ(watch_.current_hang(), nullptr);
  EXPECT_FALSE(watch_.look(store_, Run::over, now_ + 5s)) << "what the panel shows stays";
}

TEST_F(HangWatchTest, OfARecordingItIsMadeOnceAndOnDemand) {
  EXPECT_FALSE(watch_.look(store_, Run::over, now_));
  EXPECT_EQ(watch_.diagnosis(store_, Run::over).ranks.size(), 2U);
  const std::uint64_t revision = watch_.revision();
  EXPECT_EQ(watch_.diagnosis(store_, Run::over).ranks.size(), 2U);
  EXPECT_EQ(watch_.revision(), revision);
}

}  // namespace
}  // namespace shardscope::gui
