#include "app/gui/model/memory_stack.h"

#include <algorithm>
#include <array>
#include <functional>

#include "app/analysis/memory.h"
#include "app/analysis/quantity_text.h"
#include "app/store/model_states.h"

namespace shardscope::gui {
namespace {

using C = ev::MemoryCategory;
constexpr std::array kOrder{C::param_shard,   C::param_secondary, C::master_weight, C::momentum,
                            C::variance,      C::grad_shard,      C::grad_full,     C::param_gathered,
                            C::gather_buffer, C::reduce_bucket,   C::quantization,  C::swap_buffer,
                            C::activation,    C::input,           C::temporary,     C::other};
static_assert(kOrder.size() == ev::kMemoryCategoryCount);

}  // namespace

std::span<const ev::MemoryCategory> stack_order() noexcept { return kOrder; }

std::int32_t stage_of(const store::Store& store) { return store.has_tables() ? store.tables().stage : 3; }

std::string ModelStatePeak::text() const { return "model states at most " + analysis::bytes_text(bytes); }

std::optional<ModelStatePeak> model_state_peak(const store::Store& store, std::uint32_t rank,
                                               ev::MemoryPool pool) {
  const auto peak = analysis::measured_model_states(store, rank, pool);
  if (!peak) return std::nullopt;
  return ModelStatePeak{store::model_state_bytes(*peak, stage_of(store)), peak->at_ns};
}

std::vector<StackRun> stack_runs(std::span<const store::MemorySample> columns) {
  std::vector<StackRun> runs;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!runs.empty() && runs.back().bytes == columns[i].bytes) {
      runs.back().last = i + 1;
    } else {
      runs.push_back({i, i + 1, columns[i].bytes});
    }
  }
  return runs;
}

std::vector<ev::MemoryCategory> used_categories(std::span<const store::MemorySample> columns) {
  std::vector<ev::MemoryCategory> out;
  for (const C category : kOrder) {
    for (const store::MemorySample& column : columns) {
      if (column.bytes[static_cast<std::size_t>(category)] != 0) {
        out.push_back(category);
        break;
      }
    }
  }
  return out;
}

std::vector<ev::MemoryCategory> largest_categories(std::span<const ev::MemoryCategory> used,
                                                   const store::MemorySample& now,
                                                   const std::optional<store::MemorySample>& peak,
                                                   int lines) {
  const auto fit = static_cast<std::size_t>(std::max(lines, 1));
  std::vector<C> out(used.begin(), used.end());
  if (out.size() <= fit) return out;
  const auto size = [&](C category) {
    const auto i = static_cast<std::size_t>(category);
    return std::max(now.bytes[i], peak ? peak->bytes[i] : 0);
  };
  std::vector<C> by_size = out;
  std::ranges::stable_sort(by_size, std::greater{}, size);
  by_size.resize(fit - 1);
  std::erase_if(out, [&](C category) { return std::ranges::find(by_size, category) == by_size.end(); });
  return out;
}

std::vector<ev::MemoryPool> used_pools(const store::Store& store, std::uint32_t rank) {
  std::vector<ev::MemoryPool> out;
  for (std::uint8_t pool = 0; pool < ev::kMemoryPoolCount; ++pool) {
    const auto peak = store.memory_peak(rank, static_cast<ev::MemoryPool>(pool));
    if (peak && peak->total() > 0) out.push_back(static_cast<ev::MemoryPool>(pool));
  }
  return out;
}

}  // namespace shardscope::gui
