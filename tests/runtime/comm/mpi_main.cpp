// Runs the same tests on every rank of an mpirun. The outcome of each test is shared, so that ranks stay
// together: a rank that saw a failure does not leave the others in a collective.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/runtime/comm/mpi_world.h"

namespace shardscope::testing {
namespace {
std::unique_ptr<comm::World> g_world;
}
comm::World& mpi_world() { return *g_world; }
}  // namespace shardscope::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  shardscope::comm::WorldOptions options;
  options.timeout = std::chrono::seconds(20);
  options.transport = shardscope::comm::WorldOptions::Transport::shared_memory;
  if (argc > 1 && std::strcmp(argv[1], "mpi") == 0) {
    options.transport = shardscope::comm::WorldOptions::Transport::mpi;
  }
  shardscope::testing::g_world = shardscope::comm::make_world(&argc, &argv, options);
  if (shardscope::testing::mpi_world().rank() != 0) {
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    if (std::getenv("SHARDSCOPE_TEST_VERBOSE") == nullptr)
      delete listeners.Release(listeners.default_result_printer());
  }
  const int result = RUN_ALL_TESTS();
  shardscope::testing::g_world.reset();
  return result;
}
