#include "app/cli/scratch_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "app/cli/verb.h"

namespace shardscope::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "shardscope-";
constexpr const char* kLock = ".held";

/// Whether `path` is still the file of `fd`.
bool is_at(int fd, const std::string& path) {
  struct stat held {
  }, named{};
  return fstat(fd, &held) == 0 && lstat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino &&
         held.st_dev == named.st_dev;
}

/// Removes a scratch folder of this user whose lock is free ([Note: locked scratch folders]).
void remove_if_unlocked(const fs::path& folder) {
  struct stat found {};
  if (lstat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode) || found.st_uid != geteuid()) return;
  const std::string lock = folder / kLock;
  const int fd = open(lock.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return;
  if (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_at(fd, lock)) {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }
  close(fd);
}

void remove_unlocked_folders(const fs::path& base) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (fs::directory_iterator entry(base, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().filename().string().starts_with(kPrefix)) folders.push_back(entry->path());
  }
  for (const fs::path& folder : folders) remove_if_unlocked(folder);
}

}  // namespace

ScratchFolder::ScratchFolder() : ScratchFolder(fs::temp_directory_path().string()) {}

ScratchFolder::ScratchFolder(const std::string& base, SeenBy seen_by) {
  const bool shared = seen_by == SeenBy::nodes;
  if (!shared) remove_unlocked_folders(base);
  constexpr int kAttempts = 10;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string pattern = (fs::path(base) / (std::string(kPrefix) + "XXXXXX")).string();
    if (mkdtemp(pattern.data()) == nullptr) break;
    const std::string lock = pattern + "/" + kLock;
    // Not closed on exec: child processes may use the folder for longer than this process.
    lock_ = open(lock.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    // Not every shared file system has locks.
    if (lock_ >= 0 && (flock(lock_, LOCK_EX | LOCK_NB) == 0 || shared) && is_at(lock_, lock)) {
      path_ = pattern;
      return;
    }
    // Another process removed it before it was locked.
    if (lock_ >= 0) close(lock_);
    lock_ = -1;
  }
  throw UserError(base + ": no folder can be made in it (" + std::strerror(errno) + "); " +
                  (shared ? "can this user write there?" : "is the temporary folder writable?"));
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  if (lock_ >= 0) close(lock_);
}

}  // namespace shardscope::cli
