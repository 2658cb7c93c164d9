// Alternating access of two threads to one store: the window, which must not wait long, and the analysis.
#pragma once

#include <condition_variable>
#include <mutex>
#include <utility>

namespace shardscope::gui {

/// Exclusive access to a store. The window acquires it with first(); the analysis with next(), for a few
/// milliseconds at most, and never while the window waits.
class Turns {
 public:
  class Turn {
   public:
    Turn(Turn&& other) noexcept : turns_(std::exchange(other.turns_, nullptr)) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (turns_ != nullptr) turns_->give_back();
    }

   private:
    friend class Turns;
    explicit Turn(Turns& turns) : turns_(&turns) {}
    Turns* turns_;
  };

  [[nodiscard]] Turn first() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    free_.wait(lock, [&] { return !taken_; });
    --waiting_;
    taken_ = true;
    return Turn(*this);
  }
  [[nodiscard]] Turn next() {
    std::unique_lock lock(mutex_);
    free_.wait(lock, [&] { return !taken_ && waiting_ == 0; });
    taken_ = true;
    return Turn(*this);
  }

 private:
  void give_back() {
    {
      const std::lock_guard lock(mutex_);
      taken_ = false;
    }
    free_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable free_;
  int waiting_ = 0;
  bool taken_ = false;
};

}  // namespace shardscope::gui
