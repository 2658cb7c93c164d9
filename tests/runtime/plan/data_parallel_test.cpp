// Which ranks train one copy of the model together.
#include "runtime/plan/data_parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardscope::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DataParallel, WithoutGroupsAllRanksTrainOneCopy) {
  EXPECT_EQ(validate({}, 4), "");
  EXPECT_EQ(data_parallel_world({}, 4), 4U);
  const DataParallelPlace place = data_parallel_place({}, 4, 2);
  EXPECT_EQ(place.rank, 2U);
  EXPECT_THAT(place.members, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(place.peers, ElementsAre(2));
}

TEST(DataParallel, ARankHasAPlaceInItsGroupAndPeersInTheOthers) {
  const DataParallelGroups groups{{1, 3, 5}, {0, 2, 4}};
  EXPECT_EQ(validate(groups, 6), "");
  EXPECT_EQ(data_parallel_world(groups, 6), 3U);
  const DataParallelPlace place = data_parallel_place(groups, 6, 3);
  EXPECT_EQ(place.rank, 1U);
  EXPECT_THAT(place.members, ElementsAre(1, 3, 5));
  EXPECT_THAT(place.peers, ElementsAre(2, 3));
}

TEST(DataParallel, EveryRankIsInOneGroupAndGroupsAreOfOneSize) {
  EXPECT_THAT(validate({{0, 1}, {2}}, 3), HasSubstr("the first has 2, another 1"));
  EXPECT_THAT(validate({{}}, 1), HasSubstr("at least one rank"));
  EXPECT_THAT(validate({{1, 0}}, 2), HasSubstr("ascend"));
  EXPECT_THAT(validate({{0, 0}}, 2), HasSubstr("ascend"));
  EXPECT_THAT(validate({{0, 1}, {1, 2}}, 4), HasSubstr("rank 1 is in two groups"));
  EXPECT_THAT(validate({{0, 4}}, 4), HasSubstr("rank 4 of a run of 4 ranks, 0 to 3"));
  EXPECT_THAT(validate({{0, 1}, {2, 3}}, 5), HasSubstr("rank 4 is in no group"));
}

TEST(DataParallel, NodesAreCountedByTheMembersOnThem) {
  EXPECT_EQ(topology_of_group({0, 1, 4, 5}, 4).ranks_per_node, 2U);
  EXPECT_EQ(topology_of_group({0, 4, 8}, 4).ranks_per_node, 1U);
  EXPECT_EQ(topology_of_group({0, 1, 2, 3}, 4).ranks_per_node, 4U);
  // Nodes with different numbers of its members count as one: nothing is hierarchical there.
  EXPECT_EQ(topology_of_group({0, 1, 4}, 4).ranks_per_node, 3U);
}

}  // namespace
}  // namespace shardscope::plan
