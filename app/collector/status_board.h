// State shared by a collector's thread and other threads: its status, and their requests. Each call is
// atomic: it locks the mutex once.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/collector/collector.h"

namespace shardscope::collector {

class StatusBoard {
 public:
  [[nodiscard]] CollectorStatus status() const {
    const std::lock_guard lock(mutex_);
    return status_;
  }
  [[nodiscard]] bool finished() const {
    const std::lock_guard lock(mutex_);
    return status_.finished;
  }
  [[nodiscard]] std::int32_t exit_code() const {
    const std::lock_guard lock(mutex_);
    return status_.exit_code;
  }

  // Called by the collector's thread.
  void received(std::size_t events) {
    const std::lock_guard lock(mutex_);
    ++status_.messages;
    status_.events += events;
  }
  void control() { add(status_.control, 1); }
  void repeated() { add(status_.repeated, 1); }
  void dropped(std::uint64_t events) { add(status_.dropped, events); }
  void shed(std::uint64_t events) { add(status_.shed, events); }
  void refused() { add(status_.refused, 1); }
  void stalled() { add(status_.stalled, 1); }
  void rejected(const std::string& kind) {
    const std::lock_guard lock(mutex_);
    ++status_.rejected;
    ++status_.rejected_by[kind];
  }
  void add_stall(double seconds) {
    const std::lock_guard lock(mutex_);
    status_.stalled_s += seconds;
  }
  void connected(std::uint32_t ranks) {
    const std::lock_guard lock(mutex_);
    status_.ranks_connected = ranks;
  }
  /// A rank has reported its end. The run's exit code is the first that is not 0, with its `text`.
  void rank_ended(std::uint32_t rank, std::int32_t code, const std::string& text, std::uint32_t finished) {
    const std::lock_guard lock(mutex_);
    if (code != 0) failures_.push_back({rank, code, text});
    status_.ranks_finished = finished;
    set_exit();
  }
  /// A rank runs again, in another process: the failure of the one before is not the run's.
  void rank_restarted(std::uint32_t rank) {
    const std::lock_guard lock(mutex_);
    std::erase_if(failures_, [&](const Failure& failure) { return failure.rank == rank; });
    set_exit();
  }
  /// Sets whether the run is over for this collector.
  void set_finished(bool finished) {
    const std::lock_guard lock(mutex_);
    status_.finished = finished;
  }
  /// Sets the total of `events`. True where it has changed.
  [[nodiscard]] bool shed_upstream(std::uint64_t events) {
    const std::lock_guard lock(mutex_);
    return std::exchange(status_.shed_upstream, events) != events;
  }
  void viewers(std::uint32_t count) {
    const std::lock_guard lock(mutex_);
    status_.viewers = count;
  }
  /// Sets the total of `connections`. True where it has changed.
  [[nodiscard]] bool flooding(std::uint64_t connections) {
    const std::lock_guard lock(mutex_);
    return std::exchange(status_.flooding, connections) != connections;
  }
  /// Stores the first error of the recording; empty: there is none. True where it was stored now.
  [[nodiscard]] bool recording_failed(const std::string& error) {
    const std::lock_guard lock(mutex_);
    if (error.empty() || !status_.recording_error.empty()) return false;
    status_.recording_error = error;
    return true;
  }

  // Written by other threads, read by the collector's.
  void note_exit(std::uint32_t rank, std::int32_t exit_code) {
    const std::lock_guard lock(mutex_);
    exits_.emplace_back(rank, exit_code);
  }
  [[nodiscard]] std::vector<std::pair<std::uint32_t, std::int32_t>> take_exits() {
    const std::lock_guard lock(mutex_);
    return std::exchange(exits_, {});
  }
  void note_over() noexcept { all_gone_.store(true); }
  [[nodiscard]] bool all_gone() const noexcept { return all_gone_.load(); }

  void ask_detail(instrumentation::Detail detail) {
    const std::lock_guard lock(mutex_);
    detail_ = detail;
  }
  [[nodiscard]] std::optional<instrumentation::Detail> take_detail() {
    const std::lock_guard lock(mutex_);
    return std::exchange(detail_, std::nullopt);
  }

  /// A moment that the owner requests nodes' collectors to keep as well.
  void request_of_nodes(store::Moment moment) {
    const std::lock_guard lock(mutex_);
    if (node_requests_.size() < Collector::kMostAskedFor) node_requests_.push_back(std::move(moment));
  }
  [[nodiscard]] std::vector<store::Moment> take_node_requests() {
    const std::lock_guard lock(mutex_);
    return std::exchange(node_requests_, {});
  }

  // Requests of viewers to the collector's owner.
  void ask_to_keep(store::Moment moment) {
    const std::lock_guard lock(mutex_);
    if (asked_for_.size() < Collector::kMostAskedFor) asked_for_.push_back(std::move(moment));
  }
  [[nodiscard]] std::vector<store::Moment> take_asked_for() {
    const std::lock_guard lock(mutex_);
    return std::exchange(asked_for_, {});
  }

 private:
  struct Failure {
    std::uint32_t rank = 0;
    std::int32_t code = 0;
    std::string text;
  };

  void set_exit() {
    status_.exit_code = failures_.empty() ? 0 : failures_.front().code;
    status_.failure = failures_.empty()
                          ? ""
                          : "rank " + std::to_string(failures_.front().rank) + ": " + failures_.front().text;
  }
  void add(std::uint64_t& to, std::uint64_t count) {
    const std::lock_guard lock(mutex_);
    to += count;
  }

  mutable std::mutex mutex_;
  CollectorStatus status_;
  std::vector<Failure> failures_;  ///< of ranks that have not been restarted, in the order of their reports
  std::vector<std::pair<std::uint32_t, std::int32_t>> exits_;
  std::optional<instrumentation::Detail> detail_;  ///< requested by the owner
  std::vector<store::Moment> asked_for_, node_requests_;
  std::atomic<bool> all_gone_{false};  ///< the processes of all ranks have ended
};

}  // namespace shardscope::collector
