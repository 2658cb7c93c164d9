// Whether a peer has received what was sent to it last.
#include "app/collector/awaited_answer.h"

#include <gtest/gtest.h>

namespace shardscope::collector {
namespace {

TEST(AwaitedAnswer, OnlyThatToALaterPingCounts) {
  AwaitedAnswer answer;
  EXPECT_FALSE(answer.awaited());
  answer.sent_before(5);
  answer.answered(4);
  EXPECT_TRUE(answer.awaited()) << "ping 4 was sent before";
  answer.answered(6);
  EXPECT_FALSE(answer.awaited()) << "ping 5 may have been lost";
}

TEST(AwaitedAnswer, ALaterMessageIsAwaitedAnew) {
  AwaitedAnswer answer;
  answer.sent_before(5);
  answer.sent_before(8);
  answer.answered(5);
  EXPECT_TRUE(answer.awaited());
  answer.connection_ended();
  EXPECT_FALSE(answer.awaited());
}

}  // namespace
}  // namespace shardscope::collector
