#include "runtime/simulate/cost_model.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "instrumentation/bus_factor.h"

namespace shardscope::simulate {

namespace {

/// One processor's unit of a matrix product: a square tile of results, with at most kPieceDepth terms
/// (libraries divide deep products, split-K). The sizes of usual cuBLAS and CUTLASS kernels.
constexpr double kTile = 128, kPieceDepth = 1024;

}  // namespace

// Also maps NaN (0 / 0, work without a rate) to kLongestWorkNs.
std::int64_t whole_ns(double ns) noexcept {
  return ns < static_cast<double>(kLongestWorkNs) ? std::llround(ns) : kLongestWorkNs;
}

double CostModel::matrix_efficiency(const kernels::ProductShape& product) const noexcept {
  double efficiency = hardware_.matrix_efficiency;
  if (product.depth <= 0) return efficiency;
  if (hardware_.processors > 0) {
    const double tiles = std::ceil(product.rows / kTile) * std::ceil(product.columns / kTile);
    const double pieces = tiles * std::ceil(product.depth / kPieceDepth);
    efficiency *= std::min(1.0, pieces / hardware_.processors);
  }
  return efficiency * product.depth / (product.depth + hardware_.matrix_half_depth);
}

std::int64_t CostModel::kernel_ns(const kernels::Work& work) const noexcept {
  const double tflops = work.type == kernels::DType::f32 ? hardware_.f32_tflops : hardware_.f16_tflops;
  const double efficiency = work.attention && hardware_.attention_efficiency > 0
                                ? hardware_.attention_efficiency
                                : matrix_efficiency(work.product);
  // 10^12 operations per second are 10^3 per nanosecond, 10^9 bytes per second one byte.
  const double arithmetic = work.matrix_flops / (tflops * 1e3 * efficiency);
  const double memory = work.bytes / (hardware_.memory_gb_per_s * hardware_.memory_efficiency);
  return whole_ns(hardware_.kernel_us * 1e3 + std::max(arithmetic, memory));
}

std::int64_t CostModel::host_work_ns(const kernels::Work& work) const noexcept {
  return whole_ns(work.bytes / hardware_.host_memory_gb_per_s);
}

std::int64_t CostModel::device_copy_ns(std::size_t bytes) const noexcept {
  return kernel_ns({0, 2 * static_cast<double>(bytes), kernels::DType::f32});
}

std::int64_t CostModel::host_copy_ns(std::size_t bytes) const noexcept {
  return whole_ns(hardware_.host.latency_us * 1e3 + static_cast<double>(bytes) / hardware_.host.gb_per_s);
}

std::int64_t CostModel::nvme_ns(const kernels::Work& work) const noexcept {
  return whole_ns(hardware_.nvme.latency_us * 1e3 + work.bytes / hardware_.nvme.gb_per_s);
}

std::int64_t CostModel::launch_ns() const noexcept { return whole_ns(hardware_.launch_us * 1e3); }

double CostModel::latency_ns(const GroupShape& group) const noexcept {
  if (group.ranks <= 1) return 0;
  const LinkSpeed& link = group.nodes > 1 ? hardware_.between : hardware_.inside;
  return link.latency_us * 1e3 * std::bit_width(group.ranks - 1);  // ceil(log2)
}

std::int64_t CostModel::collective_latency_ns(instrumentation::CollectiveOp op,
                                              const GroupShape& group) const noexcept {
  using instrumentation::CollectiveOp;
  if (group.ranks <= 1) return 0;
  const double between = group.nodes - 1;
  const double inside = group.ranks - 1 - between;
  double ring_us = inside * hardware_.inside.ring_step_us + between * hardware_.between.ring_step_us;
  if (op == CollectiveOp::all_reduce) ring_us *= 2;
  if (op == CollectiveOp::all_to_all) ring_us = 0;  // each pair on its own
  return whole_ns(latency_ns(group) + ring_us * 1e3);
}

std::int64_t CostModel::collective_moving_ns(instrumentation::CollectiveOp op, std::int64_t bytes,
                                             const GroupShape& group) const noexcept {
  if (group.ranks <= 1) return 0;
  double gb_per_s = hardware_.inside.gb_per_s;
  if (group.nodes > 1) {
    const double on_a_node = static_cast<double>(group.ranks) / group.nodes;
    gb_per_s = std::min(on_a_node > 1 ? gb_per_s : hardware_.between.gb_per_s,
                        hardware_.between.gb_per_s * on_a_node / hardware_.ranks_per_node);
  }
  return whole_ns(static_cast<double>(bytes) * instrumentation::bus_factor(op, group.ranks) / gb_per_s);
}

std::int64_t CostModel::host_exchange_ns(const GroupShape& group) const noexcept {
  return whole_ns(latency_ns(group));
}

}  // namespace shardscope::simulate
