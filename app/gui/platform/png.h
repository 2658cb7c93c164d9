// Writes PNG files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardscope::gui {

/// `rgba`: width * height * 4 bytes, top row first. Throws std::runtime_error: path, reason.
void write_png(const std::string& path, int width, int height, const std::vector<std::uint8_t>& rgba);

}  // namespace shardscope::gui
