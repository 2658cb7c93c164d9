// Whether a name is what was typed.
#pragma once

#include <string_view>

namespace shardscope::gui {

/// Every word of `typed` is in `name`, whatever the case of ASCII letters: "attn 3" finds "h.3.attn". Nothing
/// typed matches everything.
[[nodiscard]] bool matches(std::string_view name, std::string_view typed) noexcept;

}  // namespace shardscope::gui
