#pragma once

#include <memory>

#include "runtime/comm/world.h"

namespace shardscope::testing {

/// The world of this mpirun; made by main, with the transport its argument names.
comm::World& mpi_world();

}  // namespace shardscope::testing
