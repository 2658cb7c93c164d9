// Formats numbers for display: three or four digits with a matching unit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/store/clock_drift.h"

namespace shardscope::analysis {

/// Number and unit separately, so that a view can right-align the number and mute the unit.
struct Quantity {
  std::string number;
  std::string unit;
  [[nodiscard]] std::string text() const;
};

[[nodiscard]] Quantity duration(std::int64_t ns);  ///< "1.42 ms"; from 1000 s on "0:16:40 h"
[[nodiscard]] Quantity bytes(std::int64_t count);  ///< binary units: "1.50 MiB"

/// The same as one string.
[[nodiscard]] std::string time_text(std::int64_t ns);
[[nodiscard]] std::string bytes_text(std::int64_t count);
[[nodiscard]] std::string count_text(double value);
/// "12.3 ± 0.4", "12.3" without a spread, integers from 100 000 on; a dash for nullopt.
[[nodiscard]] std::string with_spread(const std::optional<double>& figure, double spread);
/// Three significant digits and k, M, G or T, no trailing zeros: "48.1M", "50M", "999".
[[nodiscard]] std::string elements_text(std::int64_t count);
/// "-80.1 ± 2.3" in microseconds per second (ppm), one decimal: 0.1 ppm is less than the variation of a
/// crystal.
[[nodiscard]] std::string ppm_text(const store::ClockDrift& drift);

}  // namespace shardscope::analysis
