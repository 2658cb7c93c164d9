#include "runtime/data/prefetched_stream.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace shardscope::data {
namespace {

class PrefetchedStream : public BatchStream {
 public:
  PrefetchedStream(std::unique_ptr<BatchStream> source, std::size_t depth)
      : source_(std::move(source)),
        depth_(depth),
        samples_(source_->samples()),
        described_(source_->describe()),
        fingerprint_(source_->fingerprint()),
        checksum_(source_->sample_checksum()),
        handed_out_(source_->state()) {
    start();
  }
  ~PrefetchedStream() override { stop(); }

  void next(HostBatch& batch) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !ready_.empty() || error_; });
    if (ready_.empty()) std::rethrow_exception(error_);
    std::swap(batch, ready_.front().batch);  // the caller's vectors are reused for a later batch
    handed_out_ = ready_.front().after;
    spare_.push_back(std::move(ready_.front().batch));
    ready_.pop_front();
    lock.unlock();
    changed_.notify_all();
  }
  [[nodiscard]] StreamState state() const override { return handed_out_; }
  void restore(StreamState state) override {
    stop();
    ready_.clear();
    error_ = nullptr;
    // If the source rejects the state, its position is that of the read-ahead: restore that of the batches
    // returned.
    try {
      source_->restore(state);
    } catch (...) {
      source_->restore(handed_out_);
      start();
      throw;
    }
    handed_out_ = state;
    start();
  }
  [[nodiscard]] std::int64_t samples() const override { return samples_; }
  [[nodiscard]] std::string describe() const override { return described_; }
  [[nodiscard]] std::uint64_t fingerprint() const override { return fingerprint_; }
  [[nodiscard]] std::uint64_t sample_checksum() const override { return checksum_; }

 private:
  struct Ready {
    HostBatch batch;
    StreamState after;  ///< of the source, after this batch
  };

  void start() {
    stopping_ = false;
    reader_ = std::thread([this] { read(); });
  }
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    if (reader_.joinable()) reader_.join();
  }
  void read() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return ready_.size() < depth_ || stopping_; });
      if (stopping_) return;
      Ready next;
      if (!spare_.empty()) {
        next.batch = std::move(spare_.back());
        spare_.pop_back();
      }
      lock.unlock();
      std::exception_ptr error;
      try {
        source_->next(next.batch);
        next.after = source_->state();
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      if (error) {
        error_ = error;
      } else {
        ready_.push_back(std::move(next));
      }
      changed_.notify_all();
      if (error) return;
    }
  }

  std::unique_ptr<BatchStream> source_;  ///< used by the reader thread while it runs
  const std::size_t depth_;
  const std::int64_t samples_;
  const std::string described_;
  const std::uint64_t fingerprint_, checksum_;
  StreamState handed_out_;  ///< of the training thread
  std::mutex mutex_;        ///< guards the following members
  std::condition_variable changed_;
  std::deque<Ready> ready_;       ///< in order, at most depth_
  std::vector<HostBatch> spare_;  ///< memory of used batches
  std::exception_ptr error_;      ///< of the batch after the last ready one
  bool stopping_ = false;
  std::thread reader_;
};

}  // namespace

std::unique_ptr<BatchStream> read_ahead(std::unique_ptr<BatchStream> source, std::size_t depth) {
  return std::make_unique<PrefetchedStream>(std::move(source), depth);
}

}  // namespace shardscope::data
