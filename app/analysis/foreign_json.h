// JSON with untrusted text: names and hosts received from a runtime, configurations read from recordings.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace shardscope::analysis {

/// Serializes; bytes that are not UTF-8 become U+FFFD, where dump() alone would throw.
[[nodiscard]] inline std::string to_text(const nlohmann::json& json, int indent = -1) {
  return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Parses `text`. Discarded (is_discarded()) if it is not JSON, or nested deeper than any configuration:
/// visitors are recursive.
[[nodiscard]] inline nlohmann::json parse_foreign(const std::string& text) {
  constexpr int kDeepest = 64;
  bool too_deep = false;
  auto json = nlohmann::json::parse(
      text,
      [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
        too_deep |= depth > kDeepest;
        return depth <= kDeepest;
      },
      false);
  return too_deep ? nlohmann::json(nlohmann::json::value_t::discarded) : json;
}

}  // namespace shardscope::analysis
