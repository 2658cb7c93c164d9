#include "app/store/checkpointer.h"

namespace shardscope::store {

Checkpointer::Checkpointer(const std::string& path, int pages)
    : pages_(pages), database_(path, Database::Access::create) {
  thread_ = std::thread([this] { run(); });
}

Checkpointer::~Checkpointer() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Checkpointer::fold(Database& database) {
  try {
    database.execute_unless_busy("PRAGMA wal_checkpoint(PASSIVE)");
  } catch (const DatabaseError&) {
    // The log keeps what could not be written; a commit fails where the disk does not take that either.
  }
}

void Checkpointer::committed(Database& writer) {
  if (writer.log_pages() < pages_) return;
  {
    const std::lock_guard lock(mutex_);
    if (state_ == State::wanted || state_ == State::working) return;
    if (state_ == State::idle) {
      state_ = State::wanted;
      wake_.notify_one();
      return;
    }
    state_ = State::idle;
  }
  fold(writer);
}

void Checkpointer::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stop_ || state_ == State::wanted; });
    if (stop_) return;
    state_ = State::working;
    lock.unlock();
    fold(database_);
    lock.lock();
    state_ = State::done;
  }
}

}  // namespace shardscope::store
