// A folder that is removed with its object. Each new one removes folders left by killed processes.
#pragma once

#include <cstdint>
#include <string>

namespace shardscope::cli {

/// [Note: locked scratch folders] Each has a file that its process, and its children, keep locked
/// (flock) while they run; the system releases the lock however they end. So a folder with our prefix and
/// owner whose file can be locked was left by a killed process.
class ScratchFolder {
 public:
  /// Who uses the folder. A lock may be visible on its own node only: of `nodes`, no old folders are removed.
  enum class SeenBy : std::uint8_t { machine, nodes };
  /// In `base`, with the common name prefix. Throws UserError when it cannot be created.
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
