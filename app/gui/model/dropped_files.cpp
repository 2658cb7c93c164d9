#include "app/gui/model/dropped_files.h"

#include <algorithm>
#include <utility>

namespace shardscope::gui {
namespace {

constexpr std::size_t kMost = 2;

}  // namespace

void DroppedFiles::take(int count, const char* const* paths) {
  for (int i = 0; i < count; ++i) paths_.emplace_back(paths[i]);
}

std::string DroppedFiles::open(const std::function<bool(const AppState::OpenRequest&)>& open) {
  const std::vector<std::string> paths = std::exchange(paths_, {});
  for (std::size_t i = 0; i < std::min(paths.size(), kMost); ++i) {
    // What cannot be opened has been named: a message about the rest would hide that.
    if (!open({paths[i], {}, i == 1})) return {};
  }
  if (paths.size() <= kMost) return {};
  return "The first two of " + std::to_string(paths.size()) + " files are compared";
}

}  // namespace shardscope::gui
