// A recorder's answer to a request to keep a moment: a text for people, from which `keep` derives its exit
// code. The phrases of a positive answer are shared by both.
#pragma once

#include <string_view>

namespace shardscope::cli {

inline constexpr std::string_view kKeeping = "keeping ";              ///< how the answer begins
inline constexpr std::string_view kKeptAlready = " is kept already";  ///< or how it ends

/// Whether the interval around the moment is or will be in the recording.
[[nodiscard]] constexpr bool is_kept(std::string_view answer) noexcept {
  return answer.starts_with(kKeeping) || answer.ends_with(kKeptAlready);
}

}  // namespace shardscope::cli
