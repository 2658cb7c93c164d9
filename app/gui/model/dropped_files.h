// Files dropped onto the window, until they are opened between two frames.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "app/gui/model/app_state.h"

namespace shardscope::gui {

class DroppedFiles {
 public:
  /// As the window system gives them: the paths are only valid during the call.
  void take(int count, const char* const* paths);
  [[nodiscard]] bool empty() const noexcept { return paths_.empty(); }
  /// Opens the first in place of the run that is shown, and the second beside it for a comparison. `open`
  /// returns whether it could. Returns what the user should know besides; empty: nothing.
  std::string open(const std::function<bool(const AppState::OpenRequest&)>& open);

 private:
  std::vector<std::string> paths_;
};

}  // namespace shardscope::gui
