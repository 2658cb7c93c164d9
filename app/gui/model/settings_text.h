// A settings file's text with a first line that says whether the rest is as it was written.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace shardscope::gui {

[[nodiscard]] std::string with_checksum(std::string_view text);
/// The text, or nothing where the file was changed or cut.
[[nodiscard]] std::optional<std::string_view> checked_text(std::string_view file);

}  // namespace shardscope::gui
