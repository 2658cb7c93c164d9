#include "app/collector/recorder.h"

#include <chrono>
#include <exception>
#include <utility>

#include "instrumentation/clock.h"
#include "instrumentation/sockets.h"

namespace shardscope::collector {

namespace {
constexpr std::size_t kOverhead = 256;           ///< bytes of a queued item beside its payload
constexpr std::size_t kLargeStorage = 1U << 13;  ///< events; smaller storage is not kept
}  // namespace

Recorder::Recorder(RunSink& sink, std::function<void()> notify) : sink_(sink), notify_(std::move(notify)) {
  const instrumentation::BlockSignals blocked;
  thread_ = std::thread([this] { run(); });
}

Recorder::~Recorder() { finish(); }

void Recorder::post(std::function<void()> work, std::size_t bytes) {
  bytes += kOverhead;
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back({std::move(work), bytes});
  }
  wake_.notify_one();
}

void Recorder::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    busy_ = true;
    lock.unlock();
    std::string failure;
    try {
      job.work();
    } catch (const std::exception& error) {
      failure = std::string("a part of the recording could not be written: ") +
                error.what();  // out of memory, for instance: this one item is missing
    }
    progress_ns_.store(instrumentation::monotonic_now_ns(), std::memory_order_relaxed);
    bytes_.fetch_sub(job.bytes, std::memory_order_relaxed);
    job.work = nullptr;
    lock.lock();
    if (!failure.empty() && error_.empty()) error_ = failure;
    busy_ = false;
    if (!jobs_.empty()) continue;
    idle_.notify_all();
    if (!notify_) continue;
    lock.unlock();
    notify_();
    lock.lock();
  }
}

void Recorder::tables(wire::Header from, wire::Tables tables, std::size_t bytes) {
  post([this, from = std::move(from), tables = std::move(tables)] { sink_.tables(from, tables); }, bytes);
}

void Recorder::name(std::uint32_t rank, wire::Name name) {
  const std::size_t bytes = name.name.size();
  post([this, rank, name = std::move(name)] { sink_.name(rank, name); }, bytes);
}

void Recorder::chunk(store::Chunk chunk) {
  const std::size_t bytes = chunk.events.capacity() * sizeof(instrumentation::Event);
  post(
      [this, chunk = std::move(chunk)]() mutable {
        sink_.chunk(chunk);
        give_back(std::move(chunk.events));
      },
      bytes);
}

void Recorder::rank(store::RankRow row) {
  post([this, row = std::move(row)] { sink_.rank(row); }, 0);
}

void Recorder::message(std::uint32_t rank, std::int64_t at_ns, instrumentation::Severity severity,
                       std::string text) {
  const std::size_t bytes = text.size();
  post([=, this, text = std::move(text)] { sink_.message(rank, at_ns, severity, text); }, bytes);
}

void Recorder::keep(store::Moment moment) {
  const std::size_t bytes = moment.text.size();
  post([this, moment = std::move(moment)] { sink_.keep(moment); }, bytes);
}

void Recorder::commit() {
  if (committing_.exchange(true)) return;
  post(
      [this] {
        const std::string error = sink_.commit();
        committing_.store(false);
        if (error.empty()) return;
        const std::lock_guard lock(mutex_);
        error_ = error;
      },
      0);
}

std::string Recorder::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

void Recorder::give_back(std::vector<instrumentation::Event> storage) {
  if (storage.capacity() < kLargeStorage || storage.capacity() > kLargestStorage) return;
  storage.clear();
  const std::lock_guard lock(mutex_);
  if (storage_.size() < kStorages) storage_.push_back(std::move(storage));
}

std::vector<instrumentation::Event> Recorder::take_storage() {
  const std::lock_guard lock(mutex_);
  if (storage_.empty()) return {};
  std::vector<instrumentation::Event> storage = std::move(storage_.back());
  storage_.pop_back();
  return storage;
}

bool Recorder::idle() const {
  const std::lock_guard lock(mutex_);
  return jobs_.empty() && !busy_;
}

bool Recorder::settle(double seconds) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, std::chrono::duration<double>(seconds),
                        [this] { return jobs_.empty() && !busy_; });
}

std::string Recorder::finish() {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_one();
    thread_.join();
    const std::string error = sink_.finish();
    if (error_.empty()) error_ = error;
  }
  return error_;
}

}  // namespace shardscope::collector
