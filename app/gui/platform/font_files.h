// Finds the window's fonts with fontconfig, in the system's and the user's folders.
#pragma once

#include <string>

namespace shardscope::gui {

struct FontFile {
  std::string path;    ///< empty: no usable font is installed
  int index = 0;       ///< of the face in the file
  bool exact = false;  ///< the requested family, not fontconfig's substitute
};

/// `weight`: a fontconfig name: regular, semibold.
[[nodiscard]] FontFile find_font(const char* family, const char* weight);
/// A font with this letter (UTF-32); `language` as in fontconfig: zh-cn, ja, ko. Empty path: none is
/// installed.
[[nodiscard]] FontFile find_font_of(const char* language, char32_t letter);

}  // namespace shardscope::gui
