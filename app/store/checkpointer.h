// Folds the write-ahead log of a recording into its file, most of it on a thread of its own: that waits for
// the disk, more than a second where others write to it too. The recording thread must not wait for it,
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

  /// Opens the file once more; throws DatabaseError. `pages`: from there on the log is folded in. The thread
  /// has its caller's signal mask.
  explicit Checkpointer(const std::string& path, int pages = kPages);
  ~Checkpointer();  ///< waits for the disk, if it is writing
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  /// `writer`, after leave_log(), has committed and has not begun anew. What is in a long log is folded in
  /// beside what is recorded next, and after a later commit, here, the little that has arrived since: only
  /// where nothing is left the log is written from its beginning again.
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
