#include "app/analysis/quantity_text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace shardscope::analysis {
namespace {

/// Three significant digits for 1 <= |value| < 1000; four where that avoids "1000".
std::string three_digits(double value) {
  const double size = std::fabs(value);
  return fmt::format(fmt::runtime(size < 9.995 ? "{:.2f}" : size < 99.95 ? "{:.1f}" : "{:.0f}"), value);
}

}  // namespace

std::string Quantity::text() const { return unit.empty() ? number : number + " " + unit; }

Quantity duration(std::int64_t ns) {
  const double value = static_cast<double>(ns);
  const double magnitude = std::fabs(value);
  if (magnitude < 1000) return {std::to_string(ns), "ns"};
  if (magnitude < 999.5e3) return {three_digits(value / 1e3), "µs"};
  if (magnitude < 999.5e6) return {three_digits(value / 1e6), "ms"};
  if (magnitude < 999.5e9) return {three_digits(value / 1e9), "s"};
  const auto seconds = static_cast<std::int64_t>(std::llround(magnitude / 1e9));
  return {
      fmt::format("{}{}:{:02}:{:02}", value < 0 ? "-" : "", seconds / 3600, seconds / 60 % 60, seconds % 60),
      "h"};
}

Quantity bytes(std::int64_t count) {
  static constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(count);
  std::size_t unit = 0;
  while (std::fabs(value) >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return {unit == 0 ? std::to_string(count) : three_digits(value), kUnits[unit]};
}

std::string time_text(std::int64_t ns) { return duration(ns).text(); }

std::string bytes_text(std::int64_t count) { return bytes(count).text(); }

std::string count_text(double value) {
  if (!std::isfinite(value)) return "—";
  std::string text = fmt::format("{:.0f}", value);
  for (int at = static_cast<int>(text.size()) - 3; at > (text[0] == '-' ? 1 : 0); at -= 3) {
    text.insert(static_cast<std::size_t>(at), "\u202f");
  }
  return text;
}

std::string with_spread(const std::optional<double>& figure, double spread) {
  if (!figure) return "—";
  const bool whole = *figure >= 1e5;
  std::string text = whole ? count_text(*figure) : fmt::format("{:.4g}", *figure);
  if (spread > 0) text += " ± " + (whole ? count_text(spread) : fmt::format("{:.2g}", spread));
  return text;
}

std::string elements_text(std::int64_t count) {
  static constexpr std::array kSuffixes{"", "k", "M", "G", "T"};
  double value = static_cast<double>(count);
  std::size_t suffix = 0;
  while (std::fabs(value) >= 999.5 && suffix + 1 < kSuffixes.size()) {
    value /= 1000;
    ++suffix;
  }
  if (suffix == 0) return std::to_string(count);
  std::string digits = three_digits(value);
  if (digits.find('.') != std::string::npos) {
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.back() == '.') digits.pop_back();
  }
  return digits + kSuffixes[suffix];
}

std::string ppm_text(const store::ClockDrift& drift) {
  const double tenths = std::round(drift.ppb / 100);
  return fmt::format("{:.1f} ± {:.1f}", tenths == 0 ? 0.0 : tenths / 10, drift.bound_ppb / 1000);
}

}  // namespace shardscope::analysis
