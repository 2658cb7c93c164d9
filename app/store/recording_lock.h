// The writer of a recording holds a lock on its file, so that no other program replaces it meanwhile. Readers
// read it all the same.
#pragma once

#include <sys/types.h>

#include <string>

namespace shardscope::store {

class RecordingLock {
 public:
  RecordingLock() = default;
  ~RecordingLock() { release(); }
  RecordingLock(const RecordingLock&) = delete;
  RecordingLock& operator=(const RecordingLock&) = delete;

  /// Throws std::runtime_error where another process writes the file; fine where there is none.
  static void check(const std::string& path);
  /// Whether a recorder that is running writes the file. To be called before this process has SQLite open it:
  /// see take(). False where the file system has no locks.
  [[nodiscard]] static bool is_taken(const std::string& path) noexcept;
  /// Takes the file, which exists. It is to be released after the database that is in it has been closed: who
  /// closes any descriptor of a file loses the locks that SQLite has on it in this process.
  void take(const std::string& path);
  void release() noexcept;

 private:
  int file_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace shardscope::store
