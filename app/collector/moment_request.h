// A viewer's request that the recording keep the interval around a moment, as the text of a message: the
// moment's kind, a space, and a description. Its time is on the collector's clock.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "app/store/retention.h"

namespace shardscope::collector {

inline constexpr std::size_t kMostMomentText = 400;  ///< bytes; longer ones are cut

/// The first `most` bytes of UTF-8 text at most, never cut within a character.
[[nodiscard]] inline std::string_view cut_text(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;
  return text.substr(0, most);
}

[[nodiscard]] inline std::string moment_request_text(std::string_view kind, std::string_view text) {
  std::string out(kind);
  out += ' ';
  out += cut_text(text, kMostMomentText);
  return out;
}

/// A request's description with its sender appended; the description is truncated where both are too long.
[[nodiscard]] inline std::string requested_text(std::string_view words, std::string_view by) {
  const std::string suffix =
      (words.empty() ? "requested by " : ", requested by ") + std::string(cut_text(by, 100));
  return std::string(cut_text(words, kMostMomentText - suffix.size())) + suffix;
}

/// The moment, without `at_ns`. nullopt where the kind is not one word of lower-case letters and underscores.
[[nodiscard]] inline std::optional<store::Moment> moment_of_request(std::string_view text) {
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos || space == 0 || space > 32) return std::nullopt;
  const std::string_view kind = text.substr(0, space);
  for (const char c : kind) {
    if ((c < 'a' || c > 'z') && c != '_') return std::nullopt;
  }
  store::Moment out;
  out.kind = kind;
  out.text = cut_text(text.substr(space + 1), kMostMomentText);
  return out;
}

}  // namespace shardscope::collector
