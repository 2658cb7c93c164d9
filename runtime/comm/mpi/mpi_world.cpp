#include "runtime/comm/mpi/mpi_world.h"

#include <unistd.h>

#include <exception>
#include <vector>

#include "runtime/comm/communicator_core.h"
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
  // failure and write their last words first.
  session_.abandon();
  usleep(300'000);
}

std::unique_ptr<Communicator> MpiWorld::make_communicator(const std::string& name) {
  link_.check_failure();
  auto transport = std::make_unique<MpiTransport>(link_, name);
  std::vector<std::byte> names(size());
  const std::byte mine{};
  transport->host_all_gather(("make " + name).c_str(), {&mine, 1}, names);
  return std::make_unique<CommunicatorCore>(rank(), size(), name, std::move(transport), link(), sequence_);
}

}  // namespace shardscope::comm
