// Values of settings given as text, and how a change is refused.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>

#include "app/analysis/summary.h"

namespace shardscope::analysis::attached {

/// Throws std::invalid_argument: key, value and why the change cannot be made.
[[noreturn]] inline void refuse(const Change& change, const std::string& why) {
  throw std::invalid_argument(fmt::format("{}={}: {}", change.key, change.value, why));
}

[[nodiscard]] inline std::optional<std::int64_t> whole_number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// `least` to `most`.
[[nodiscard]] inline std::int64_t count_of(const Change& change, std::int64_t least, std::int64_t most) {
  const auto value = whole_number(change.value);
  if (!value || *value < least) refuse(change, fmt::format("give a whole number of at least {}", least));
  if (*value > most) refuse(change, "larger than a run can have");
  return *value;
}

[[nodiscard]] inline bool truth_of(const Change& change) {
  if (change.value != "true" && change.value != "false") refuse(change, "give true or false");
  return change.value == "true";
}

inline constexpr std::int64_t kMostMicroSteps = 4096;

}  // namespace shardscope::analysis::attached
