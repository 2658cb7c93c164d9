// 16-bit floats and the hash, against every value and against what DeepSpeed's runs recorded.
#include <gtest/gtest.h>

#include "runtime/base/float16.h"
#include "runtime/base/hash.h"

namespace shardscope::base {
namespace {

TEST(Float16, EveryValueReadsBack) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float wide = from_f16(half);
    if (wide == wide) {
      EXPECT_EQ(to_f16(wide), half);
    }
    const float brain = from_bf16(half);
    if (brain == brain) {
      EXPECT_EQ(to_bf16(brain), half);
    }
  }
  EXPECT_EQ(to_f16(1.0F + 0x1p-11F), to_f16(1.0F));  // a tie goes to even
  EXPECT_EQ(to_f16(65520.0F), 0x7C00);               // rounds to infinity
  EXPECT_EQ(to_f16(0x1p-25F), 0);
}

TEST(Hash, MatchesTheRecordedVectors) {
  EXPECT_EQ(hash64(0), 16294208416658607535U);
  EXPECT_EQ(hash64(1), 10451216379200822465U);
  EXPECT_EQ(uniform(1, 0), 0.5326035022735596);
}

}  // namespace
}  // namespace shardscope::base
