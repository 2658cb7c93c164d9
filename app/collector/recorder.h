// The recorder thread: passes the items queued by the collector to the RunSink, in order, so that a slow disk
// delays neither the ranks' clocks and commands nor the viewers.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "app/collector/run_sink.h"

namespace shardscope::collector {

class Recorder {
 public:
  /// Chunk storage kept for reuse: allocating large buffers repeatedly is expensive.
  static constexpr std::size_t kStorages = 16, kLargestStorage = 1U << 15;  ///< the latter: events

  /// `notify`: called on the recorder's thread when the queue is empty and viewers can fetch everything.
  Recorder(RunSink& sink, std::function<void()> notify);
  ~Recorder();  ///< as finish()
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // From the collector's thread; none of these blocks.
  void tables(wire::Header from, wire::Tables tables, std::size_t bytes);
  void name(std::uint32_t rank, wire::Name name);
  void chunk(store::Chunk chunk);
  void rank(store::RankRow row);
  void message(std::uint32_t rank, std::int64_t at_ns, instrumentation::Severity severity, std::string text);
  void keep(store::Moment moment);  ///< store::RecordingWriter::keep(); from any thread
  void commit();                    ///< does nothing while the previous commit is pending

  /// Bytes queued and not yet recorded.
  [[nodiscard]] std::size_t queued_bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
  /// Time of its last progress, nanoseconds of the monotonic clock.
  [[nodiscard]] std::int64_t progress_ns() const noexcept {
    return progress_ns_.load(std::memory_order_relaxed);
  }
  /// The error that stopped the recording; empty: none.
  [[nodiscard]] std::string error() const;
  /// Storage of a recorded chunk, to be filled again; empty when there is none.
  [[nodiscard]] std::vector<instrumentation::Event> take_storage();
  /// Whether every queued item has been recorded and is available to viewers.
  [[nodiscard]] bool idle() const;
  /// Waits at most `seconds` until every queued item is recorded. False: timed out.
  bool settle(double seconds);
  /// Records the remaining items, closes the recording and ends the thread. Returns the error; empty: none.
  std::string finish();

 private:
  struct Job {
    std::function<void()> work;
    std::size_t bytes = 0;
  };
  void post(std::function<void()> work, std::size_t bytes);
  void run();
  void give_back(std::vector<instrumentation::Event> storage);

  RunSink& sink_;
  std::function<void()> notify_;
  std::atomic<std::size_t> bytes_{0};
  std::atomic<bool> committing_{false};
  std::atomic<std::int64_t> progress_ns_{0};
  mutable std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::deque<Job> jobs_;
  bool busy_ = false, stop_ = false;
  std::string error_;
  std::vector<std::vector<instrumentation::Event>> storage_;
  std::thread thread_;
};

}  // namespace shardscope::collector
