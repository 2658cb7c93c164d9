// The plugin's thread: reads finished operations, converts them to events, and adapts what NCCL reports to
// the current detail level.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "instrumentation/nccl_profiler/gpu_clock.h"
#include "instrumentation/nccl_profiler/operations.h"
#include "instrumentation/nccl_profiler/sink.h"

namespace shardscope::nccl_profiler {

/// A communicator reported by NCCL. Never deleted: reports may arrive after its end.
struct Communicator {
  std::atomic<bool> live{false};
  std::uint64_t id = 0;
  std::string name;
  int nodes = 0, ranks = 0, rank = 0;
  std::atomic<int*> mask{nullptr};  ///< NCCL's, one for the process; null after the communicator's end
  GpuClock clock;

  /// The id folded to 32 bits, as used in events.
  [[nodiscard]] std::uint32_t folded() const noexcept { return static_cast<std::uint32_t>(id ^ id >> 32U); }
};

class Collector final : private Operations::Reader {
 public:
  static constexpr std::size_t kCommunicators = 1024;

  /// The process's instance; never destroyed.
  static Collector& instance();

  /// Adds a communicator and sets its mask. Returns its index, or kCommunicators if there are too many. The
  /// first one starts the thread. May throw.
  std::uint32_t add(std::uint64_t id, const char* name, int nodes, int ranks, int rank, int* mask);
  /// Removing the last one emits the remaining operations and ends the thread.
  void remove(std::uint32_t index);
  /// At process exit: remove() for all remaining communicators.
  void close();
  /// Null if the index is not of a live communicator.
  [[nodiscard]] Communicator* live(std::uint32_t index) noexcept;
  [[nodiscard]] Communicator& any(std::uint32_t index) noexcept {
    return communicators_[index % kCommunicators];
  }
  [[nodiscard]] Operations& operations() noexcept { return operations_; }
  /// Sequence of the next collective, for a process that does not number them itself.
  [[nodiscard]] std::uint32_t next_sequence() noexcept {
    return sequence_.fetch_add(1, std::memory_order_relaxed);
  }
  /// Set in a child of fork(), where the thread does not exist.
  [[nodiscard]] bool forked() const noexcept { return forked_.load(std::memory_order_relaxed); }
  void set_forked() noexcept { forked_.store(true, std::memory_order_relaxed); }

 private:
  Collector() = default;
  void stop_thread(std::unique_lock<std::mutex> lock);
  void run();
  void look(std::int64_t now_ns);
  void find_sink();
  void set_masks();
  void started(const OperationFacts& facts) override;
  void ended(const OperationFacts& facts, const OperationTimes& times) override;
  void span(const OperationFacts& facts, const Communicator& of, std::int64_t begin_ns, std::int64_t end_ns);

  Operations operations_;
  std::array<Communicator, kCommunicators> communicators_;
  std::atomic<std::uint32_t> sequence_{0};
  std::atomic<bool> forked_{false};

  std::mutex mutex_;  ///< guards the members below, up to the thread
  std::uint32_t known_ = 0, alive_ = 0;
  bool ends_ = false;
  std::condition_variable changed_;
  std::thread thread_;

  // Used by the thread only.
  std::unique_ptr<Sink> sink_;
  bool no_sink_ = false;  ///< no sink is available
  std::uint64_t lost_reported_ = 0, overlapping_ = 0;
  struct LaneEnd {
    std::int64_t at_ns = 0;
    std::uint32_t communicator = 0;
  };
  std::array<LaneEnd, 2> lane_ends_{};  ///< gather and reduce, in a run of the plugin's own
};

}  // namespace shardscope::nccl_profiler
