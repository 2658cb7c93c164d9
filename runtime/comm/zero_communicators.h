// The communicators of ZeRO++ and MiCS, in addition to the three of every run: one for each group of
// plan::ZeroGroups and stream that uses it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/comm/communicator.h"
#include "runtime/plan/zero_groups.h"

namespace shardscope::comm {

class ZeroCommunicators {
 public:
  /// Creates a communicator: World::make_communicator, or a wrapper of it.
  using Make = std::function<std::unique_ptr<Communicator>(const std::string& name, const Group& group)>;

  /// Collective over the world; `rank` is this one's. Throws std::invalid_argument when the configuration
  /// asks for groups that the ranks do not form.
  ZeroCommunicators(const plan::ZeroConfig& zero, const plan::Topology& topology, std::uint32_t rank,
                    const Make& make);

  [[nodiscard]] const plan::Topology& topology() const noexcept { return topology_; }

  // Null where the configuration does not need them. On the gather stream:
  std::unique_ptr<Communicator> secondary;     ///< hpZ
  std::unique_ptr<Communicator> shard_gather;  ///< MiCS
  std::unique_ptr<Communicator> gather_inter;  ///< MiCS, hierarchical: first hop
  std::unique_ptr<Communicator> gather_intra;  ///< MiCS, hierarchical: second hop
  // On the reduce stream:
  std::unique_ptr<Communicator> shard_reduce;  ///< MiCS
  std::unique_ptr<Communicator> replica;       ///< MiCS, at the boundary
  std::unique_ptr<Communicator> reduce_intra;  ///< qgZ: first hop
  std::unique_ptr<Communicator> reduce_inter;  ///< qgZ: second hop

 private:
  plan::Topology topology_;
};

}  // namespace shardscope::comm
