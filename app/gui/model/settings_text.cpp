#include "app/gui/model/settings_text.h"

#include <algorithm>

#include "app/store/crc32.h"

namespace shardscope::gui {

std::string with_checksum(std::string_view text) {
  std::string file = "; Shardscope's layouts, checksum " + std::to_string(store::crc32c(text)) + "\n";
  return file.append(text);
}

std::optional<std::string_view> checked_text(std::string_view file) {
  const std::string_view text = file.substr(std::min(file.size(), file.find('\n') + 1));
  if (with_checksum(text) != file) return std::nullopt;
  return text;
}

}  // namespace shardscope::gui
