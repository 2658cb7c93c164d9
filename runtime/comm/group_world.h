// Some ranks of a world as a world of their own, in which they count from 0: what trains one copy of a model
// needs to know of no other rank.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/comm/world.h"

namespace shardscope::comm {

class GroupWorld final : public World {
 public:
  /// `members` are ranks of `whole`, ascending, this one among them; `ranks_per_node` as the members count
  /// them. Collectives among all of them have scope `group`, with `id` as the run's tables describe it. What
  /// is collective over this world is so over `whole`: each of its ranks makes the same calls, in a group of
  /// its own. `whole` outlives this. Throws BackendError on a bad group.
  GroupWorld(World& whole, std::vector<std::uint32_t> members, std::uint32_t ranks_per_node,
             std::uint32_t id);

  [[nodiscard]] std::uint32_t rank() const noexcept override { return rank_; }
  [[nodiscard]] std::uint32_t size() const noexcept override {
    return static_cast<std::uint32_t>(members_.size());
  }
  [[nodiscard]] std::uint32_t ranks_per_node() const noexcept override { return ranks_per_node_; }
  [[nodiscard]] device::SharedRegion* region() override { return whole_.region(); }
  /// To every rank of the whole world: the copies go on together or not at all.
  void fail(const std::string& message) noexcept override { whole_.fail(message); }
  [[nodiscard]] std::string first_failure() const override { return whole_.first_failure(); }

 protected:
  [[nodiscard]] Group all_ranks() const override;
  [[nodiscard]] std::unique_ptr<Transport> make_transport(const std::string& name,
                                                          const Group& group) override;

 private:
  World& whole_;
  const std::vector<std::uint32_t> members_;
  const std::uint32_t ranks_per_node_;
  const std::uint32_t id_;
  std::uint32_t rank_ = 0;
};

}  // namespace shardscope::comm
