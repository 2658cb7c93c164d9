// A folder for as long as an object lives. What a process that was killed has left is removed by the next
// one.
#pragma once

#include <string>

namespace shardscope::cli {

/// [Note: folders that nobody holds] Each has a file that is locked (flock) for as long as the process lives
/// that made it, or any that it started: the system gives the lock back however they end. So a folder of
/// ours, by name and owner, whose file can be locked belongs to nobody.
class ScratchFolder {
 public:
  /// In `base`, with a name that begins like all of them. Throws UserError when it cannot be made.
  explicit ScratchFolder(const std::string& base);
  /// In the system's temporary folder.
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  int lock_ = -1;
};

}  // namespace shardscope::cli
