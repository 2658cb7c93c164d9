#include "runtime/comm/world.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "runtime/base/emulated_link.h"
#include "runtime/comm/communicator_core.h"
#include "runtime/comm/launch_check.h"
#include "runtime/comm/mpi/mpi_world.h"
#include "runtime/comm/mpi/session.h"
#include "runtime/comm/shm/shm_world.h"
#include "runtime/device/error.h"

namespace shardscope::comm {
namespace {

/// Checks this rank's group only. If a rank throws here, the wait of the others in compare_groups() ends by
/// its notice of failure or by the time-out.
void check_group(const std::string& name, const Group& group, std::uint32_t rank, std::uint32_t size) {
  const std::vector<std::uint32_t>& members = group.members;
  std::string problem;
  if (std::adjacent_find(members.begin(), members.end(), std::greater_equal<>()) != members.end()) {
    problem = "its members do not ascend";
  } else if (!std::binary_search(members.begin(), members.end(), rank)) {
    problem = "this rank is not a member";
  } else if (members.back() >= size) {
    problem = "rank " + std::to_string(members.back()) + " is a member, but the world has " +
              std::to_string(size) + " ranks";
  }
  if (problem.empty()) return;
  throw BackendError("make_communicator", 0, "'" + name + "': " + problem, "rank " + std::to_string(rank));
}

/// All members must pass the same name and ranks.
void compare_groups(const std::string& name, const Group& group, Transport& transport) {
  std::uint64_t mine = 14695981039346656037ULL;  // FNV-1a over the members
  for (const std::uint32_t member : group.members) mine = (mine ^ member) * 1099511628211ULL;
  std::vector<std::uint64_t> all(group.members.size());
  // The name is compared by the transport, the members by their hash.
  transport.host_all_gather(("make " + name).c_str(), std::as_bytes(std::span(&mine, 1)),
                            std::as_writable_bytes(std::span(all)));
  if (std::all_of(all.begin(), all.end(), [mine](std::uint64_t other) { return other == mine; })) return;
  throw BackendError("make_communicator", 0,
                     "'" + name + "': its members do not agree on the list of members", "comm");
}

/// `found`: ranks that this process can see.
void check_launch(std::uint32_t found) {
  const auto environment = [](const char* name) { return std::getenv(name); };
  if (const auto problem = launch_problem(environment, found)) throw LaunchError(*problem);
}

}  // namespace

void World::set_ranks_per_node(std::uint32_t n) {
  if (n == 0 || size() % n != 0) {
    throw BackendError("set_ranks_per_node", 0,
                       "ranks_per_node is " + std::to_string(n) + ", which does not divide the " +
                           std::to_string(size()) + " ranks of the run",
                       "comm");
  }
  node_size_ = n;
}

Group World::all_ranks() const {
  Group all;
  all.members.resize(size());
  std::iota(all.members.begin(), all.members.end(), 0U);
  return all;
}

std::unique_ptr<Communicator> World::make_communicator(const std::string& name) {
  return make_communicator(name, all_ranks());
}

/// Collective in two places: make_transport() and compare_groups(). Later checks depend on values equal on
/// all members, so they throw on all or none.
std::unique_ptr<Communicator> World::make_communicator(const std::string& name, const Group& group) {
  check_group(name, group, rank(), size());
  // The host's own transport, also under a device: the groups are compared over it, and an adapter keeps it
  // for host values and failures.
  std::unique_ptr<Transport> transport = make_transport(name, group);
  compare_groups(name, group, *transport);
  if (adapt_) transport = adapt_(std::move(transport), name, group);
  // Members ascend and a node's ranks are consecutive, so first and last decide.
  const bool one_node = group.members.front() / node_size() == group.members.back() / node_size();
  const base::EmulatedLink link = one_node ? link_.within_node() : link_;
  // hold() would sleep on the host thread, which only queues such collectives.
  if (transport->asynchronous() && (link.gbps > 0 || link.latency_us > 0)) {
    throw BackendError("make_communicator", 0,
                       "a link is emulated on host threads, and the collectives of '" + name +
                           "' run on a device; remove comm.emulated_link or run with --device cpu",
                       "rank " + std::to_string(rank()));
  }
  // A transport that compares in enter() needs no second exchange.
  const bool compare = sanity_checks_ && !transport->compares();
  // sequence_ is this World's: collectives of all its communicators are numbered together.
  return std::make_unique<CommunicatorCore>(group, rank(), name, std::move(transport), link, sequence_,
                                            compare);
}

std::unique_ptr<World> make_world(int* argc, char*** argv, const WorldOptions& options) {
  using enum WorldOptions::Transport;
  // A single rank, without MPI, but with a region of shared memory.
  if (!launched_by_mpi() && options.transport != mpi) {
    check_launch(1);
    SoloBootstrap solo;
    return make_process_world(solo, options);
  }
  // The decisions below depend on values that are equal on all ranks: sizes of the session and `options`.
  MpiSession& session = MpiSession::instance(argc, argv);
  check_launch(session.size());
  const bool one_node = session.ranks_per_node() == session.size();
  // Shared memory reaches one node only.
  if (options.transport == mpi || (options.transport == automatic && !one_node)) {
    return std::make_unique<MpiWorld>(session, options);
  }
  if (!one_node) {
    throw BackendError("make_world", 0,
                       "shared memory was asked for, but only " + std::to_string(session.ranks_per_node()) +
                           " of " + std::to_string(session.size()) +
                           " ranks share a node; use the MPI transport",
                       "comm");
  }
  try {
    // Needed until the world is made; afterwards ranks communicate through shared memory.
    MpiBootstrap bootstrap(session.rank(), session.size());
    std::unique_ptr<ShmWorld> world = make_process_world(bootstrap, options);
    world->set_after_failure([&session](bool all_left) {
      // MPI_Finalize at the process's end would wait for the rank that is gone.
      if (!all_left) session.abandon();
    });
    return world;
  } catch (const BackendError& error) {
    // Thrown on every rank or on none, so all choose the same transport.
    if (options.transport == shared_memory) throw;
    if (session.rank() == 0)
      std::fprintf(stderr, "shardscope: %s; using MPI, which is slower\n", error.what());
    return std::make_unique<MpiWorld>(session, options);
  }
}

}  // namespace shardscope::comm
