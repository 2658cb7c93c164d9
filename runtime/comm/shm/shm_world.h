// Ranks that share a node's memory: processes that map each other's regions, or threads of one process.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/comm/bootstrap.h"
#include "runtime/comm/shm/mapping.h"
#include "runtime/comm/shm/node.h"
#include "runtime/comm/world.h"

namespace shardscope::comm {

class ShmWorld final : public World {
 public:
  /// shared_ptr: threads of one process share the mappings; a process is their only owner.
  struct Memory {
    std::shared_ptr<const Mapping> control;
    std::vector<std::shared_ptr<const Mapping>> regions;  ///< by rank
  };
  ShmWorld(std::uint32_t rank, std::uint32_t size, Memory memory, const WorldOptions& options);
  /// Destruction by an exception notifies the other ranks.
  ~ShmWorld() override;

  [[nodiscard]] std::uint32_t rank() const noexcept override { return node_.rank(); }
  [[nodiscard]] std::uint32_t size() const noexcept override { return node_.size(); }
  [[nodiscard]] std::uint32_t ranks_per_node() const noexcept override { return node_.size(); }
  [[nodiscard]] device::SharedRegion* region() override { return &region_; }
  void fail(const std::string& message) noexcept override { node_.fail(message); }
  [[nodiscard]] std::string first_failure() const override { return node_.first_failure(); }

  [[nodiscard]] Node& node() noexcept { return node_; }
  /// Called by the destructor after a failure, with false if a rank ended without departing, so that
  /// MPI_Finalize would wait for ever.
  void set_after_failure(std::function<void(bool all_left)> callback) {
    after_failure_ = std::move(callback);
  }

 protected:
  [[nodiscard]] std::unique_ptr<Transport> make_transport(const std::string& name,
                                                          const Group& group) override;

 private:
  class OwnRegion final : public device::SharedRegion {
   public:
    explicit OwnRegion(const Mapping& mapping) : mapping_(mapping) {}
    [[nodiscard]] std::span<std::byte> bytes() const noexcept override { return mapping_.bytes(); }
    void discard(std::span<std::byte> pages) override { mapping_.discard(pages); }

   private:
    const Mapping& mapping_;
  };

  Memory memory_;  ///< before node_ and region_, which point into it
  Node node_;
  OwnRegion region_;
  std::size_t communicators_ = 0;  ///< made so far: number of the next channel
  const int exceptions_at_start_;
  std::function<void(bool)> after_failure_;
};

/// Creates this process's region and maps those of its peers. Collective over `bootstrap`. Throws
/// BackendError, on every rank, if the system does not let processes share memory.
[[nodiscard]] std::unique_ptr<ShmWorld> make_process_world(Bootstrap& bootstrap, const WorldOptions& options);

}  // namespace shardscope::comm
