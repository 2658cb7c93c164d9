// Collectives by reading the peers' memory where it lies: publish where, meet, read and reduce one's own
// part, meet again.
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
  /// `members`: world ranks of the group, ascending, this one among them. `regions[r]`: region of member r as
  /// mapped here. Channel `index` belongs to this communicator and to those of groups without common members.
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
  /// Where a rank's part lies; written to by an all-reduce only.
  [[nodiscard]] std::byte* source(std::uint32_t rank, std::size_t part) const noexcept;
  /// Publishes `bytes` of this rank, meets the others, checks that all made the same call.
  std::size_t host_round(const char* what, std::span<const std::byte> mine, std::size_t bytes);
  void all_reduce(const Collective& collective, std::size_t index, const kernels::Exec& exec);
  void gather(const Part& part, std::size_t index, std::size_t size);
  void exchange(const Part& part, std::size_t index, std::size_t size);
  void reduce_range(const Collective& collective, std::size_t index, std::int64_t begin, std::int64_t end,
                    void* out, const kernels::Exec& exec);
  void meet(const Collective& collective);

  [[nodiscard]] std::uint32_t world() const noexcept { return static_cast<std::uint32_t>(members_.size()); }

  Node& node_;
  const std::vector<std::uint32_t> members_;  ///< world ranks; other ranks here are places in this list
  const std::uint32_t rank_;
  const ControlPages::Channel channel_;
  const std::string name_;
  const std::vector<std::span<std::byte>> regions_;
  std::uint64_t calls_ = 0;          ///< stream's worker only
  std::uint64_t host_calls_ = 0;     ///< host thread only
  std::vector<const void*> inputs_;  ///< scratch of reduce_range: one address per member
};

}  // namespace shardscope::comm
