// What the window says at a time whose events a recorder with limits has deleted.
#include <gtest/gtest.h>

#include <string>

#include "app/gui/model/names.h"
#include "app/gui/model/stepping.h"
#include "tests/app/gui/limited_run.h"

namespace shardscope::gui {
namespace {

using NotKept = LimitedRun;

TEST_F(NotKept, ARankPassedGatesThatAreNotKnownAndIsNotSaidToHavePassedNone) {
  const std::int64_t early = store_.end_ns() / 4, late = store_.end_ns() - 1;
  ASSERT_FALSE(store_.is_known(1, early));
  ASSERT_TRUE(store_.is_known(1, late));
  EXPECT_FALSE(gate_position(store_, 1, early).known);
  EXPECT_EQ(no_gate_text(store_, 1, early), not_kept_text());
  EXPECT_EQ(no_gate_text(store_, 1, late), "no gate passed yet");
}

}  // namespace
}  // namespace shardscope::gui
