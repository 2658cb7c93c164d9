#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "runtime/offload/io/io_port.h"

namespace shardscope::offload {
namespace {

// A queue of requests and a list of completions under one mutex. The threads block in pread and pwrite
// without it. One thread per request in flight, up to 64.
class ThreadPort final : public IoPort {
 public:
  ThreadPort(int file, std::uint32_t depth) : file_(file) {
    constexpr std::uint32_t kMost = 64;
    for (std::uint32_t i = 0; i < std::min(depth, kMost); ++i) threads_.emplace_back([this] { serve(); });
  }
  ~ThreadPort() override {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    asked_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void submit(std::span<const IoRequest> requests) override {
    {
      const std::lock_guard lock(mutex_);
      // Copied into the queue: `requests` need not outlive the call, the memory they refer to must.
      requests_.insert(requests_.end(), requests.begin(), requests.end());
    }
    asked_.notify_all();
  }

  void wait(std::vector<IoResult>& answers) override {
    std::unique_lock lock(mutex_);
    // At least one: the caller has requests in flight, so one will complete.
    answered_.wait(lock, [this] { return !answers_.empty(); });
    // All available ones, in order of completion.
    answers.insert(answers.end(), answers_.begin(), answers_.end());
    answers_.clear();
  }

  [[nodiscard]] std::string describe() const override { return std::to_string(threads_.size()) + " threads"; }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      asked_.wait(lock, [this] { return ends_ || !requests_.empty(); });
      // ends_ takes effect once no request is left: every submitted request completes.
      if (requests_.empty()) return;
      // By value: it is removed from the queue before the lock is released.
      const IoRequest request = requests_.front();
      requests_.pop_front();
      lock.unlock();
      const IoPart& part = request.part;
      const ssize_t moved = request.direction == IoDirection::read
                                ? pread(file_, part.data, part.bytes, part.offset)
                                : pwrite(file_, part.data, part.bytes, part.offset);
      const std::int64_t result = moved < 0 ? -std::int64_t{errno} : std::int64_t{moved};
      lock.lock();
      answers_.push_back({request.id, result});
      // One thread waits: a port is used by one at a time.
      answered_.notify_one();
    }
  }

  const int file_;
  std::mutex mutex_;
  std::condition_variable asked_, answered_;
  std::deque<IoRequest> requests_;
  std::vector<IoResult> answers_;
  bool ends_ = false;
  std::vector<std::thread> threads_;  ///< last: they start when all of the above exists
};

}  // namespace

std::unique_ptr<IoPort> make_thread_port(int file, std::uint32_t depth) {
  return std::make_unique<ThreadPort>(file, depth);
}

}  // namespace shardscope::offload
