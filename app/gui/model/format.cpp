#include "app/gui/model/format.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace shardscope::gui {
namespace {

/// No-break space: JetBrains Mono has no thin space.
constexpr const char* kGroupSpace = "\u00A0";

std::string print(const char* format, double value) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, value);
  return buffer.data();
}

/// Three significant digits for 1 <= |value| < 1000; four where that avoids "1000".
std::string three_digits(double value) {
  const double magnitude = std::fabs(value);
  if (magnitude < 9.995) return print("%.2f", value);
  if (magnitude < 99.95) return print("%.1f", value);
  return print("%.0f", value);
}

}  // namespace

Quantity milliseconds(std::optional<double> ms) {
  if (!ms || !std::isfinite(*ms)) return {kMissing, ""};
  return duration(static_cast<std::int64_t>(std::llround(*ms * 1e6)));
}

Quantity count(double value, const char* unit) {
  if (!std::isfinite(value)) return {kMissing, unit};
  static constexpr std::array kSuffixes{"", "k", "M", "G", "T"};
  std::size_t suffix = 0;
  while (std::fabs(value) >= 999.5 && suffix + 1 < kSuffixes.size()) {
    value /= 1000;
    ++suffix;
  }
  const bool whole = suffix == 0 && value == std::floor(value);
  return {(whole ? print("%.0f", value) : three_digits(value)) + kSuffixes[suffix], unit};
}

Quantity percent(std::optional<double> value) {
  if (!value || !std::isfinite(*value)) return {kMissing, ""};
  return {print(std::fabs(*value) < 9.995 ? "%.1f" : "%.0f", *value), "%"};
}

Quantity bandwidth(std::optional<double> gb_per_s) {
  if (!gb_per_s || !std::isfinite(*gb_per_s)) return {kMissing, ""};
  if (*gb_per_s < 1) return {three_digits(*gb_per_s * 1000), "MB/s"};
  return {three_digits(*gb_per_s), "GB/s"};
}

std::string grouped(std::int64_t value) {
  const bool negative = value < 0;
  const std::string digits = std::to_string(value).substr(negative ? 1 : 0);
  std::string out = negative ? "-" : "";
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i != 0 && (digits.size() - i) % 3 == 0) out += kGroupSpace;
    out += digits[i];
  }
  return out;
}

std::string significant(double value, int digits) {
  if (std::isnan(value)) return kMissing;
  char text[48];
  std::snprintf(text, sizeof(text), "%.*g", digits, value);
  return text;
}

std::string decimal(double value, int digits) {
  if (!std::isfinite(value)) return kMissing;
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.*f", digits, value);
  return buffer.data();
}

std::string timestamp(std::int64_t ns, std::int64_t resolution_ns) {
  int digits = 0;
  for (double step = 1.0; digits < 9 && step * 1e9 > static_cast<double>(resolution_ns); step /= 10) ++digits;
  return decimal(static_cast<double>(ns) / 1e9, digits) + " s";
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string out = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    out += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return out + "]";
}

std::string_view shorter_path(std::string_view path) {
  for (;;) {
    const std::size_t dot = path.find('.');
    if (dot == std::string_view::npos) return path;
    path.remove_prefix(dot + 1);
    const std::string_view front = path.substr(0, path.find('.'));
    if (front.find_first_not_of("0123456789") != std::string_view::npos) return path;
  }
}

std::string_view short_path(std::string_view path, std::size_t max_chars) {
  while (path.size() > max_chars) {
    const std::string_view shorter = shorter_path(path);
    if (shorter.size() == path.size()) return path;
    path = shorter;
  }
  return path;
}

std::string_view tail_path(std::string_view path) {
  const std::size_t dot = path.find('.');
  if (dot == std::string_view::npos || path.find('.', dot + 1) == std::string_view::npos) return path;
  const bool list = path[dot + 1] >= '0' && path[dot + 1] <= '9';
  return list ? path : path.substr(dot + 1);
}

}  // namespace shardscope::gui
