// Waiting in MPI without hanging: every operation is non-blocking and polled with a bound, and a failure is
// sent to all ranks on a separate communicator.
//
// [Note: no MPI after a failure]
// A wait that ends with an exception leaves requests behind that still point at the caller's memory, and
// any later MPI call may make them progress. So once a failure is recorded this process calls MPI no
// more, apart from notifying the others at that moment: communicators are not freed and MPI_Finalize is not
// called (it would wait for ranks that are gone).
#pragma once

#include <mpi.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace shardscope::comm {

class MpiLink {
 public:
  MpiLink(std::uint32_t rank, std::uint32_t size, std::chrono::milliseconds timeout);
  ~MpiLink();
  MpiLink(const MpiLink&) = delete;
  MpiLink& operator=(const MpiLink&) = delete;

  [[nodiscard]] std::uint32_t rank() const noexcept { return rank_; }
  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  [[nodiscard]] bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }

  /// Waits for all requests. Throws BackendError if a rank failed or the time-out has passed.
  void wait(std::span<MPI_Request> requests, const std::function<std::string()>& what);
  /// Checks for a failure that another rank sent; throws BackendError when there is one.
  void check_failure();
  /// Records the failure and sends it to every rank; only the first counts.
  void fail(const std::string& message) noexcept;
  /// An exception not reported yet is ending this rank; a later fail() sets its text in this process, the
  /// others only learn that this rank stopped.
  void abandon() noexcept;
  [[nodiscard]] std::string first_failure() const;

 private:
  /// True when this call recorded it.
  bool record(const std::string& text) noexcept;
  void send_to_all(const std::string& text) noexcept;

  const std::uint32_t rank_;
  const std::uint32_t size_;
  const std::chrono::milliseconds timeout_;
  MPI_Comm failures_ = MPI_COMM_NULL;  ///< of all ranks; carries notices of failure only
  std::atomic<bool> failed_{false};    ///< set once, after first_failure_
  mutable std::mutex mutex_;
  std::string first_failure_;
  bool provisional_ = false;  ///< abandon() came first
};

}  // namespace shardscope::comm
