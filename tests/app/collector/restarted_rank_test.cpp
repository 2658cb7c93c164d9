// Ranks whose processes are started again while the run goes on, as an elastic launcher does.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "app/collector/collector.h"
#include "app/store/rank_end.h"
#include "tests/app/collector/test_rank.h"

namespace shardscope::collector {
namespace {

using store::RankEnd;

RankEnd end_of_rank(const Collector& collector, std::uint32_t rank) {
  RankEnd end;
  collector.read([&](const store::Store& store) {
    for (const store::RankRow& row : store.ranks()) {
      if (row.rank == rank) end = store::rank_end(store, row);
    }
  });
  return end;
}

TEST(RestartedRank, IsRunningWhateverTheProcessBeforeItReported) {
  Collector collector(local());
  {
    Rank failing(collector.publish_endpoint(), 0, 1);
    failing.step(0);
    failing.finish(3, "CUDA error: an illegal memory access was encountered");
  }
  ASSERT_TRUE(eventually([&] { return end_of_rank(collector, 0).how == RankEnd::How::failed; }));
  Rank restarted(collector.publish_endpoint(), 0, 1);
  restarted.step(0);
  restarted.settle();
  EXPECT_TRUE(restarted.until([&] { return end_of_rank(collector, 0).how == RankEnd::How::running; }))
      << store::text_of(end_of_rank(collector, 0));
  EXPECT_EQ(end_of_rank(collector, 0).exit_code, 0);
  EXPECT_EQ(end_of_rank(collector, 0).exit_message, "");
  bool reported = false;
  collector.read([&](const store::Store& store) {
    reported = all_texts(store).find("illegal memory access") != std::string::npos;
  });
  EXPECT_TRUE(reported) << "the failure stays among the messages";
  EXPECT_EQ(collector.status().exit_code, 0) << "of the process before";
  EXPECT_EQ(collector.status().failure, "");
  restarted.finish();
  EXPECT_TRUE(eventually([&] { return end_of_rank(collector, 0).how == RankEnd::How::finished; }));
}

/// The failure of a rank that was not restarted stays the run's.
TEST(RestartedRank, LeavesTheFailureOfAnother) {
  Collector collector(local());
  {
    Rank first(collector.publish_endpoint(), 0, 2), second(collector.publish_endpoint(), 1, 2);
    first.step(0);
    second.step(0);
    first.finish(3, "out of memory");
    ASSERT_TRUE(eventually([&] { return collector.status().exit_code == 3; }));
    second.finish(4, "its peer is gone");
    ASSERT_TRUE(eventually([&] { return end_of_rank(collector, 1).how == RankEnd::How::failed; }));
  }
  EXPECT_EQ(collector.status().failure, "rank 0: out of memory");
  Rank restarted(collector.publish_endpoint(), 0, 2);
  restarted.step(0);
  restarted.settle();
  EXPECT_TRUE(restarted.until([&] { return collector.status().exit_code == 4; }));
  EXPECT_EQ(collector.status().failure, "rank 1: its peer is gone");
}

/// A process that a signal killed reports nothing: its launcher does.
TEST(RestartedRank, IsRunningAfterTheLauncherReportedASignal) {
  Collector collector(local());
  {
    Rank killed(collector.publish_endpoint(), 0, 1);
    killed.step(0);
    killed.settle();
  }
  collector.note_exit(0, 128 + 9);
  ASSERT_TRUE(eventually([&] { return end_of_rank(collector, 0).how == RankEnd::How::killed; }));
  Rank restarted(collector.publish_endpoint(), 0, 1);
  restarted.step(0);
  restarted.settle();
  EXPECT_TRUE(restarted.until([&] { return end_of_rank(collector, 0).how == RankEnd::How::running; }))
      << store::text_of(end_of_rank(collector, 0));
}

TEST(RestartedRank, HasTheDetailThatAViewerHadSet) {
  Collector collector(local());
  Viewer viewer(collector.view_endpoint());
  store::Store store;
  {
    SettableRank first(collector.publish_endpoint());
    ASSERT_TRUE(follow(viewer, store, [&] {
      first.link.pump();  // a rank sends once its connection is up
      return !store.ranks().empty() && store.ranks()[0].connected;
    }));
    viewer.send({.kind = Command::Kind::set_detail, .rule = {}, .detail = Detail::phases});
    ASSERT_TRUE(eventually([&] { return first.level() == Detail::phases; }));
  }
  SettableRank restarted(collector.publish_endpoint());
  EXPECT_TRUE(eventually([&] {
    restarted.link.pump();
    return restarted.level() == Detail::phases;
  }));
}

}  // namespace
}  // namespace shardscope::collector
