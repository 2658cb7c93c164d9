// What is counted of handshakes that ended without a message.
#include "app/collector/handshakes.h"

#include <gtest/gtest.h>

namespace shardscope::collector {
namespace {

TEST(Handshakes, OnesThatEndedWithoutAWordAreCounted) {
  Handshakes h;
  h.accepted(5, 0);
  EXPECT_TRUE(h.disconnected(5));  // hung up on
  h.accepted(5, 0);
  h.resolved();
  EXPECT_FALSE(h.disconnected(5));  // was let in
  h.accepted(6, 0);
  h.failed();
  EXPECT_FALSE(h.disconnected(6));  // libzmq has reported it
  // Two at a time, one of them let in: which one left is not known at once, but in the end.
  h.accepted(7, 1);
  h.accepted(8, 1);
  h.resolved();
  EXPECT_FALSE(h.disconnected(8));
  EXPECT_EQ(h.over(2), 0U);
  EXPECT_EQ(h.over(1 + Handshakes::kOver_s), 1U);
  EXPECT_EQ(h.over(100), 0U);
  h.accepted(9, 100);
  h.resolved();
  EXPECT_EQ(h.over(200), 0U);
}

}  // namespace
}  // namespace shardscope::collector
