// What a viewer may ask a recorder to keep: a kind of one word and what happened, nothing else.
#include "app/collector/moment_request.h"

#include <gtest/gtest.h>

#include <string>

namespace shardscope::collector {
namespace {

TEST(MomentRequest, IsReadAsItWasWritten) {
  const auto moment = moment_of_request(moment_request_text("slow_step", "step 7 took 2 s"));
  ASSERT_TRUE(moment);
  EXPECT_EQ(moment->kind, "slow_step");
  EXPECT_EQ(moment->text, "step 7 took 2 s");
  const auto plain = moment_of_request(moment_request_text("request", ""));
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->text, "");
}

TEST(MomentRequest, LongTextsAreCut) {
  const std::string text(5000, 'x');
  EXPECT_LE(moment_request_text("request", text).size(), kMostMomentText + 10);
  EXPECT_EQ(moment_of_request("request " + text)->text.size(), kMostMomentText);
}

TEST(MomentRequest, WhatHasNoKindIsNone) {
  for (const char* wrong :
       {"", " ", "request", " text", "Request text", "re-quest text", "request1 text", "a\nb text"})
    EXPECT_FALSE(moment_of_request(wrong)) << wrong;
  EXPECT_FALSE(moment_of_request(std::string(33, 'a') + " text"));
}

}  // namespace
}  // namespace shardscope::collector
