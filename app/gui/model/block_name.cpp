#include "app/gui/model/block_name.h"

#include <algorithm>

namespace shardscope::gui {

std::string_view block_of(std::string_view name) noexcept {
  std::size_t at = 0;
  while (at < name.size()) {
    const std::size_t dot = std::min(name.find('.', at), name.size());
    const std::string_view part = name.substr(at, dot - at);
    if (!part.empty() && std::ranges::all_of(part, [](char ch) { return ch >= '0' && ch <= '9'; }))
      return name.substr(0, dot);
    at = dot + 1;
  }
  const std::size_t last = name.rfind('.');
  return last == std::string_view::npos ? name : name.substr(0, last);
}

}  // namespace shardscope::gui
