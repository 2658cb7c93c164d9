// Collectives over MPI, for ranks on several nodes. Sums are taken in rank order by the owner of a range
// and not by MPI, so that the result has the same bits as with shared memory.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "runtime/comm/mpi/mpi_link.h"
#include "runtime/comm/transport.h"

namespace shardscope::comm {

class MpiTransport final : public Transport {
 public:
  /// Collective over the world: every rank makes its communicators in the same order. `members`: world ranks
  /// of this rank's group, ascending; the groups of all ranks are equal or disjoint.
  MpiTransport(MpiLink& link, std::string name, std::vector<std::uint32_t> members);
  ~MpiTransport() override;

  [[nodiscard]] std::string describe() const override { return "MPI"; }
  void check_memory(const void*, std::size_t) const override {}
  void enter(const Collective& collective) override;
  void move(const Collective& collective, const kernels::Exec& exec) override;
  /// Nothing to wait for: MPI's requests end when the memory they read may change again.
  void leave(const Collective&) override {}
  void check_failure() const override { link_.check_failure(); }
  void abandon() noexcept override { link_.abandon(); }
  void host_all_gather(const char* what, std::span<const std::byte> mine, std::span<std::byte> all) override;
  void host_broadcast(std::span<std::byte> bytes, std::uint32_t root) override;

 private:
  struct Scratch;
  [[nodiscard]] std::uint32_t world() const noexcept { return static_cast<std::uint32_t>(members_.size()); }
  void all_gather(const Collective& collective);
  void all_to_all(const Collective& collective);
  void reduce_scatter(const Collective& collective, const Part& part, void* out, const kernels::Exec& exec);
  void reduce(const Collective& collective, const Part& part, const kernels::Exec& exec);
  void all_reduce(const Collective& collective, const Part& part, const kernels::Exec& exec);
  void sum(const Collective& collective, void* out, std::int64_t elems, std::int64_t stride,
           const kernels::Exec& exec);
  void wait(MPI_Request& request, const Collective& collective);
  void wait_host(MPI_Request& request, const char* what);

  MpiLink& link_;
  const std::string name_;
  const std::vector<std::uint32_t>
      members_;  ///< world ranks; all other ranks here are indices into this list
  const std::uint32_t rank_;
  MPI_Comm stream_comm_ = MPI_COMM_NULL;  ///< stream's worker only
  MPI_Comm host_comm_ = MPI_COMM_NULL;    ///< host thread only
  std::unique_ptr<Scratch> scratch_;
  std::uint64_t calls_ = 0;  ///< stream's worker only
};

}  // namespace shardscope::comm
