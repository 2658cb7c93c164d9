// Moves the write-ahead log of a recording into its file, mostly on a thread of its own: that waits for
// the disk, more than a second where other processes write to it too. The recording thread must not wait,
// because events arrive meanwhile.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "app/store/database.h"

namespace shardscope::store {

/// Used by the thread that records.
class Checkpointer {
 public:
  /// 32 MiB of a recording.
  static constexpr int kPages = 16384;

  /// Opens a second connection to the file; throws DatabaseError. `pages`: log length from which the log is
  /// moved into the file. The thread inherits its caller's signal mask.
  explicit Checkpointer(const std::string& path, int pages = kPages);
  ~Checkpointer();  ///< waits for a checkpoint in progress
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  /// Call after each commit of `writer`, which has called leave_log(), before its next transaction. A long
  /// log is moved by the thread while recording goes on, and the few pages added since by this function after
  /// a later commit: SQLite reuses the log from its beginning only when all of it is in the file.
  void committed(Database& writer);

 private:
  enum class State : std::uint8_t { idle, wanted, working, done };
  void run();
  static void fold(Database& database);

  int pages_;
  Database database_;
  std::mutex mutex_;
  std::condition_variable wake_;
  State state_ = State::idle;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace shardscope::store
