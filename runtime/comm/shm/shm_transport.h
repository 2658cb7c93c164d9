// Collectives by reading the peers' memory in place: publish addresses, barrier, read and reduce the own
// part, barrier.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/comm/shm/node.h"
#include "runtime/comm/transport.h"

namespace shardscope::comm {

class ShmTransport final : public Transport {
 public:
  /// `members`: world ranks of the group, ascending, this one included. `regions[r]`: region of member r as
  /// mapped here. Channel `index` is used by this communicator and by those of disjoint groups.
  ShmTransport(Node& node, std::size_t index, std::string name, std::vector<std::uint32_t> members,
               std::vector<std::span<std::byte>> regions);

  [[nodiscard]] std::string describe() const override { return "shared memory"; }
  void check_memory(const void* data, std::size_t bytes) const override;
  void enter(const Collective& collective) override;
  void move(const Collective& collective, const kernels::Exec& exec) override;
  void leave(const Collective& collective) override;
  void check_failure() const override { node_.check_failure(); }
  void abandon() noexcept override { node_.abandon(); }
  void host_all_gather(const char* what, std::span<const std::byte> mine, std::span<std::byte> all) override;
  void host_broadcast(std::span<std::byte> bytes, std::uint32_t root) override;

 private:
  /// Address of a rank's part; only an all-reduce writes to it.
  [[nodiscard]] std::byte* source(std::uint32_t rank, std::size_t part) const noexcept;
  /// Publishes `bytes` of this rank, waits at the barrier, checks that all ranks made the same call.
  std::size_t host_round(const char* what, std::span<const std::byte> mine, std::size_t bytes);
  void all_reduce(const Collective& collective, std::size_t index, const kernels::Exec& exec);
  void gather(const Part& part, std::size_t index, std::size_t size);
  void exchange(const Part& part, std::size_t index, std::size_t size);
  void reduce_range(const Collective& collective, std::size_t index, std::int64_t begin, std::int64_t end,
                    void* out, const kernels::Exec& exec);
  void meet(const Collective& collective);

  [[nodiscard]] std::uint32_t world() const noexcept { return static_cast<std::uint32_t>(members_.size()); }

  Node& node_;
  const std::vector<std::uint32_t>
      members_;  ///< world ranks; all other ranks here are indices into this list
  const std::uint32_t rank_;
  const ControlPages::Channel channel_;
  const std::string name_;
  const std::vector<std::span<std::byte>> regions_;
  std::uint64_t calls_ = 0;          ///< stream's worker only
  std::uint64_t host_calls_ = 0;     ///< host thread only
  std::vector<const void*> inputs_;  ///< scratch of reduce_range: one address per member
};

}  // namespace shardscope::comm
