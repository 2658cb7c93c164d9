// Device memory of a rank outside of its accounted categories (event outside_memory).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/analysis/framework.h"
#include "app/store/store.h"

namespace shardscope::analysis {

/// The largest sample of a rank's device.
struct OutsidePeak {
  std::int64_t bytes = 0;
  std::int64_t in_use_bytes = 0;  ///< accounted memory included, from the same sample
  std::int64_t at_ns = 0;
};
/// nullopt if it was not sampled.
[[nodiscard]] std::optional<OutsidePeak> outside_peak(const store::Store& store, std::uint32_t rank);

/// What it may contain, by the program that sampled it and the device: "CUDA's context and kernels, ...".
[[nodiscard]] const char* outside_contents(Framework kind, const std::string& framework,
                                           const std::string& device);
[[nodiscard]] inline const char* outside_contents(const instrumentation::RunTables& tables) {
  return outside_contents(framework_of(tables), tables.framework, tables.device);
}

}  // namespace shardscope::analysis
