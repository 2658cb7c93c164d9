// Capabilities: what a program can record of a run. A missing figure then has a reason: either it is not
// recorded, or no such event happened.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "instrumentation/run_tables.h"

namespace shardscope::instrumentation {

// Bits of RunTables::records, in order; only ever appended. `layout`: slices, which rank owns which elements;
// `collective_ends`: measured ends, not only upper bounds; `memory`: by category; `not_finite_gradients`: the
// first parameter whose gradient was not finite.
// clang-format off
#define SHARDSCOPE_CAPABILITIES(CAPABILITY) \
  CAPABILITY(steps) CAPABILITY(micro_steps) CAPABILITY(phases) CAPABILITY(modules) \
  CAPABILITY(param_status) CAPABILITY(layout) CAPABILITY(fetch_waits) CAPABILITY(prefetches) \
  CAPABILITY(prefetch_reasons) CAPABILITY(release_reasons) CAPABILITY(trace) CAPABILITY(fetch_counters) \
  CAPABILITY(collectives) CAPABILITY(collective_ends) CAPABILITY(collective_parts) CAPABILITY(groups) \
  CAPABILITY(buckets) CAPABILITY(flush_reasons) CAPABILITY(reduce_waits) CAPABILITY(memory) \
  CAPABILITY(allocator) CAPABILITY(transfers) CAPABILITY(optimizer) CAPABILITY(loss) \
  CAPABILITY(grad_norm) CAPABILITY(learning_rate) CAPABILITY(loss_scale) CAPABILITY(tokens) \
  CAPABILITY(data_waits) CAPABILITY(gates) CAPABILITY(kernels) CAPABILITY(nccl) \
  CAPABILITY(not_finite_gradients)
// clang-format on

enum class Capability : std::uint8_t {
#define SHARDSCOPE_CAPABILITY(name) name,
  SHARDSCOPE_CAPABILITIES(SHARDSCOPE_CAPABILITY)
#undef SHARDSCOPE_CAPABILITY
};
/// As in `info --json`, for example "prefetch_reasons".
inline constexpr std::array kCapabilityNames = {
#define SHARDSCOPE_CAPABILITY(name) #name,
    SHARDSCOPE_CAPABILITIES(SHARDSCOPE_CAPABILITY)
#undef SHARDSCOPE_CAPABILITY
};
#undef SHARDSCOPE_CAPABILITIES
inline constexpr std::uint8_t kCapabilityCount = kCapabilityNames.size();
inline constexpr std::uint64_t kAllCapabilities = (std::uint64_t{1} << kCapabilityCount) - 1;

[[nodiscard]] constexpr std::uint64_t bit_of(Capability capability) noexcept {
  return std::uint64_t{1} << static_cast<std::uint8_t>(capability);
}

[[nodiscard]] constexpr const char* name_of(Capability capability) noexcept {
  const auto index = static_cast<std::size_t>(capability);
  return index < kCapabilityNames.size() ? kCapabilityNames[index] : "unknown";
}

/// Why a run has no data of this kind: the reason that it gave, else that its framework's adapter does not
/// record it. nullopt if the run records it, or does not report its capabilities.
[[nodiscard]] inline std::optional<std::string> why_not_recorded(const std::string& framework,
                                                                 std::uint64_t records,
                                                                 const std::vector<NotRecorded>& not_recorded,
                                                                 Capability capability) {
  const std::uint64_t bit = bit_of(capability);
  for (const NotRecorded& lack : not_recorded) {
    if ((lack.what & bit) != 0) return lack.why;
  }
  if (records == 0 || (records & bit) != 0) return std::nullopt;
  return (framework.empty() ? "the program that was recorded" : framework) + " is not recorded with " +
         name_of(capability);
}
[[nodiscard]] inline std::optional<std::string> why_not_recorded(const RunTables& tables,
                                                                 Capability capability) {
  return why_not_recorded(tables.framework, tables.records, tables.not_recorded, capability);
}

}  // namespace shardscope::instrumentation
