// Matching of names against typed words.
#pragma once

#include <string_view>

namespace shardscope::gui {

/// Whether `name` contains every word of `typed`, ignoring ASCII case: "attn 3" matches "h.3.attn". Empty
/// input matches everything.
[[nodiscard]] bool matches(std::string_view name, std::string_view typed) noexcept;
/// Without blanks at its ends.
[[nodiscard]] std::string_view trimmed(std::string_view text) noexcept;

}  // namespace shardscope::gui
