// A viewer's request that the recording keep what lies around a moment, as the text of a message: the
// moment's kind, a space, and what happened in words. Its time is on the collector's clock.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "app/store/retention.h"

namespace shardscope::collector {

inline constexpr std::size_t kMostMomentText = 400;  ///< bytes; longer ones are cut

[[nodiscard]] inline std::string moment_request_text(std::string_view kind, std::string_view text) {
  std::string out(kind);
  out += ' ';
  out += text.substr(0, kMostMomentText);
  return out;
}

/// Without `at_ns`. Nothing where the kind is not one word of small letters and underscores.
[[nodiscard]] inline std::optional<store::Moment> moment_of_request(std::string_view text) {
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos || space == 0 || space > 32) return std::nullopt;
  const std::string_view kind = text.substr(0, space);
  for (const char c : kind) {
    if ((c < 'a' || c > 'z') && c != '_') return std::nullopt;
  }
  store::Moment out;
  out.kind = kind;
  out.text = text.substr(space + 1, kMostMomentText);
  return out;
}

}  // namespace shardscope::collector
