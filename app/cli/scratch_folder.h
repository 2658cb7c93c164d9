// A folder for as long as an object lives. The next one made removes what killed processes left.
#pragma once

#include <cstdint>
#include <string>

namespace shardscope::cli {

/// [Note: locked scratch folders] Each has a file that its process, and those that it starts, keep locked
/// (flock) while they live; the system releases the lock however they end. So a folder with our prefix and
/// owner whose file can be locked was left behind by a killed process.
class ScratchFolder {
 public:
  /// Who sees the folder. A lock may be known on its own node only: what others left there is not looked for.
  enum class SeenBy : std::uint8_t { machine, nodes };
  /// In `base`, with a name that begins like all of them. Throws UserError when it cannot be made.
  explicit ScratchFolder(const std::string& base, SeenBy seen_by = SeenBy::machine);
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
