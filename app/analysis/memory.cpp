#include "app/analysis/memory.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/analysis/zero_settings.h"
#include "runtime/plan/memory_model.h"
#include "runtime/plan/shard_layout.h"

namespace shardscope::analysis {
namespace ev = shardscope::instrumentation;
namespace {

using ev::MemoryCategory;

std::int64_t of(const store::MemorySample& sample, MemoryCategory category) {
  return sample.bytes[static_cast<std::size_t>(category)];
}

std::int64_t optimizer_of(const store::MemorySample& sample) {
  return of(sample, MemoryCategory::master_weight) + of(sample, MemoryCategory::momentum) +
         of(sample, MemoryCategory::variance);
}

void add_part(std::vector<MemoryPart>& parts, MemoryCause cause, std::int64_t bytes) {
  if (bytes != 0) parts.push_back({cause, bytes});
}

/// What ZenFlow has in host memory beside an offloaded optimizer: its sums have fp32 elements, twice with
/// overlap_step, and zenflow.offload puts the chosen columns' states there.
std::vector<MemoryPart> zenflow_on_host(const store::MemorySample& sample, const plan::StateBytes& bytes,
                                        const plan::ZeroConfig& zero, double owned) {
  std::vector<MemoryPart> parts;
  const std::int64_t sums = of(sample, MemoryCategory::grad_shard);
  if (sums > 0) {
    add_part(parts, MemoryCause::zenflow_sums,
             sums - std::llround(static_cast<double>(bytes.gradient) * owned));
  }
  if (zero.zenflow->offload) {
    constexpr double kStates = 3 * sizeof(float);
    add_part(parts, MemoryCause::zenflow_chosen, optimizer_of(sample) - std::llround(kStates * owned));
  }
  return parts;
}

/// Elements of parameters that are not trained: weights and nothing else.
std::int64_t frozen_elems(const ev::RunTables& tables) {
  std::int64_t elems = 0;
  for (const ev::ParamInfo& param : tables.params) elems += param.frozen ? param.elems : 0;
  return elems;
}

/// The device's expression is less, and the other pools have theirs.
void place_offloaded(const store::Store& store, const Summary& summary, const plan::StateBytes& bytes,
                     const plan::GroupedStates& grouped, const plan::ZeroConfig& zero, MemoryModel& model) {
  const ev::RunTables& tables = store.tables();
  const std::int64_t frozen = frozen_elems(tables);
  const auto elems = static_cast<double>(tables.elems - frozen);
  const auto expressions = plan::placed_expressions(zero.stage, bytes, plan::state_placement(zero));
  const double secondary =
      grouped.secondary_bytes * static_cast<double>(tables.elems) / grouped.secondary_ranks;
  const plan::StateExpression of_frozen =
      plan::frozen_expression(zero.stage, plan::frozen_bytes(bytes, zero));
  const auto frozen_pool = static_cast<std::size_t>(zero.stage == 3 ? plan::state_placement(zero).params
                                                                    : plan::StatePool::device);
  const auto text_of = [&](std::size_t pool) {
    const std::string text = expressions[pool].text();
    if (frozen == 0 || pool != frozen_pool) return text;
    return (text == "0" ? "" : text + " + ") + of_frozen.text("F");
  };
  const auto bytes_of = [&](std::size_t pool) {
    const double weights = of_frozen.bytes(static_cast<double>(frozen), grouped.shard_ranks);
    return expressions[pool].bytes(elems, grouped.shard_ranks) + (pool == frozen_pool ? weights : 0);
  };
  model.expression = text_of(0);
  if (secondary > 0) model.expression += " + secondary shards (hpZ)";
  model.bytes_per_rank = std::llround(bytes_of(0) + secondary);
  for (std::size_t i = 1; i < expressions.size(); ++i) {
    MemoryModel::Offloaded pool;
    pool.pool = static_cast<ev::MemoryPool>(i);
    pool.expression = text_of(i);
    pool.bytes_per_rank = std::llround(bytes_of(i));
    for (const RankSummary& rank : summary.ranks) {
      const auto peak = store.model_state_peak(rank.rank, pool.pool);
      if (!peak) continue;
      const std::int64_t measured = model_state_bytes(*peak, tables.stage);
      if (pool.measured_bytes_per_rank && measured <= *pool.measured_bytes_per_rank) continue;
      pool.measured_bytes_per_rank = measured;
      if (zero.zenflow) pool.parts = zenflow_on_host(*peak, bytes, zero, elems / grouped.shard_ranks);
    }
    if (pool.bytes_per_rank > 0 || pool.measured_bytes_per_rank.value_or(0) > 0) {
      model.offloaded.push_back(std::move(pool));
    }
  }
}

/// The run's states with the padding of shards of equal size.
plan::ModelStates padded_states(const ev::RunTables& tables, const plan::StateBytes& bytes,
                                double shard_ranks) {
  std::vector<std::int64_t> elems;
  std::vector<bool> trainable;
  for (const ev::ParamInfo& param : tables.params) {
    elems.push_back(param.elems);
    trainable.push_back(!param.frozen);
  }
  const auto ranks = static_cast<std::uint32_t>(shard_ranks);
  plan::ModelStates states =
      plan::model_states(elems, static_cast<std::uint32_t>(tables.stage), ranks, bytes,
                         std::max<std::int64_t>(plan::kShardAlignmentBytes / bytes.param, 1), trainable);
  const plan::ZeroConfig zero = zero_of(tables);
  if (zero.stage == 3 && states.frozen > 0 && zero.quantized_nontrainable_weights) {
    states.frozen = plan::frozen_rest_bytes(elems, trainable, zero, ranks, bytes.param);
  }
  return states;
}

/// Whether every state in `sample` is of whole blocks. A runtime whose arenas do not round, or round to
/// something else, shows it here, and then nothing is said of rounding.
bool in_blocks(const store::MemorySample& sample, std::int64_t block) {
  for (const MemoryCategory category :
       {MemoryCategory::param_shard, MemoryCategory::param_gathered, MemoryCategory::grad_full,
        MemoryCategory::grad_shard, MemoryCategory::master_weight, MemoryCategory::momentum,
        MemoryCategory::variance}) {
    if (of(sample, category) % block != 0) return false;
  }
  return true;
}

/// What arenas add: each state is a buffer, of whole blocks; owned parameters lie among the
/// others.
std::int64_t rounding_of(const plan::ModelStates& states, const store::MemorySample& sample) {
  constexpr std::int64_t kBlock = 256;  // device::Arena::kAlignment
  if (!in_blocks(sample, kBlock)) return 0;
  std::int64_t sum = 0;
  for (const std::int64_t state : {states.param_owned + states.param_rest, states.gradient, states.master,
                                   states.momentum, states.variance, states.frozen}) {
    sum += (kBlock - state % kBlock) % kBlock;
  }
  return sum;
}

/// What `sample`, of the rank that holds most, has beside the expression.
void take_apart(const ev::RunTables& tables, const plan::StateBytes& bytes, double shard_ranks,
                const store::MemorySample& sample, MemoryModel& model) {
  if (tables.params.empty() || tables.stage < 0 || tables.stage > 3 || bytes.param <= 0) return;
  const auto add = [&](MemoryCause cause, std::int64_t extra) {
    if (extra != 0) model.parts.push_back({cause, extra});
  };
  const plan::ModelStates states = padded_states(tables, bytes, shard_ranks);
  const std::int64_t padding = states.total() - model.bytes_per_rank;
  const std::int64_t rounding = rounding_of(states, sample);
  // Below stage 2 the expression has them.
  const std::int64_t whole = tables.stage >= 2 ? of(sample, MemoryCategory::grad_full) : 0;
  add(MemoryCause::padding, padding);
  add(MemoryCause::rounding, rounding);
  add(MemoryCause::whole_gradients, whole);
  model.unexplained_bytes =
      *model.measured_bytes_per_rank - model.bytes_per_rank - padding - rounding - whole;
}

}  // namespace

const char* name_of(MemoryCause cause) noexcept {
  switch (cause) {
    case MemoryCause::padding:
      return "padding";
    case MemoryCause::rounding:
      return "rounding";
    case MemoryCause::whole_gradients:
      return "whole gradients";
    case MemoryCause::zenflow_chosen:
      return "states of chosen columns (ZenFlow)";
    case MemoryCause::zenflow_device_gradients:
      return "owned gradients on the device (ZenFlow)";
    case MemoryCause::zenflow_sums:
      return "accumulated gradients (ZenFlow)";
  }
  return "unknown";
}

const char* explain(MemoryCause cause) noexcept {
  switch (cause) {
    case MemoryCause::padding:
      return "shards of equal size: what fills the last ones";
    case MemoryCause::rounding:
      return "each state is a buffer of whole blocks of 256 bytes";
    case MemoryCause::whole_gradients:
      return "of modules whose gradients are computed and not reduced to their owners yet";
    case MemoryCause::zenflow_chosen:
      return "master weights, momentum and variance of what the device steps every time; host memory has "
             "them "
             "too";
    case MemoryCause::zenflow_device_gradients:
      return "the device scores and steps columns of them before they leave";
    case MemoryCause::zenflow_sums:
      return "fp32 sums of what waits for the CPU optimizer, two with overlap_step, beyond one set of "
             "gradients";
  }
  return "";
}

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
  const std::int64_t frozen = frozen_elems(tables);
  double expected = grouped.bytes(static_cast<double>(tables.elems - frozen));
  if (frozen > 0) {
    const plan::StateExpression weights = plan::frozen_expression(
        static_cast<std::uint32_t>(std::clamp(tables.stage, 0, 3)), plan::frozen_bytes(bytes, zero));
    model.expression += " + " + weights.text("F");
    expected += weights.bytes(static_cast<double>(frozen), grouped.shard_ranks) +
                grouped.secondary_bytes * static_cast<double>(frozen) / grouped.secondary_ranks;
  }
  model.bytes_per_rank = std::llround(expected);
  const bool offloaded = zero.offload_param.device != plan::OffloadDevice::none ||
                         zero.offload_optimizer.device != plan::OffloadDevice::none;
  if (offloaded) place_offloaded(store, summary, bytes, grouped, zero, model);
  const store::MemorySample* most = nullptr;
  for (const RankSummary& rank : summary.ranks) {
    if (!rank.model_state_peak) continue;
    const std::int64_t measured = model_state_bytes(*rank.model_state_peak, tables.stage);
    if (most != nullptr && measured <= *model.measured_bytes_per_rank) continue;
    model.measured_bytes_per_rank = measured;
    most = &*rank.model_state_peak;
  }
  if (most != nullptr && zero.zenflow && offloaded) {
    add_part(model.parts, MemoryCause::zenflow_chosen, optimizer_of(*most));
    add_part(model.parts, MemoryCause::zenflow_device_gradients, of(*most, MemoryCategory::grad_shard));
  }
  if (most != nullptr && !offloaded && grouped.secondary_bytes == 0) {
    take_apart(tables, bytes, grouped.shard_ranks, *most, model);
  }
  if (model.measured_bytes_per_rank && model.bytes_per_rank > 0) {
    model.excess_pct = 100.0 * (static_cast<double>(*model.measured_bytes_per_rank) /
                                    static_cast<double>(model.bytes_per_rank) -
                                1.0);
  }
  return model;
}

}  // namespace shardscope::analysis
