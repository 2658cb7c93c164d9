// The collectives among processes, through the transport that main was given.
#include <gtest/gtest.h>

#include "tests/runtime/comm/collective_cases.h"
#include "tests/runtime/comm/mpi_world.h"

namespace shardscope::testing {
namespace {

class MpiCollectives : public ::testing::TestWithParam<kernels::DType> {
 protected:
  void run(void (*check)(comm::World&, device::Device&, kernels::DType)) {
    const auto device = device::make_cpu_device(mpi_world().region());
    check(mpi_world(), *device, GetParam());
  }
};

TEST_P(MpiCollectives, AllGather) { run(check_all_gather); }
TEST_P(MpiCollectives, ReduceScatter) { run(check_reduce_scatter); }
TEST_P(MpiCollectives, Reduce) { run(check_reduce); }
TEST_P(MpiCollectives, AllReduce) { run(check_all_reduce); }
TEST_P(MpiCollectives, SameBitsWhicheverWayItIsReduced) { run(check_same_bits); }
TEST_P(MpiCollectives, AllToAll) { run(check_all_to_all); }
TEST_P(MpiCollectives, Groups) { run(check_groups); }
TEST_P(MpiCollectives, HostValues) { run(check_host_values); }
TEST_P(MpiCollectives, TwoCommunicatorsAtOnce) { run(check_two_communicators); }

INSTANTIATE_TEST_SUITE_P(Types, MpiCollectives,
                         ::testing::Values(kernels::DType::f32, kernels::DType::bf16, kernels::DType::f16));

TEST(MpiWorld, TellsWhoItIs) {
  comm::World& world = mpi_world();
  EXPECT_LT(world.rank(), world.size());
  EXPECT_EQ(world.ranks_per_node(), world.size());
  const auto communicator = world.make_communicator("identity");
  EXPECT_EQ(communicator->rank(), world.rank());
  EXPECT_EQ(communicator->describe(), world.region() != nullptr ? "shared memory" : "MPI");
}

}  // namespace
}  // namespace shardscope::testing
