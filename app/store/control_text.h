// Commands of viewers to a live run, stored as messages of the run: the collector writes them, and readers
// of a recording find them by their prefix.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/store/store_rows.h"

namespace shardscope::store {

inline constexpr std::string_view kControlPrefix = "control: ";
/// Prefix of the message about a detail level that was lowered.
inline constexpr std::string_view kDetailLowered = "control: detail lowered";

[[nodiscard]] inline bool is_about_control(std::string_view text) noexcept {
  return text.starts_with(kControlPrefix);
}

/// Whether a command lowered the ranks' level of detail, so that they emit less than at the run's start.
[[nodiscard]] inline bool detail_was_lowered(std::span<const Message> messages) noexcept {
  return std::any_of(messages.begin(), messages.end(),
                     [](const Message& message) { return message.text.starts_with(kDetailLowered); });
}

/// The newest command and who gave it, without the prefix; empty: none.
[[nodiscard]] inline std::string newest_control(std::span<const Message> messages) {
  std::string newest;
  for (const Message& message : messages)
    if (is_about_control(message.text)) newest = message.text.substr(kControlPrefix.size());
  return newest;
}

/// The commands, without the prefix; of more than `most` the first ones and the number of further ones.
[[nodiscard]] inline std::vector<std::string> control_lines(std::span<const Message> messages,
                                                            std::size_t most = 12) {
  std::vector<std::string> lines;
  std::size_t more = 0;
  for (const Message& message : messages) {
    if (!is_about_control(message.text)) continue;
    if (lines.size() < most || message.text.starts_with(kDetailLowered)) {
      lines.push_back(message.text.substr(kControlPrefix.size()));
    } else {
      ++more;
    }
  }
  if (more > 0) lines.push_back("and " + std::to_string(more) + " more, in the run's messages");
  return lines;
}

}  // namespace shardscope::store
