// Values from a run's static tables that are needed to interpret its events.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "app/store/store_rows.h"
#include "instrumentation/emitter.h"

namespace shardscope::store {

/// Times beyond this (73 years) are damage; rejecting them keeps every sum of times in range.
inline constexpr std::int64_t kMaxTimeNs = std::int64_t{1} << 61;
[[nodiscard]] constexpr bool plausible(std::int64_t ns) noexcept {
  return ns > -kMaxTimeNs && ns < kMaxTimeNs;
}

/// Parent by module id; kNoId at the root.
[[nodiscard]] std::vector<std::uint32_t> module_parents(const ev::RunTables& tables);
/// is_model_state() of each category.
[[nodiscard]] std::array<bool, ev::kMemoryCategoryCount> model_state_categories(std::int32_t stage);
/// State of a parameter before its first change.
[[nodiscard]] ParamState initial_state(std::int32_t stage);

}  // namespace shardscope::store
