#include "app/analysis/memory.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

#include "app/analysis/param_groups.h"
#include "app/analysis/unrecorded.h"
#include "app/analysis/zero_settings.h"
#include "app/store/model_states.h"
#include "runtime/plan/gradient_buckets.h"
#include "runtime/plan/memory_model.h"
#include "runtime/plan/offload.h"
#include "runtime/plan/placed_states.h"

namespace shardscope::analysis {
namespace ev = shardscope::instrumentation;
namespace {

using ev::MemoryCategory;
using store::model_state_bytes;

std::int64_t of(const store::MemorySample& sample, MemoryCategory category) {
  return sample.bytes[static_cast<std::size_t>(category)];
}

std::int64_t optimizer_of(const store::MemorySample& sample) {
  return of(sample, MemoryCategory::master_weight) + of(sample, MemoryCategory::momentum) +
         of(sample, MemoryCategory::variance);
}

/// Elements of frozen parameters, which have weights only.
std::int64_t frozen_elems(const ev::RunTables& tables) {
  std::int64_t elems = 0;
  for (const ev::ParamInfo& param : tables.params) elems += param.frozen ? param.elems : 0;
  return elems;
}

/// nullopt if the recording has no parameters, or impossible sizes.
std::optional<plan::PlacedStates> placed_in(const ev::RunTables& tables, const plan::StateBytes& bytes,
                                            const plan::ZeroConfig& zero) {
  if (tables.params.empty() || tables.stage < 0 || tables.stage > 3 || bytes.param <= 0) return std::nullopt;
  plan::StateInput input;
  for (const ev::ParamInfo& param : tables.params) {
    input.param_elems.push_back(param.elems);
    input.trainable.push_back(!param.frozen);
  }
  input.groups = groups_of_params(tables);
  input.world = copy_size(tables);
  input.bytes = bytes;
  try {
    plan::PlacedStates placed = plan::placed_states(zero, input);
    // Our engine's stage 0 has a flat buffer with an even number of elements. A framework without
    // partitioning keeps parameters and states as separate tensors, without padding.
    if (tables.stage == 0 && !tables.framework.empty()) {
      placed.pools[static_cast<std::size_t>(plan::StatePool::device)] =
          plan::model_states(input.param_elems, 0, input.world, bytes, 1, input.trainable, input.groups);
    }
    return placed;
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

/// The largest peak over ranks in `pool`; sets `of_rank` to its rank.
std::optional<store::MemorySample> peak_of(const store::Store& store, const Summary& summary,
                                           ev::MemoryPool pool, std::int32_t stage, std::uint32_t& of_rank) {
  std::optional<store::MemorySample> most;
  for (const RankSummary& rank : summary.ranks) {
    const auto peak = pool == ev::MemoryPool::device ? rank.model_state_peak
                                                     : measured_model_states(store, rank.rank, pool);
    if (!peak) continue;
    if (most && model_state_bytes(*peak, stage) <= model_state_bytes(*most, stage)) continue;
    most = peak;
    of_rank = rank.rank;
  }
  return most;
}

/// Whether all states in `sample` are multiples of the block size. If not, the runtime's arenas do not round,
/// or round differently, and rounding is not reported.
bool in_blocks(const store::MemorySample& sample, std::int64_t block) {
  // Owned parameters and gradients may share a buffer with the others.
  const std::int64_t params =
      of(sample, MemoryCategory::param_shard) + of(sample, MemoryCategory::param_gathered);
  const std::int64_t gradients =
      of(sample, MemoryCategory::grad_full) + of(sample, MemoryCategory::grad_shard);
  return params % block == 0 && gradients % block == 0 &&
         of(sample, MemoryCategory::master_weight) % block == 0 &&
         of(sample, MemoryCategory::momentum) % block == 0 &&
         of(sample, MemoryCategory::variance) % block == 0;
}

/// Rounding added by arenas: each state is a buffer of whole blocks; owned parameters share one with the
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

/// The size of one buffer, rounded.
std::int64_t rounded(std::int64_t bytes, const store::MemorySample& sample) {
  plan::ModelStates one;
  one.gradient = bytes;
  return bytes + rounding_of(one, sample);
}

/// rounding_of() for one pool, plus parameters in buffers of their own.
std::int64_t rounding_in(const plan::PlacedStates& placed, plan::StatePool pool,
                         const store::MemorySample& sample) {
  const plan::ModelStates& states = placed.pools[static_cast<std::size_t>(pool)];
  if (pool == plan::StatePool::nvme) {
    return in_blocks(sample, plan::kSwapBlockBytes) ? placed.nvme_blocks - states.total() : 0;
  }
  std::int64_t sum = rounding_of(states, sample);
  if (pool != plan::StatePool::device) return sum;
  sum += rounded(placed.pieces, sample) - placed.pieces;
  for (const std::int64_t shard : placed.secondary_shards) sum += rounded(shard, sample) - shard;
  return sum;
}

/// DeepSpeed (stage 2 without offloading) keeps whole gradients of partly owned parameters until its step:
/// bytes by which these exceed the owned parts.
std::optional<std::int64_t> cut_gradients_of(const ev::RunTables& tables, const plan::ZeroConfig& zero,
                                             std::uint32_t rank) {
  // 16-bit gradients are cast at the step to copies that take more than these.
  const bool kept = tables.framework.starts_with("DeepSpeed") && tables.grad_bytes == 4 &&
                    zero.offload_optimizer.device == plan::OffloadDevice::none;
  if (tables.stage != 2 || !kept || tables.slices.empty()) return std::nullopt;
  std::vector<bool> counted(tables.params.size());
  std::int64_t elems = 0;
  for (const ev::SliceInfo& slice : tables.slices) {
    const bool own = slice.rank == rank && slice.elems > 0 && slice.param < counted.size();
    if (!own || tables.params[slice.param].frozen) continue;
    elems -= slice.elems;
    if (!counted[slice.param]) elems += tables.params[slice.param].elems;
    counted[slice.param] = true;
  }
  return elems * std::int64_t{tables.grad_bytes};
}

/// Facts about the run that its configuration does not contain.
struct Holder {
  std::optional<std::int64_t> cut_gradients;  ///< cut_gradients_of()
  bool fsdp2 = false;
};
Holder holder_in(const ev::RunTables& tables, const plan::ZeroConfig& zero, std::uint32_t rank) {
  return {cut_gradients_of(tables, zero, rank), tables.framework.starts_with("FSDP2")};
}

/// Memory in `pool` beyond `expected` bytes, by cause.
struct Extras {
  std::vector<MemoryPart> parts;
  std::int64_t unexplained = 0;
};
Extras take_apart(const plan::ZeroConfig& zero, const plan::StateBytes& bytes,
                  const plan::PlacedStates& placed, plan::StatePool pool, std::int64_t expected,
                  const store::MemorySample& sample, const Holder& holder = {}) {
  Extras extras;
  extras.unexplained = model_state_bytes(sample, static_cast<std::int32_t>(zero.stage)) - expected;
  const auto add = [&extras](MemoryCause cause, std::int64_t extra) {
    if (extra != 0) extras.parts.push_back({cause, extra});
    extras.unexplained -= extra;
  };
  const plan::ModelStates& states = placed.pools[static_cast<std::size_t>(pool)];
  const bool device = pool == plan::StatePool::device;
  const std::int64_t scales = placed.scales[static_cast<std::size_t>(pool)];
  const std::int64_t unquantized = placed.unquantized[static_cast<std::size_t>(pool)];
  add(MemoryCause::scales, scales);
  add(MemoryCause::unquantized, unquantized);
  add(MemoryCause::padding,
      states.total() + (device ? placed.secondary : 0) - scales - unquantized - expected);
  add(MemoryCause::rounding, rounding_in(placed, pool, sample));
  if (device) {
    add(MemoryCause::pieces, placed.pieces);
    std::int64_t copies = 0;
    for (const std::int64_t shard : placed.secondary_shards) copies += rounded(shard, sample);
    add(MemoryCause::no_secondary,
        std::min<std::int64_t>(of(sample, MemoryCategory::param_secondary) - copies, 0));
    // Below stage 2 the formula includes them; with sums of another type those in flight are extra.
    const std::int64_t whole = of(sample, MemoryCategory::grad_full);
    if (zero.stage >= 2) add(MemoryCause::whole_gradients, whole);
    if (holder.fsdp2) {
      add(MemoryCause::secondary_shards, of(sample, MemoryCategory::param_secondary));
      // Only while whole gradients wait for their reduction: else nothing says that more will come.
      if (whole > 0)
        add(MemoryCause::later_gradients,
            std::min<std::int64_t>(of(sample, MemoryCategory::grad_shard) - states.gradient, 0));
    }
    if (holder.cut_gradients) {
      const std::int64_t beyond =
          std::max<std::int64_t>(of(sample, MemoryCategory::grad_shard) - states.gradient, 0);
      const std::int64_t cut = std::min(*holder.cut_gradients, beyond);
      add(MemoryCause::cut_gradients, cut);
      add(MemoryCause::earlier_gradients, beyond - cut);
    } else if (plan::copies_gradients_at_step(zero)) {
      add(MemoryCause::gradient_copies, of(sample, MemoryCategory::grad_shard) +
                                            (zero.stage < 2 ? whole : 0) - rounded(states.gradient, sample));
    } else if (zero.stage < 2 && bytes.gradient != bytes.param) {
      add(MemoryCause::whole_gradients, std::max<std::int64_t>(whole - rounded(states.gradient, sample), 0));
    }
  }
  if (!zero.zenflow) return extras;
  add(MemoryCause::zenflow_chosen, optimizer_of(sample) - rounded(states.master, sample) -
                                       rounded(states.momentum, sample) - rounded(states.variance, sample));
  const std::int64_t owned = of(sample, MemoryCategory::grad_shard);
  if (device) {
    add(MemoryCause::zenflow_device_gradients, owned);
  } else if (owned > 0) {
    add(MemoryCause::zenflow_sums, owned - rounded(states.gradient, sample));
  }
  return extras;
}

/// The formulas of an offloaded run: less on the device, the rest in the other pools.
void place_offloaded(const store::Store& store, const Summary& summary, const plan::StateBytes& bytes,
                     const plan::GroupedStates& grouped, const plan::ZeroConfig& zero,
                     const std::optional<plan::PlacedStates>& placed, MemoryModel& model) {
  const ev::RunTables& tables = store.tables();
  const std::int64_t frozen = frozen_elems(tables);
  const auto elems = static_cast<double>(tables.elems - frozen);
  plan::StatePlacement placement = plan::state_placement(zero);
  std::array<double, plan::kStatePools> frozen_share{};
  frozen_share[static_cast<std::size_t>(zero.stage == 3 ? placement.params : plan::StatePool::device)] = 1;
  if (placed) {
    placement.ratio = placed->offloaded_share;
    if (zero.stage == 3) placement.param_share = placed->param_share;
    if (zero.stage == 3 && frozen > 0) frozen_share = placed->frozen_share;
  }
  const auto expressions = plan::placed_expressions(zero.stage, bytes, placement);
  const double secondary = grouped.secondary_bytes * elems / grouped.secondary_ranks +
                           plan::frozen_secondary(zero, bytes).bytes * static_cast<double>(frozen);
  const plan::StateExpression weights = plan::frozen_expression(zero.stage, plan::frozen_bytes(bytes, zero));
  const auto frozen_in = [&](std::size_t pool) {
    return plan::PoolExpression{static_cast<double>(weights.whole) * frozen_share[pool],
                                static_cast<double>(weights.sharded) * frozen_share[pool]};
  };
  const auto text_of = [&](std::size_t pool) {
    const std::string text = expressions[pool].text();
    if (frozen == 0 || frozen_share[pool] == 0) return text;
    return (text == "0" ? "" : text + " + ") + frozen_in(pool).text("F");
  };
  const auto bytes_of = [&](std::size_t pool) {
    return expressions[pool].bytes(elems, grouped.shard_ranks) +
           frozen_in(pool).bytes(static_cast<double>(frozen), grouped.shard_ranks);
  };
  model.expression = text_of(0);
  if (secondary > 0) model.expression += " + secondary shards (hpZ)";
  model.bytes_per_rank = std::llround(bytes_of(0) + secondary);
  for (std::size_t i = 1; i < expressions.size(); ++i) {
    MemoryModel::Offloaded pool;
    pool.pool = static_cast<ev::MemoryPool>(i);
    pool.expression = text_of(i);
    pool.bytes_per_rank = std::llround(bytes_of(i));
    std::uint32_t rank = 0;
    if (const auto peak = peak_of(store, summary, pool.pool, tables.stage, rank)) {
      pool.measured_bytes_per_rank = model_state_bytes(*peak, tables.stage);
      if (placed) {
        Extras extras =
            take_apart(zero, bytes, *placed, static_cast<plan::StatePool>(i), pool.bytes_per_rank, *peak);
        pool.parts = std::move(extras.parts);
        pool.unexplained_bytes = extras.unexplained;
      }
    }
    if (pool.bytes_per_rank > 0 || pool.measured_bytes_per_rank.value_or(0) > 0) {
      model.offloaded.push_back(std::move(pool));
    }
  }
}

/// The whole formula of `model` is in host memory; the device has gradients in flight.
void place_on_host(const store::Store& store, const Summary& summary, const plan::StateBytes& bytes,
                   const plan::ZeroConfig& zero, const std::optional<plan::PlacedStates>& placed,
                   MemoryModel& model) {
  const std::int32_t stage = store.tables().stage;
  MemoryModel::Offloaded host;
  host.pool = ev::MemoryPool::host;
  host.expression = std::exchange(model.expression, "0");
  host.bytes_per_rank = std::exchange(model.bytes_per_rank, 0);
  std::uint32_t rank = 0;
  if (const auto peak = peak_of(store, summary, host.pool, stage, rank)) {
    host.measured_bytes_per_rank = model_state_bytes(*peak, stage);
    if (placed) {
      // Placed as without offloading: the same states, all in one pool.
      Extras extras = take_apart(zero, bytes, *placed, plan::StatePool::device, host.bytes_per_rank, *peak);
      host.parts = std::move(extras.parts);
      host.unexplained_bytes = extras.unexplained;
    }
  }
  model.offloaded.push_back(std::move(host));
  if (const auto most = peak_of(store, summary, ev::MemoryPool::device, stage, model.measured_rank)) {
    model.measured_at_ns = most->at_ns;
    model.measured_bytes_per_rank = model_state_bytes(*most, stage);
    const std::int64_t whole = of(*most, MemoryCategory::grad_full);
    if (whole > 0) model.parts.push_back({MemoryCause::whole_gradients, whole});
    model.unexplained_bytes = *model.measured_bytes_per_rank - whole;
  }
}

}  // namespace

std::optional<store::MemorySample> measured_model_states(const store::Store& store, std::uint32_t rank,
                                                         ev::MemoryPool pool, bool* in_part) {
  auto peak = store.model_state_peak(rank, pool);
  if (!peak) return std::nullopt;
  const Recorded before = recorded_in(store, rank, store::Store::kBegin, peak->at_ns);
  const bool whole = before.whole(ev::Detail::params);
  if (in_part != nullptr) *in_part = !whole;
  return whole ? peak : std::nullopt;
}

MemoryModel model_memory(const store::Store& store, const Summary& summary) {
  MemoryModel model;
  if (!store.has_tables()) return model;
  const ev::RunTables& tables = store.tables();
  const plan::StateBytes bytes = state_bytes_of(tables);
  const plan::StateExpression expression =
      plan::state_expression(static_cast<std::uint32_t>(std::clamp(tables.stage, 0, 3)), bytes);
  plan::ZeroConfig zero = zero_of(tables);
  // Attached programs report host memory as one pool, and DeepSpeed pins nothing unless configured.
  if (!tables.framework.empty()) zero.offload_param.pin_memory = zero.offload_optimizer.pin_memory = false;
  const plan::GroupedStates grouped = plan::grouped_states(expression, zero, bytes.param, copy_size(tables));
  model.expression = grouped.text;
  const std::int64_t frozen = frozen_elems(tables);
  double expected = grouped.bytes(static_cast<double>(tables.elems - frozen));
  if (frozen > 0) {
    const plan::StateExpression weights = plan::frozen_expression(
        static_cast<std::uint32_t>(std::clamp(tables.stage, 0, 3)), plan::frozen_bytes(bytes, zero));
    const plan::FrozenSecondary copies = plan::frozen_secondary(zero, bytes);
    if (!copies.text.empty()) model.expression += " + " + copies.text;
    model.expression += " + " + weights.text("F");
    expected += weights.bytes(static_cast<double>(frozen), grouped.shard_ranks) +
                copies.bytes * static_cast<double>(frozen);
  }
  model.bytes_per_rank = std::llround(expected);
  const bool offloaded = zero.offload_param.device != plan::OffloadDevice::none ||
                         zero.offload_optimizer.device != plan::OffloadDevice::none;
  const std::optional<plan::PlacedStates> placed = placed_in(tables, bytes, zero);
  if (keeps_states_on_host(tables.config_json)) {
    place_on_host(store, summary, bytes, zero, placed, model);
    return model;
  }
  if (offloaded) place_offloaded(store, summary, bytes, grouped, zero, placed, model);
  if (const auto most = peak_of(store, summary, ev::MemoryPool::device, tables.stage, model.measured_rank)) {
    model.measured_at_ns = most->at_ns;
    model.measured_bytes_per_rank = model_state_bytes(*most, tables.stage);
    if (placed) {
      Extras extras = take_apart(zero, bytes, *placed, plan::StatePool::device, model.bytes_per_rank, *most,
                                 holder_in(tables, zero, model.measured_rank));
      model.parts = std::move(extras.parts);
      model.unexplained_bytes = extras.unexplained;
    }
  }
  if (model.measured_bytes_per_rank && model.bytes_per_rank > 0) {
    model.excess_pct = 100.0 * (static_cast<double>(*model.measured_bytes_per_rank) /
                                    static_cast<double>(model.bytes_per_rank) -
                                1.0);
  }
  return model;
}

store::MemorySample highest_memory(const store::Store& store, std::uint32_t rank, ev::MemoryPool pool,
                                   std::int64_t begin_ns, std::int64_t end_ns) {
  store::MemorySample now = store.memory_at(rank, pool, begin_ns);
  now.at_ns = begin_ns;
  store::MemorySample most = now;
  store.for_each_instant(rank, begin_ns + 1, end_ns, [&](const ev::Event& event) {
    if (event.kind != ev::EventKind::memory_alloc && event.kind != ev::EventKind::memory_free) return;
    const auto change = ev::as<ev::EventKind::memory_alloc>(event);
    if (change.pool != pool) return;
    now.at_ns = static_cast<std::int64_t>(event.ticks);
    now.bytes[static_cast<std::size_t>(change.category)] +=
        event.kind == ev::EventKind::memory_alloc ? change.bytes : -change.bytes;
    if (now.total() > most.total()) most = now;
  });
  return most;
}

std::optional<DevicePeak> largest_device_peak(const Summary& summary) {
  std::optional<DevicePeak> largest;
  for (const RankSummary& rank : summary.ranks) {
    const auto at = rank.memory_peak.find(instrumentation::MemoryPool::device);
    if (at == rank.memory_peak.end()) continue;
    if (!largest || at->second.total() > largest->sample->total()) largest = {&rank, &at->second};
  }
  return largest;
}

std::optional<double> device_peak_mib(const Summary& summary) {
  const auto peak = largest_device_peak(summary);
  if (!peak) return std::nullopt;
  return static_cast<double>(peak->sample->total()) / (1024.0 * 1024.0);
}

const RankSummary* most_outside(const Summary& summary) {
  const RankSummary* most = nullptr;
  for (const RankSummary& rank : summary.ranks) {
    if (rank.outside && (most == nullptr || rank.outside->bytes > most->outside->bytes)) most = &rank;
  }
  return most;
}

}  // namespace shardscope::analysis
