#include "app/analysis/quantity_text.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace shardscope::analysis {
namespace {

std::string digits(double value) {
  const double size = std::abs(value);
  return fmt::format(fmt::runtime(size >= 100 ? "{:.0f}" : size >= 10 ? "{:.1f}" : "{:.2f}"), value);
}

}  // namespace

std::string time_text(std::int64_t ns) {
  const double t = static_cast<double>(ns), size = std::abs(t);
  if (size < 1e3) return fmt::format("{} ns", ns);
  if (size < 1e6) return digits(t * 1e-3) + " µs";
  if (size < 1e9) return digits(t * 1e-6) + " ms";
  return digits(t * 1e-9) + " s";
}

std::string bytes_text(std::int64_t bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (std::abs(value) >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : digits(value) + " " + units[unit];
}

std::string count_text(double value) {
  if (!std::isfinite(value)) return "—";
  std::string text = fmt::format("{:.0f}", value);
  for (int at = static_cast<int>(text.size()) - 3; at > (text[0] == '-' ? 1 : 0); at -= 3) {
    text.insert(static_cast<std::size_t>(at), "\u202f");
  }
  return text;
}

std::string ppm_text(const store::ClockDrift& drift) {
  const double tenths = std::round(drift.ppb / 100);
  return fmt::format("{:.1f} ± {:.1f}", tenths == 0 ? 0.0 : tenths / 10, drift.bound_ppb / 1000);
}

}  // namespace shardscope::analysis
