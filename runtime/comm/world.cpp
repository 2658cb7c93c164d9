#include "runtime/comm/world.h"

#include <cstdio>

#include "runtime/comm/mpi/mpi_world.h"
#include "runtime/comm/mpi/session.h"
#include "runtime/comm/shm/shm_world.h"
#include "runtime/device/error.h"

namespace shardscope::comm {

std::unique_ptr<World> make_world(int* argc, char*** argv, const WorldOptions& options) {
  using enum WorldOptions::Transport;
  if (!launched_by_mpi() && options.transport != mpi) {
    SoloBootstrap solo;
    return make_process_world(solo, options);
  }
  MpiSession& session = MpiSession::instance(argc, argv);
  const bool one_node = session.ranks_per_node() == session.size();
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
    MpiBootstrap bootstrap(session.rank(), session.size());
    std::unique_ptr<ShmWorld> world = make_process_world(bootstrap, options);
    world->set_after_failure([&session](bool all_left) {
      if (!all_left) session.abandon();
    });
    return world;
  } catch (const BackendError& error) {
    // Thrown on every rank or on none, so all come to the same transport.
    if (options.transport == shared_memory) throw;
    if (session.rank() == 0)
      std::fprintf(stderr, "shardscope: %s; using MPI, which is slower\n", error.what());
    return std::make_unique<MpiWorld>(session, options);
  }
}

}  // namespace shardscope::comm
