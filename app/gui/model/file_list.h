// Contents of a folder for the file browser.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace shardscope::gui {

struct FileEntry {
  std::string name;
  bool folder = false;
  std::uint64_t bytes = 0;
  std::int64_t changed_s = 0;  ///< seconds since 1970
};
struct FileList {
  std::filesystem::path folder;    ///< absolute
  std::vector<FileEntry> entries;  ///< folders by name, then recordings, newest first
  std::string problem;             ///< error message; empty on success
};
/// Subfolders and files ending in .zscope; skips names that begin with a dot.
[[nodiscard]] FileList list_recordings(const std::filesystem::path& folder);

}  // namespace shardscope::gui
