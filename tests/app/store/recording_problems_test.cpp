// Problems of a recording: all are counted, the first are named.
#include "app/store/recording_problems.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace shardscope::store {
namespace {

TEST(Problems, BeyondThoseListedAreCounted) {
  std::vector<std::string> listed;
  Problems problems(listed);
  for (std::size_t i = 0; i < Problems::kMostListed; ++i) problems.add(std::to_string(i));
  problems.add_unlisted_count();
  EXPECT_EQ(listed.size(), Problems::kMostListed) << "there are no more";
  for (int i = 0; i < 7; ++i) problems.add("another");
  problems.add_unlisted_count();
  ASSERT_EQ(listed.size(), Problems::kMostListed + 1);
  EXPECT_EQ(listed.back(), "and 7 more");
}

TEST(Problems, WhatIsFoundAgainIsNotReportedTwice) {
  std::vector<std::string> listed;
  Problems problems(listed);
  EXPECT_TRUE(problems.none());
  problems.add("of opening");
  const std::size_t of_opening = problems.listed();
  problems.add("names");
  problems.truncate(of_opening);
  problems.add("names");
  EXPECT_THAT(listed, testing::ElementsAre("of opening", "names"));
}

TEST(Problems, DamageInOneTableDoesNotHideTheOthers) {
  std::vector<std::string> listed;
  Problems problems(listed);
  problems.guard("names", [] { throw DatabaseError(11, "malformed"); });
  problems.guard("ranks", [&] { problems.add("rank 3"); });
  EXPECT_THAT(listed, testing::ElementsAre("names: the file is damaged there (malformed)", "rank 3"));
  EXPECT_FALSE(problems.none());
}

}  // namespace
}  // namespace shardscope::store
