#include "runtime/comm/mpi/mpi_world.h"

#include <unistd.h>

#include <exception>

#include "runtime/comm/mpi/mpi_transport.h"

namespace shardscope::comm {

MpiWorld::MpiWorld(MpiSession& session, const WorldOptions& options)
    : World(options.link),
      session_(session),
      link_(session.rank(), session.size(), options.timeout),
      exceptions_at_start_(std::uncaught_exceptions()) {}

MpiWorld::~MpiWorld() {
  if (std::uncaught_exceptions() > exceptions_at_start_) link_.abandon();
  if (!link_.failed()) return;
  // The launcher ends every rank when one ends without MPI_Finalize; a moment lets the others see the
  // failure and write their messages first.
  // No MPI_Finalize: it waits for all ranks.
  session_.abandon();
  usleep(300'000);
}

std::unique_ptr<Transport> MpiWorld::make_transport(const std::string& name, const Group& group) {
  // Creating a communicator is a collective MPI call, which would wait for a failed rank.
  link_.check_failure();
  return std::make_unique<MpiTransport>(link_, name, group.members);
}

}  // namespace shardscope::comm
