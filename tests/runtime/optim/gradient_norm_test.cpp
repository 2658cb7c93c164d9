// The gradient norm of parts in device and host memory, and what it means for the update.
#include "runtime/optim/gradient_norm.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/device/device.h"

namespace shardscope::optim {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

class GradientNormTest : public ::testing::Test {
 protected:
  /// Elements [0, device_elems) stand for device memory, the rest for host memory.
  [[nodiscard]] GradientParts parts(std::int64_t device_elems) const {
    return {{values_.data(), kernels::DType::f32},
            device_elems,
            {values_.data() + device_elems, kernels::DType::f32},
            static_cast<std::int64_t>(values_.size()) - device_elems};
  }
  GradientNorm::Local norm_of(std::int64_t device_elems) {
    norm_.queue(parts(device_elems));
    return norm_.read();
  }
  std::vector<float> values_ = std::vector<float>(1000, 3.0F);
  std::unique_ptr<device::Device> device_ = device::make_cpu_device(nullptr);
  GradientNorm norm_{*device_};
};

TEST_F(GradientNormTest, SquaresOfBothPartsAreSummedWhereverTheyAreDivided) {
  for (const std::int64_t device_elems : {0, 1, 400, 999, 1000}) {
    const GradientNorm::Local local = norm_of(device_elems);
    EXPECT_DOUBLE_EQ(local.sum_of_squares, 9.0 * 1000) << device_elems;
    EXPECT_TRUE(local.finite);
  }
}

TEST_F(GradientNormTest, OneElementThatIsNotFiniteIsSeenInEitherPart) {
  for (const std::size_t at : {std::size_t{0}, std::size_t{399}, std::size_t{400}, std::size_t{999}}) {
    for (const float bad : {kInf, -kInf, kNan}) {
      values_.assign(1000, 1.0F);
      values_[at] = bad;
      EXPECT_FALSE(norm_of(400).finite) << at;
      values_[at] = 1.0F;
      EXPECT_TRUE(norm_of(400).finite) << "nothing is left of the step before";
    }
  }
}

TEST_F(GradientNormTest, WhatIsNotFiniteIsCountedWithinTheRangeAlone) {
  values_[100] = kInf;
  values_[399] = kNan;
  values_[400] = kNan;
  values_[900] = -kInf;
  EXPECT_FALSE(norm_of(400).finite);
  const auto count = [&](std::int64_t begin, std::int64_t end) {
    const kernels::NotFiniteCount found = norm_.count_not_finite(parts(400), {begin, end});
    return std::pair(static_cast<std::int64_t>(found.infinite), static_cast<std::int64_t>(found.nan));
  };
  EXPECT_EQ(count(0, 1000), std::pair(std::int64_t{2}, std::int64_t{2}));
  EXPECT_EQ(count(101, 400), std::pair(std::int64_t{0}, std::int64_t{1}));
  EXPECT_EQ(count(399, 401), std::pair(std::int64_t{0}, std::int64_t{2}));
  EXPECT_EQ(count(500, 900), std::pair(std::int64_t{0}, std::int64_t{0}));
  EXPECT_EQ(count(900, 901), std::pair(std::int64_t{1}, std::int64_t{0}));
}

TEST(Clip, UndoesTheScaleAndLeavesTheNormAtTheLimit) {
  const Clipping below = clip(4.0 * 64 * 64, 64, 3);  // norm 2 before scaling
  EXPECT_DOUBLE_EQ(below.norm, 2);
  EXPECT_DOUBLE_EQ(below.factor, 1.0 / 64);
  EXPECT_DOUBLE_EQ(below.clip_factor, 1);
  const Clipping above = clip(4.0 * 64 * 64, 64, 0.5);
  EXPECT_NEAR(above.norm * above.factor * 64, 0.5, 1e-6);
  EXPECT_NEAR(above.clip_factor, 0.25, 1e-6);
  EXPECT_DOUBLE_EQ(clip(1e12, 1, 0).clip_factor, 1) << "0: there is no limit";
}

}  // namespace
}  // namespace shardscope::optim
