// Efficiency of matrix products by their shape, and the steps of rings, against the formulas of
// docs/simulate.md.
#include "runtime/simulate/cost_model.h"

#include <gtest/gtest.h>

#include "tests/runtime/simulate/support.h"

namespace shardscope::simulate::testing {
namespace {

/// 1 TFLOP/s, memory that takes no time.
Hardware only_products() {
  Hardware h = round_hardware();
  h.memory_gb_per_s = 1e12;
  return h;
}

kernels::Work product(double rows, double columns, double depth) {
  kernels::Work work{2 * rows * columns * depth, 0, kernels::DType::bf16};
  work.product = {rows, columns, depth};
  return work;
}

double efficiency(const Hardware& hardware, const kernels::Work& work) {
  return work.matrix_flops / 1e3 / static_cast<double>(CostModel(hardware).kernel_ns(work));
}

TEST(ShapeOfProducts, HalfOfTheEfficiencyAtTheHalfDepth) {
  Hardware h = only_products();
  h.matrix_efficiency = 0.8;
  h.matrix_half_depth = 256;
  EXPECT_NEAR(efficiency(h, product(4096, 4096, 256)), 0.4, 1e-6);
  EXPECT_NEAR(efficiency(h, product(4096, 4096, 768)), 0.6, 1e-6);
  h.matrix_half_depth = 0;
  EXPECT_NEAR(efficiency(h, product(4096, 4096, 256)), 0.8, 1e-6);
}

TEST(ShapeOfProducts, FewPiecesLeaveProcessorsIdle) {
  Hardware h = only_products();
  h.processors = 100;
  EXPECT_NEAR(efficiency(h, product(1280, 1280, 512)), 1, 1e-6);   // 10 x 10 tiles
  EXPECT_NEAR(efficiency(h, product(640, 1280, 512)), 0.5, 1e-6);  // 5 x 10
  EXPECT_NEAR(efficiency(h, product(641, 1280, 512)), 0.6, 1e-6);  // the sixth row of tiles has one line
  EXPECT_NEAR(efficiency(h, product(640, 1280, 2048)), 1, 1e-6);   // each tile in two depths
  EXPECT_NEAR(efficiency(h, product(128 * 100, 128 * 100, 512)), 1, 1e-6);  // never above
}

/// A fused attention has an efficiency of its own, and no shape.
TEST(ShapeOfProducts, AttentionHasNone) {
  Hardware h = only_products();
  h.processors = 100;
  h.matrix_half_depth = 1000;
  h.attention_efficiency = 0.25;
  kernels::Work work{1e9, 0, kernels::DType::bf16, true};
  EXPECT_NEAR(efficiency(h, work), 0.25, 1e-6);
}

TEST(RingSteps, AreThoseInsideNodesAndThoseBetween) {
  using instrumentation::CollectiveOp;
  Hardware h = round_hardware();
  h.inside = {1, 5, 2};
  h.between = {1, 10, 100};
  const CostModel cost(h);
  const auto us = [&](CollectiveOp op, std::uint32_t ranks, std::uint32_t nodes) {
    return static_cast<double>(cost.collective_latency_ns(op, {ranks, nodes})) * 1e-3;
  };
  EXPECT_EQ(us(CollectiveOp::all_gather, 1, 1), 0);
  EXPECT_DOUBLE_EQ(us(CollectiveOp::all_gather, 8, 1), 3 * 5 + 7 * 2);
  EXPECT_DOUBLE_EQ(us(CollectiveOp::reduce_scatter, 32, 4), 5 * 10 + 28 * 2 + 3 * 100);
  EXPECT_DOUBLE_EQ(us(CollectiveOp::all_reduce, 32, 4), 5 * 10 + 2 * (28 * 2 + 3 * 100));
  EXPECT_DOUBLE_EQ(us(CollectiveOp::all_gather, 4, 4), 2 * 10 + 3 * 100) << "one rank of each node";
  EXPECT_DOUBLE_EQ(us(CollectiveOp::all_to_all, 32, 4), 5 * 10);
}

}  // namespace
}  // namespace shardscope::simulate::testing
