// The ranks of a run: bootstrap by MPI, the node's shared memory, and propagation of failures. No MPI type
// appears here.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/base/emulated_link.h"
#include "runtime/comm/communicator.h"

namespace shardscope::comm {

class GroupWorld;
class Transport;

struct WorldOptions {
  base::EmulatedLink link;
  std::chrono::milliseconds timeout{std::chrono::seconds(60)};  ///< longest wait inside one collective
  enum class Transport : std::uint8_t { automatic, shared_memory, mpi } transport = Transport::automatic;
};

class World {
 public:
  virtual ~World() = default;
  /// The emulated link of communicators made from now on. Set after construction because reading the
  /// configuration needs the world's size.
  void set_link(const base::EmulatedLink& link) noexcept { link_ = link; }
  /// Communicators made from now on compare every collective between the ranks, even if their transport omits
  /// that because it makes the host wait (zero_optimization.enable_sanity_checks).
  void set_sanity_checks(bool on) noexcept { sanity_checks_ = on; }
  [[nodiscard]] virtual std::uint32_t rank() const noexcept = 0;
  [[nodiscard]] virtual std::uint32_t size() const noexcept = 0;
  [[nodiscard]] virtual std::uint32_t ranks_per_node() const noexcept = 0;
  /// Memory the peers of this node can read; give it to make_cpu_device. Null with the MPI transport.
  [[nodiscard]] virtual device::SharedRegion* region() = 0;
  /// From now on ranks [k*n, (k+1)*n) count as one node, whatever machine they are on: hierarchical schemes
  /// can be run on one machine. Throws BackendError when the world is not a multiple of n.
  void set_ranks_per_node(std::uint32_t n);
  /// As set, or as the launcher placed the ranks.
  [[nodiscard]] std::uint32_t node_size() const noexcept {
    return node_size_ > 0 ? node_size_ : ranks_per_node();
  }
  /// A communicator of all ranks with its own ordering. Collective: every rank calls it in the same order.
  [[nodiscard]] std::unique_ptr<Communicator> make_communicator(const std::string& name);
  /// A communicator of the ranks of `group`, which contains this one. Collective over the world: every rank
  /// calls it, in the same order, with the group it belongs to. Throws BackendError on a bad group, and if
  /// its members pass different groups.
  [[nodiscard]] std::unique_ptr<Communicator> make_communicator(const std::string& name, const Group& group);
  /// From now on `adapt` creates the transport of every communicator from the host's (comm/cuda/attach.h).
  using Adapter = std::function<std::unique_ptr<Transport>(std::unique_ptr<Transport> host,
                                                           const std::string& name, const Group& group)>;
  void set_adapter(Adapter adapt) { adapt_ = std::move(adapt); }
  /// Tells every rank that this one failed; their waits throw BackendError carrying this message. Only the
  /// first failure is kept. Communicators and worlds destroyed by an exception notify the others themselves;
  /// main then calls this in its handler to send the reason.
  virtual void fail(const std::string& message) noexcept = 0;
  /// Message of the first rank that failed; empty if none did.
  [[nodiscard]] virtual std::string first_failure() const = 0;

 protected:
  explicit World(const base::EmulatedLink& link) noexcept : link_(link) {}
  /// The group of make_communicator() without one.
  [[nodiscard]] virtual Group all_ranks() const;
  /// The transport of `group`, which has been checked. Collective over the world.
  [[nodiscard]] virtual std::unique_ptr<Transport> make_transport(const std::string& name,
                                                                  const Group& group) = 0;

 private:
  friend class GroupWorld;  // makes its transports
  base::EmulatedLink link_;
  bool sanity_checks_ = false;
  std::uint32_t node_size_ = 0;             ///< 0: not set
  Adapter adapt_;                           ///< none: the host's transports are used
  std::atomic<std::uint32_t> sequence_{0};  ///< of collectives, across communicators
};

/// Initialises MPI (thread level MULTIPLE) once per process. Throws BackendError, and LaunchError if the
/// environment names more ranks than the one found.
[[nodiscard]] std::unique_ptr<World> make_world(int* argc, char*** argv, const WorldOptions& options);

/// Several ranks as threads of one process, for tests: thread r uses element r.
[[nodiscard]] std::vector<std::unique_ptr<World>> make_thread_worlds(std::uint32_t size,
                                                                     const WorldOptions& options);

}  // namespace shardscope::comm
