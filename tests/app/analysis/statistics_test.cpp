#include "app/analysis/statistics.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace shardscope::analysis {
namespace {

TEST(Statistics, QuantilesInterpolateAsNumPyDoes) {
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile({1, 2, 3, 4}, 0.95), 3.85);
  EXPECT_DOUBLE_EQ(quantile({7}, 0.95), 7);
  EXPECT_DOUBLE_EQ(half_iqr({1, 2, 3, 4}), 0.75);
  EXPECT_DOUBLE_EQ(half_iqr({5}), 0);
  EXPECT_THROW((void)quantile({}, 0.5), std::invalid_argument);
}

}  // namespace
}  // namespace shardscope::analysis
