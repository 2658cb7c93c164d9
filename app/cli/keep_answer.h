// What a recorder answers to a request to keep a moment: a text for people, which the recorder writes and
// `keep` takes its exit code from. Both have the words that say yes from here.
#pragma once

#include <string_view>

namespace shardscope::cli {

inline constexpr std::string_view kKeeping = "keeping ";              ///< how the answer begins
inline constexpr std::string_view kKeptAlready = " is kept already";  ///< or how it ends

/// Whether what lies around the moment is or will be in the recording.
[[nodiscard]] constexpr bool says_kept(std::string_view answer) noexcept {
  return answer.starts_with(kKeeping) || answer.ends_with(kKeptAlready);
}

}  // namespace shardscope::cli
