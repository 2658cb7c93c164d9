// Memory that a rank takes beside what it counts by category (outside_memory).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/analysis/framework.h"
#include "app/store/store.h"

namespace shardscope::analysis {

/// Of the device, when it was most.
struct OutsidePeak {
  std::int64_t bytes = 0;
  std::int64_t in_use_bytes = 0;  ///< with what is counted, by the same figure
  std::int64_t at_ns = 0;
};
/// Nothing where none was sampled.
[[nodiscard]] std::optional<OutsidePeak> outside_peak(const store::Store& store, std::uint32_t rank);

/// What may be in it, by who sampled it and on which device: "CUDA's context and kernels, ...".
[[nodiscard]] const char* outside_contents(Framework kind, const std::string& framework,
                                           const std::string& device);
[[nodiscard]] inline const char* outside_contents(const instrumentation::RunTables& tables) {
  return outside_contents(framework_of(tables), tables.framework, tables.device);
}

}  // namespace shardscope::analysis
