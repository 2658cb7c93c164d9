// Which moments are passed on to the recorders of nodes.
#include "app/collector/passed_moments.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "app/collector/moment_request.h"

namespace shardscope::collector {
namespace {

store::Moment moment(const std::string& kind, std::int64_t at_ns) {
  store::Moment out;
  out.kind = kind;
  out.at_ns = at_ns;
  return out;
}

/// Two collectors that name each other would else pass one to and fro without an end.
TEST(PassedMoments, OneThatReturnsIsNotPassedOnAgain) {
  PassedMoments passed;
  EXPECT_TRUE(passed.take(moment("slow_step", 5'000'000'000), 1));
  EXPECT_FALSE(passed.take(moment("slow_step", 5'000'000'300), 100)) << "a clock's error later";
  EXPECT_TRUE(passed.take(moment("overflow", 5'000'000'000), 101));
  EXPECT_TRUE(passed.take(moment("slow_step", 7'000'000'000), 102));
}

TEST(PassedMoments, AFloodOfRequestsIsPassedOnInPartOnly) {
  PassedMoments passed;
  std::size_t taken = 0;
  for (std::int64_t i = 0; i < 10'000; ++i)
    taken += passed.take(moment("request", i * 2'000'000'000), 5.0 + 1e-4 * static_cast<double>(i)) ? 1 : 0;
  EXPECT_GE(taken, PassedMoments::kMostASecond);
  EXPECT_LE(taken, 2 * PassedMoments::kMostASecond) << "10,000 of one second";
  EXPECT_TRUE(passed.may_warn(5));
  EXPECT_FALSE(passed.may_warn(19));
  EXPECT_TRUE(passed.may_warn(20));
}

TEST(MomentRequest, LongWordsAreCutAndWhoAskedIsKept) {
  std::string words(399, 'x');
  words += "\u00e4\u00e4";  // the limit is within a character
  const std::string text = requested_text(words, "key 'anna' from 10.0.0.7");
  EXPECT_LE(text.size(), kMostMomentText);
  EXPECT_TRUE(text.ends_with(", requested by key 'anna' from 10.0.0.7")) << text;
  EXPECT_EQ(cut_text(words, 400).size(), 399U) << "not half of a character";
  EXPECT_EQ(moment_of_request(moment_request_text("request", text))->text, text);
}

}  // namespace
}  // namespace shardscope::collector
