// The recorder's lock on the file that it writes, so that no other recorder replaces the file meanwhile. It
// does not block readers.
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

  /// Throws std::runtime_error if a recorder, in this process or another, writes the file. No file: no error.
  static void check(const std::string& path);
  /// Whether a running recorder writes the file. Call before this process opens the file with SQLite: see
  /// take(). False on a file system without locks.
  [[nodiscard]] static bool is_taken(const std::string& path) noexcept;
  /// Locks the existing file. Release only after its database has been closed: closing any descriptor of a
  /// file drops the locks that SQLite holds on it in this process.
  void take(const std::string& path);
  void release() noexcept;

 private:
  int file_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace shardscope::store
