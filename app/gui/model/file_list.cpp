#include "app/gui/model/file_list.h"

#include <sys/stat.h>

#include <algorithm>

namespace shardscope::gui {

FileList list_recordings(const std::filesystem::path& folder) {
  FileList out;
  std::error_code failed;
  out.folder = std::filesystem::weakly_canonical(folder.empty() ? "." : folder, failed);
  if (failed) out.folder = folder;
  std::filesystem::directory_iterator entries(out.folder, failed);
  if (failed) {
    out.problem = out.folder.string() + ": " + failed.message();
    return out;
  }
  for (; entries != std::filesystem::directory_iterator(); entries.increment(failed)) {
    if (failed) break;
    FileEntry entry;
    entry.name = entries->path().filename().string();
    struct stat about {};
    if (entry.name.starts_with('.') || stat(entries->path().c_str(), &about) != 0) continue;
    entry.folder = S_ISDIR(about.st_mode);
    if (!entry.folder && !(S_ISREG(about.st_mode) && entry.name.ends_with(".zscope"))) continue;
    entry.bytes = static_cast<std::uint64_t>(about.st_size);
    entry.changed_s = about.st_mtime;
    out.entries.push_back(std::move(entry));
  }
  std::ranges::sort(out.entries, [](const FileEntry& a, const FileEntry& b) {
    if (a.folder != b.folder) return a.folder;
    if (!a.folder && a.changed_s != b.changed_s) return a.changed_s > b.changed_s;
    return a.name < b.name;
  });
  return out;
}

}  // namespace shardscope::gui
