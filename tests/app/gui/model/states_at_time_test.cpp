// States of the parameters at a time, read by as many ranks as a frame has time for.
#include "app/gui/model/states_at_time.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "tests/app/store/synthetic_run.h"

namespace shardscope::gui {
namespace {

using std::chrono::nanoseconds;

class States : public ::testing::Test {
 protected:
  void frame(std::int64_t at_ns, std::optional<nanoseconds> budget) {
    states_.begin_frame(1, store_, at_ns, store_.tables().params.size(), budget);
  }
  /// Ranks that have the states of the frame's time.
  int current() {
    int out = 0;
    for (const store::RankRow& rank : store_.ranks()) out += states_.of(store_, rank.rank).current ? 1 : 0;
    return out;
  }
  const store::Store store_ = store::make_synthetic_store();
  const std::int64_t middle_ = store_.steps()[2].begin_ns;
  StatesAtTime states_;
};

TEST_F(States, WithoutABudgetAllAreThoseOfTheStore) {
  frame(middle_, std::nullopt);
  ASSERT_EQ(current(), 4);
  EXPECT_FALSE(states_.behind());
  std::vector<store::ParamState> wanted(store_.tables().params.size());
  for (const store::RankRow& rank : store_.ranks()) {
    store_.param_states(rank.rank, middle_, wanted);
    const auto& got = states_.of(store_, rank.rank);
    EXPECT_TRUE(got.known);
    ASSERT_EQ(got.states.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_EQ(got.states[i].status, wanted[i].status);
      EXPECT_EQ(got.states[i].since_ns, wanted[i].since_ns);
    }
  }
}

TEST_F(States, OneRankIsReadWhateverTheBudgetAndTheOthersFollowInTheNextFrames) {
  frame(middle_, nanoseconds(0));
  EXPECT_EQ(current(), 1);
  EXPECT_TRUE(states_.behind());
  for (int ranks = 2; ranks <= 4; ++ranks) {
    frame(middle_, nanoseconds(0));
    EXPECT_EQ(current(), ranks);
  }
  EXPECT_FALSE(states_.behind());
}

TEST_F(States, ARankThatIsLeftOutKeepsTheStatesOfTheTimeBefore) {
  frame(0, std::nullopt);
  ASSERT_EQ(current(), 4);
  const std::vector<store::ParamState> before = states_.of(store_, 3).states;
  frame(middle_, nanoseconds(0));
  EXPECT_EQ(current(), 1);
  EXPECT_FALSE(states_.of(store_, 3).current);
  EXPECT_EQ(states_.of(store_, 3).states.size(), before.size());
}

/// Of a live run the time moves in each frame.
TEST(StatesOfManyRanks, AFrameReadsOneAndAllHaveTheirTurn) {
  constexpr std::uint32_t kRanks = 64;
  const store::Store store = store::make_synthetic_store({.world = kRanks, .steps = 1, .layers = 1});
  ASSERT_EQ(store.ranks().size(), kRanks);
  StatesAtTime states;
  for (int round = 0; round < 3; ++round) {
    std::set<std::uint32_t> read;
    for (std::uint32_t i = 0; i < kRanks; ++i) {
      states.begin_frame(1, store, round * kRanks + i, store.tables().params.size(), nanoseconds(0));
      int in_frame = 0;
      for (const store::RankRow& row : store.ranks()) {
        if (!states.of(store, row.rank).current) continue;
        ++in_frame;
        read.insert(row.rank);
      }
      EXPECT_EQ(in_frame, 1);
      EXPECT_TRUE(states.behind());
    }
    EXPECT_EQ(read.size(), kRanks) << "round " << round;
  }
}

TEST_F(States, OfAnotherRunNothingIsKept) {
  frame(middle_, std::nullopt);
  ASSERT_EQ(current(), 4);
  states_.begin_frame(2, store_, middle_, store_.tables().params.size(), nanoseconds(0));
  (void)states_.of(store_, 0);
  EXPECT_TRUE(states_.of(store_, 1).states.empty());
}

}  // namespace
}  // namespace shardscope::gui
