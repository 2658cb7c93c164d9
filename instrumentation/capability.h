// What a run can have recorded. A program that emits says which of these it knows how to record, so that a
// figure that is missing has a reason: the framework does not show it, or nothing of the kind happened.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "instrumentation/run_tables.h"

namespace shardscope::instrumentation {

/// Bits of RunTables::records, by number. Only ever appended.
enum class Capability : std::uint8_t {
  steps,
  micro_steps,
  phases,
  modules,
  param_status,
  layout,  ///< slices: which rank owns what
  fetch_waits,
  prefetches,
  prefetch_reasons,
  release_reasons,
  trace,
  fetch_counters,
  collectives,
  collective_ends,  ///< ends that are evidence, not only upper bounds
  collective_parts,
  groups,
  buckets,
  flush_reasons,
  reduce_waits,
  memory,  ///< by category
  allocator,
  transfers,
  optimizer,
  loss,
  grad_norm,
  learning_rate,
  loss_scale,
  tokens,
  data_waits,
  gates,
  kernels,
  nccl
};
inline constexpr std::uint8_t kCapabilityCount = 32;
inline constexpr std::uint64_t kAllCapabilities = (std::uint64_t{1} << kCapabilityCount) - 1;

[[nodiscard]] constexpr std::uint64_t bit_of(Capability capability) noexcept {
  return std::uint64_t{1} << static_cast<std::uint8_t>(capability);
}

/// As in `info --json`: "prefetch_reasons".
[[nodiscard]] constexpr const char* name_of(Capability capability) noexcept {
  constexpr std::array<const char*, kCapabilityCount> kNames = {"steps",
                                                                "micro_steps",
                                                                "phases",
                                                                "modules",
                                                                "param_status",
                                                                "layout",
                                                                "fetch_waits",
                                                                "prefetches",
                                                                "prefetch_reasons",
                                                                "release_reasons",
                                                                "trace",
                                                                "fetch_counters",
                                                                "collectives",
                                                                "collective_ends",
                                                                "collective_parts",
                                                                "groups",
                                                                "buckets",
                                                                "flush_reasons",
                                                                "reduce_waits",
                                                                "memory",
                                                                "allocator",
                                                                "transfers",
                                                                "optimizer",
                                                                "loss",
                                                                "grad_norm",
                                                                "learning_rate",
                                                                "loss_scale",
                                                                "tokens",
                                                                "data_waits",
                                                                "gates",
                                                                "kernels",
                                                                "nccl"};
  const auto index = static_cast<std::size_t>(capability);
  return index < kNames.size() ? kNames[index] : "unknown";
}

/// Why a run has nothing of a kind, in words: the reason it gave, else that its framework's adapter does not
/// record it. Nothing where the run does not say what it records, or says that it does.
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
