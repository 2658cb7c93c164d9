// Ranks without shared memory: on several nodes, or on one that does not allow it.
#pragma once

#include <memory>
#include <string>

#include "runtime/comm/mpi/mpi_link.h"
#include "runtime/comm/mpi/session.h"
#include "runtime/comm/world.h"

namespace shardscope::comm {

class MpiWorld final : public World {
 public:
  /// Collective over all ranks. `session` outlives this.
  MpiWorld(MpiSession& session, const WorldOptions& options);
  ~MpiWorld() override;

  [[nodiscard]] std::uint32_t rank() const noexcept override { return link_.rank(); }
  [[nodiscard]] std::uint32_t size() const noexcept override { return link_.size(); }
  [[nodiscard]] std::uint32_t ranks_per_node() const noexcept override { return session_.ranks_per_node(); }
  [[nodiscard]] device::SharedRegion* region() override { return nullptr; }
  void fail(const std::string& message) noexcept override { link_.fail(message); }
  [[nodiscard]] std::string first_failure() const override { return link_.first_failure(); }

 protected:
  [[nodiscard]] std::unique_ptr<Transport> make_transport(const std::string& name,
                                                          const Group& group) override;

 private:
  MpiSession& session_;
  MpiLink link_;
  const int exceptions_at_start_;
};

}  // namespace shardscope::comm
