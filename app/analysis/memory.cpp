#include "app/analysis/memory.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/analysis/zero_settings.h"
#include "runtime/plan/memory_model.h"

namespace shardscope::analysis {
namespace ev = shardscope::instrumentation;
namespace {

using ev::MemoryCategory;

std::int64_t of(const store::MemorySample& sample, MemoryCategory category) {
  return sample.bytes[static_cast<std::size_t>(category)];
}

/// The device's expression is less, and the other pools have theirs.
void place_offloaded(const store::Store& store, const Summary& summary, const plan::StateBytes& bytes,
                     const plan::GroupedStates& grouped, const plan::ZeroConfig& zero, MemoryModel& model) {
  const ev::RunTables& tables = store.tables();
  const auto elems = static_cast<double>(tables.elems);
  const auto expressions = plan::placed_expressions(zero.stage, bytes, plan::state_placement(zero));
  const double secondary = grouped.secondary_bytes * elems / grouped.secondary_ranks;
  model.expression = expressions[0].text();
  if (secondary > 0) model.expression += " + secondary shards (hpZ)";
  model.bytes_per_rank = std::llround(expressions[0].bytes(elems, grouped.shard_ranks) + secondary);
  for (std::size_t i = 1; i < expressions.size(); ++i) {
    MemoryModel::Offloaded pool;
    pool.pool = static_cast<ev::MemoryPool>(i);
    pool.expression = expressions[i].text();
    pool.bytes_per_rank = std::llround(expressions[i].bytes(elems, grouped.shard_ranks));
    for (const RankSummary& rank : summary.ranks) {
      const auto peak = store.model_state_peak(rank.rank, pool.pool);
      if (!peak) continue;
      const std::int64_t measured = model_state_bytes(*peak, tables.stage);
      pool.measured_bytes_per_rank = std::max(pool.measured_bytes_per_rank.value_or(0), measured);
    }
    if (pool.bytes_per_rank > 0 || pool.measured_bytes_per_rank.value_or(0) > 0) {
      model.offloaded.push_back(std::move(pool));
    }
  }
}

}  // namespace

std::int64_t model_state_bytes(const store::MemorySample& sample, std::int32_t stage) {
  std::int64_t bytes = of(sample, MemoryCategory::param_shard) + of(sample, MemoryCategory::param_secondary) +
                       of(sample, MemoryCategory::grad_full) + of(sample, MemoryCategory::grad_shard) +
                       of(sample, MemoryCategory::master_weight) + of(sample, MemoryCategory::momentum) +
                       of(sample, MemoryCategory::variance);
  if (stage < 3) bytes += of(sample, MemoryCategory::param_gathered);
  return bytes;
}

MemoryModel model_memory(const store::Store& store, const Summary& summary) {
  MemoryModel model;
  if (!store.has_tables()) return model;
  const ev::RunTables& tables = store.tables();
  const plan::StateBytes bytes{tables.param_bytes, tables.grad_bytes, tables.master_bytes, 4, 4};
  const plan::StateExpression expression =
      plan::state_expression(static_cast<std::uint32_t>(std::clamp(tables.stage, 0, 3)), bytes);
  const plan::ZeroConfig zero = zero_of(tables);
  const plan::GroupedStates grouped =
      plan::grouped_states(expression, zero, bytes.param, std::max<std::uint32_t>(tables.world, 1));
  model.expression = grouped.text;
  model.bytes_per_rank = std::llround(grouped.bytes(static_cast<double>(tables.elems)));
  if (zero.offload_param.device != plan::OffloadDevice::none ||
      zero.offload_optimizer.device != plan::OffloadDevice::none) {
    place_offloaded(store, summary, bytes, grouped, zero, model);
  }
  for (const RankSummary& rank : summary.ranks) {
    if (!rank.model_state_peak) continue;
    const std::int64_t measured = model_state_bytes(*rank.model_state_peak, tables.stage);
    model.measured_bytes_per_rank = std::max(model.measured_bytes_per_rank.value_or(0), measured);
  }
  if (model.measured_bytes_per_rank && model.bytes_per_rank > 0) {
    model.excess_pct = 100.0 * (static_cast<double>(*model.measured_bytes_per_rank) /
                                    static_cast<double>(model.bytes_per_rank) -
                                1.0);
  }
  return model;
}

}  // namespace shardscope::analysis
