// Numbers as people read them: three or four digits and the unit that gives them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/store/clock_drift.h"

namespace shardscope::analysis {

/// A number and its unit apart, so that a view can right-align the one and mute the other.
struct Quantity {
  std::string number;
  std::string unit;
  [[nodiscard]] std::string text() const;
};

[[nodiscard]] Quantity duration(std::int64_t ns);  ///< "1.42 ms"; from 1000 s on "0:16:40 h"
[[nodiscard]] Quantity bytes(std::int64_t count);  ///< binary units: "1.50 MiB"

/// The same as one text.
[[nodiscard]] std::string time_text(std::int64_t ns);
[[nodiscard]] std::string bytes_text(std::int64_t count);
[[nodiscard]] std::string count_text(double value);
/// "12.3 ± 0.4", "12.3" without a spread, from 100 000 on whole; a dash where there is no figure.
[[nodiscard]] std::string with_spread(const std::optional<double>& figure, double spread);
/// Three significant digits and k, M, G or T, no trailing zeros: "48.1M", "50M", "999".
[[nodiscard]] std::string elements_text(std::int64_t count);
/// "-80.1 ± 2.3" in microseconds per second (ppm), one decimal: a part in ten million is less than a crystal
/// wanders.
[[nodiscard]] std::string ppm_text(const store::ClockDrift& drift);

}  // namespace shardscope::analysis
