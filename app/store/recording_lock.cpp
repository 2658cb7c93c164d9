#include "app/store/recording_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <set>
#include <stdexcept>
#include <utility>

namespace shardscope::store {

namespace {

/// Offset of the locked byte: beyond the largest recording and beyond the bytes that SQLite locks.
constexpr off_t kPlace = off_t{1} << 61;

// Files that this process writes. Querying the kernel would open and close them, which drops SQLite's locks.
std::mutex g_mutex;
std::set<std::pair<dev_t, ino_t>> g_own;  // guarded by g_mutex

[[noreturn]] void refuse(const std::string& path) {
  throw std::runtime_error("recording " + path +
                           ": another `record` or `run` is writing it; end that one first, or choose another "
                           "file");
}

/// The lock of a recording, as argument for F_OFD_SETLK and F_OFD_GETLK.
struct flock recorders_lock() {
  struct flock what {};
  what.l_type = F_WRLCK;
  what.l_whence = SEEK_SET;
  what.l_start = kPlace;
  what.l_len = 1;
  return what;
}

/// Takes the lock on an open file. It belongs to the open file description, not to the process, and behaves
/// like SQLite's own locks on network file systems. False: another open file description holds it.
bool lock(int file) {
  struct flock what = recorders_lock();
  // On a file system without locks, recording goes on unprotected.
  return fcntl(file, F_OFD_SETLK, &what) == 0 || (errno != EAGAIN && errno != EACCES);
}

}  // namespace

bool RecordingLock::is_taken(const std::string& path) noexcept {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return false;
  {
    const std::lock_guard guard(g_mutex);
    if (g_own.contains({found.st_dev, found.st_ino})) return true;
  }
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  struct flock what = recorders_lock();
  const bool taken = fcntl(file, F_OFD_GETLK, &what) == 0 && what.l_type != F_UNLCK;
  close(file);
  return taken;
}

void RecordingLock::check(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return;
  {
    const std::lock_guard guard(g_mutex);
    if (g_own.contains({found.st_dev, found.st_ino})) refuse(path);
  }
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return;  // opening it for writing later reports the missing permission
  const bool free = lock(file);
  close(file);
  if (!free) refuse(path);
}

void RecordingLock::take(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat found {};
  if (file < 0 || fstat(file, &found) != 0) {
    if (file >= 0) close(file);
    return;
  }
  if (!lock(file)) {
    close(file);
    refuse(path);
  }
  file_ = file;
  device_ = found.st_dev;
  inode_ = found.st_ino;
  const std::lock_guard guard(g_mutex);
  g_own.insert({device_, inode_});
}

void RecordingLock::release() noexcept {
  if (file_ < 0) return;
  {
    const std::lock_guard guard(g_mutex);
    g_own.erase({device_, inode_});
  }
  close(file_);
  file_ = -1;
}

}  // namespace shardscope::store
