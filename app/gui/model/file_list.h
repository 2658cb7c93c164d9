// A folder, as the file browser shows it.
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
  std::string problem;             ///< why there is nothing; empty: it was read
};
/// Folders and files that end in .zscope; names that begin with a dot are left out.
[[nodiscard]] FileList list_recordings(const std::filesystem::path& folder);

}  // namespace shardscope::gui
