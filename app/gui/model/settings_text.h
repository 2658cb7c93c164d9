// A settings file's text, with a first line that allows to detect changed or truncated files.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace shardscope::gui {

[[nodiscard]] std::string with_checksum(std::string_view text);
/// The text after the first line; nullopt if the file was changed or truncated.
[[nodiscard]] std::optional<std::string_view> checked_text(std::string_view file);

}  // namespace shardscope::gui
