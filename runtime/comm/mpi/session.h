// MPI in this process: initialised once, finalized once, errors as exceptions.
#pragma once

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "runtime/comm/bootstrap.h"

namespace shardscope::comm {

/// Throws BackendError with MPI's text when `code` is not MPI_SUCCESS.
void check_mpi(int code, const char* call);

/// A launcher (mpirun, srun, ...) started this process. Without one MPI is not initialised, since it would
/// start a daemon.
[[nodiscard]] bool launched_by_mpi() noexcept;

/// MPI_Init_thread(MULTIPLE) on the first call; MPI_Finalize at the end of the process, unless a rank failed:
/// MPI_Finalize would wait for it for ever.
class MpiSession {
 public:
  static MpiSession& instance(int* argc, char*** argv);
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
  [[nodiscard]] std::uint32_t rank() const noexcept { return rank_; }
  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint32_t ranks_per_node() const noexcept { return ranks_per_node_; }
  /// A rank of this run failed or is missing: skip MPI_Finalize.
  void abandon() noexcept { abandoned_ = true; }

 private:
  MpiSession(int* argc, char*** argv);
  ~MpiSession();
  std::uint32_t rank_ = 0;
  std::uint32_t size_ = 1;
  std::uint32_t ranks_per_node_ = 1;
  bool owns_ = false;
  bool abandoned_ = false;
};

class MpiBootstrap final : public Bootstrap {
 public:
  MpiBootstrap(std::uint32_t rank, std::uint32_t size) : rank_(rank), size_(size) {}
  [[nodiscard]] std::uint32_t rank() const noexcept override { return rank_; }
  [[nodiscard]] std::uint32_t size() const noexcept override { return size_; }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override;

 private:
  std::uint32_t rank_;
  std::uint32_t size_;
};

}  // namespace shardscope::comm
