// The helpers must fail on wrong values, or the other tests prove nothing.
#include "tests/kernels/support.h"

namespace shardscope::kernels::test {
namespace {

TEST(Support, CloseFailsOnAWrongValue) {
  EXPECT_TRUE(close({1.0, 2.0}, {1.0, 2.0}, 0, 0));
  EXPECT_FALSE(close({1.0, 2.1}, {1.0, 2.0}, 0.01, 0.01));
  EXPECT_TRUE(close({1.0, 2.1}, {1.0, 2.0}, 0.051, 0));
}

TEST(Support, CloseFailsOnNanInfinityAndSize) {
  EXPECT_FALSE(close({std::nan("")}, {1.0}, 1, 1));
  EXPECT_FALSE(close({1.0}, {std::nan("")}, 1, 1));
  EXPECT_FALSE(close({HUGE_VAL}, {1.0}, 1, 1));
  EXPECT_FALSE(close({1.0}, {1.0, 2.0}, 1, 1));
}

TEST(Support, CentralDifferencesFindAGradientAndRejectAWrongOne) {
  Doubles x{0.5, -2.0};
  const Doubles gradient = central_differences(x, [&] { return x[0] * x[0] * x[0] + 4.0 * x[1]; });
  EXPECT_TRUE(close(gradient, {0.75, 4.0}, 0, 1e-8));
  EXPECT_FALSE(close(gradient, {0.76, 4.0}, 0, 1e-8));
}

TEST(Support, SixteenBitConversionKnownValues) {
  EXPECT_EQ(to_bits16(1.0F, DType::bf16), 0x3F80);
  EXPECT_EQ(to_bits16(1.0F + 0x1p-8F, DType::bf16), 0x3F80);  // tie to even
  EXPECT_EQ(to_bits16(1.0F + 0x1.8p-7F, DType::bf16), 0x3F82);
  EXPECT_EQ(to_bits16(1.0F, DType::f16), 0x3C00);
  EXPECT_EQ(to_bits16(65504.0F, DType::f16), 0x7BFF);
  EXPECT_EQ(to_bits16(65520.0F, DType::f16), 0x7C00);
  EXPECT_EQ(to_bits16(0x1p-24F, DType::f16), 0x0001);
  EXPECT_EQ(to_bits16(0x1p-25F, DType::f16), 0x0000);
  EXPECT_EQ(from_bits16(0xC000, DType::f16), -2.0F);
  EXPECT_EQ(from_bits16(0x0001, DType::f16), 0x1p-24F);
}

TEST(Support, SameBitsSeesOneBit) {
  Array a({1.0, 2.0}, DType::f32);
  Array b({1.0, 2.0}, DType::f32);
  EXPECT_TRUE(a.same_bits(b));
  b.set(1, std::nextafter(2.0F, 3.0F));
  EXPECT_FALSE(a.same_bits(b));
}

}  // namespace
}  // namespace shardscope::kernels::test
