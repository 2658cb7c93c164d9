#include "app/analysis/memory.h"

#include <algorithm>
#include <cmath>

#include "app/analysis/zero_settings.h"
#include "runtime/plan/memory_model.h"

namespace shardscope::analysis {
namespace ev = shardscope::instrumentation;
namespace {

using ev::MemoryCategory;

std::int64_t of(const store::MemorySample& sample, MemoryCategory category) {
  return sample.bytes[static_cast<std::size_t>(category)];
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
