// Backend::cost: no memory is touched, and the metered work follows from the shapes.
#include "kernels/cost.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/columns.h"
#include "kernels/ops.h"

namespace shardscope::kernels {
namespace {

class Recorder final : public WorkMeter {
 public:
  void add(const Work& work) override { metered.push_back(work); }
  std::vector<Work> metered;
};

class CostTest : public ::testing::Test {
 protected:
  Recorder meter;
  Exec exec{Backend::cost, nullptr, &meter, 1};
  /// Nothing may follow it.
  void* nowhere = reinterpret_cast<void*>(0x10);  // NOLINT(performance-no-int-to-ptr)
  [[nodiscard]] Ptr at(DType type) const { return {nowhere, type}; }
};

TEST_F(CostTest, MatrixProductsOfALinearLayer) {
  const double N = 6, in = 8, out = 16;
  linear_forward(exec, at(DType::bf16), at(DType::bf16), at(DType::bf16), at(DType::bf16), 6, 8, 16);
  linear_backward_input(exec, at(DType::bf16), at(DType::bf16), at(DType::bf16), 6, 8, 16, Write::set);
  linear_backward_weight(exec, at(DType::f32), at(DType::f32), at(DType::bf16), at(DType::bf16), 6, 8, 16,
                         Write::add);
  ASSERT_EQ(meter.metered.size(), 3U);
  for (const Work& work : meter.metered) {
    EXPECT_EQ(work.matrix_flops, 2 * N * in * out);
    EXPECT_EQ(2 * work.product.rows * work.product.columns * work.product.depth, work.matrix_flops);
    EXPECT_EQ(work.type, DType::bf16);
  }
  EXPECT_EQ(meter.metered[0].product.depth, in);
  EXPECT_EQ(meter.metered[1].product.depth, out);
  EXPECT_EQ(meter.metered[2].product.depth, N);
  EXPECT_EQ(meter.metered[0].bytes, 2 * (N * in + in * out + out + N * out));
  EXPECT_EQ(meter.metered[1].bytes, 2 * (N * out + in * out + N * in));
  EXPECT_EQ(meter.metered[2].bytes, 2 * (N * in + N * out) + 2 * 4 * (in * out + out));  // read and written
  meter.metered.clear();
  linear_forward(exec, at(DType::f32), at(DType::f32), at(DType::f32), {}, 6, 8, 16);
  EXPECT_EQ(meter.metered[0].bytes, 4 * (N * in + in * out + N * out));  // no bias
  linear_forward(exec, at(DType::f32), at(DType::f32), at(DType::f32), {}, 6, 8, 16, at(DType::f32));
  EXPECT_EQ(meter.metered[1].bytes, 4 * (N * in + in * out + 2 * N * out));  // and what it is put onto
}

TEST_F(CostTest, CausalAttentionIsHalfOfTheSquare) {
  attention_forward(exec, at(DType::bf16), nullptr, at(DType::bf16), 2, 64, 32, 4, nullptr);
  attention_backward(exec, at(DType::bf16), at(DType::bf16), at(DType::bf16), at(DType::bf16), nullptr, 2, 64,
                     32, 4, nullptr);
  ASSERT_EQ(meter.metered.size(), 2U);
  // Two products of 2*B*T*T*C operations, of which half are masked; five in backward.
  EXPECT_EQ(meter.metered[0].matrix_flops, 2.0 * 2 * (2.0 * 64 * 64 * 32) / 2);
  EXPECT_EQ(meter.metered[1].matrix_flops, 5.0 * 2 * (2.0 * 64 * 64 * 32) / 2);
  EXPECT_TRUE(meter.metered[0].attention && meter.metered[1].attention);
}

TEST_F(CostTest, OptimizerMovesItsStates) {
  AdamW settings;
  adamw_step(exec, nullptr, nullptr, nullptr, at(DType::bf16), at(DType::f32), 1000, settings);
  ASSERT_EQ(meter.metered.size(), 1U);
  EXPECT_EQ(meter.metered[0].matrix_flops, 0);
  EXPECT_EQ(meter.metered[0].bytes, 1000.0 * (3 * 4 * 2 + 4 + 2));
}

TEST_F(CostTest, ColumnsAreReadAndWrittenAndTheirNumbersNotFollowed) {
  const MatrixPart part{600, 30, 0};  // 20 rows
  const auto* chosen = static_cast<const std::int32_t*>(nowhere);
  column_abs_sums(exec, static_cast<float*>(nowhere), at(DType::bf16), part);
  take_columns(exec, at(DType::bf16), at(DType::bf16), part, chosen, 3);
  put_columns(exec, at(DType::f32), at(DType::f32), part, chosen, 3);
  ASSERT_EQ(meter.metered.size(), 3U);
  EXPECT_EQ(meter.metered[0].bytes, 600 * 2 + 30 * 4);
  EXPECT_EQ(meter.metered[1].bytes, 2 * 60 * 2 + 3 * 4);
  EXPECT_EQ(meter.metered[2].bytes, 2 * 60 * 4 + 3 * 4);
}

TEST_F(CostTest, ArgumentsAreCheckedAsEverywhere) {
  EXPECT_ANY_THROW(linear_forward(exec, at(DType::f32), at(DType::f32), at(DType::f32), {}, -1, 8, 8));
  EXPECT_ANY_THROW(attention_forward(exec, at(DType::f32), nullptr, at(DType::f32), 1, 4, 10, 3, nullptr));
  EXPECT_TRUE(meter.metered.empty());
}

}  // namespace
}  // namespace shardscope::kernels
