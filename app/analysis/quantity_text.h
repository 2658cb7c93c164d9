// Numbers in sentences of reports and findings.
#pragma once

#include <cstdint>
#include <string>

#include "app/store/clock_drift.h"

namespace shardscope::analysis {

/// 3-4 significant digits with the unit that gives them: "12.3 ms", "1.25 MiB".
[[nodiscard]] std::string time_text(std::int64_t ns);
[[nodiscard]] std::string bytes_text(std::int64_t bytes);
[[nodiscard]] std::string count_text(double value);
/// "-80.1 ± 2.3" in microseconds per second (ppm), one decimal: a part in ten million is less than a crystal
/// wanders.
[[nodiscard]] std::string ppm_text(const store::ClockDrift& drift);

}  // namespace shardscope::analysis
