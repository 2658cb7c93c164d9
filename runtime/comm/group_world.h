// A subset of a world's ranks as a world, numbered from 0: code that trains one copy of a model sees no other
// rank.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/comm/world.h"

namespace shardscope::comm {

class GroupWorld final : public World {
 public:
  /// `members` are ranks of `whole`, ascending, this one included; `ranks_per_node` counts members only.
  /// Collectives among all of them have scope `group`, with `id` as in the run's tables. Calls collective
  /// over this world are collective over `whole`: all its ranks make the same calls, each in its own group.
  /// `whole` must outlive this. Throws BackendError on a bad group.
  GroupWorld(World& whole, std::vector<std::uint32_t> members, std::uint32_t ranks_per_node,
             std::uint32_t id);

  [[nodiscard]] std::uint32_t rank() const noexcept override { return rank_; }
  [[nodiscard]] std::uint32_t size() const noexcept override {
    return static_cast<std::uint32_t>(members_.size());
  }
  [[nodiscard]] std::uint32_t ranks_per_node() const noexcept override { return ranks_per_node_; }
  [[nodiscard]] device::SharedRegion* region() override { return whole_.region(); }
  /// To every rank of the whole world: if one copy fails, all stop.
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
