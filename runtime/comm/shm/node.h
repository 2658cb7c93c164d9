// One rank's view of the ranks of its node: bounded barriers, the first failure, which ranks are alive. Used
// by the host thread and by every stream's worker at the same time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/comm/shm/control.h"
#include "runtime/comm/shm/mapping.h"

namespace shardscope::comm {

class Node {
 public:
  /// `control` must outlive this. Writes this rank's pid; call watch_peers() once all ranks have.
  Node(ControlPages control, std::uint32_t rank, std::uint32_t size, std::chrono::milliseconds timeout);
  /// Marks this rank as departed, so that no peer waits for it.
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// For ranks in other processes: detects from now on when they end.
  void watch_peers();

  [[nodiscard]] std::uint32_t rank() const noexcept { return rank_; }
  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  [[nodiscard]] const ControlPages& control() const noexcept { return control_; }

  enum class Side : std::uint8_t { stream, host };
  /// Returns when all `members` (ranks of the node, this one included) have arrived at this barrier of the
  /// channel. Throws BackendError if a rank failed or ended, or if the time-out has passed; `what` describes
  /// this rank's call for the message.
  void barrier(const ControlPages::Channel& channel, std::span<const std::uint32_t> members, Side side,
               const std::function<std::string()>& what);
  void check_failure() const;
  /// Only the first failure of all ranks is kept.
  void fail(const std::string& message) noexcept;
  /// An exception is ending this rank; fail() may set the reason later.
  void abandon() noexcept;
  /// "rank 2 failed: message"; empty if none.
  [[nodiscard]] std::string first_failure() const;
  /// Waits until every rank has departed, at most `longest`; false if one ended without departing (it will
  /// never reach MPI_Finalize) or has not departed by then.
  [[nodiscard]] bool wait_for_departures(std::chrono::milliseconds longest) const noexcept;
  void depart() noexcept;

 private:
  [[nodiscard]] bool ended(std::uint32_t rank) const noexcept;
  void wake_all() const noexcept;
  void fail_and_throw(const std::string& message, const std::string& what);

  ControlPages control_;
  const std::uint32_t rank_;
  const std::uint32_t size_;
  const std::chrono::milliseconds timeout_;
  std::vector<FileDescriptor> pidfds_;  ///< empty for ranks of one process
};

}  // namespace shardscope::comm
