// Collectives against closed forms, over worlds, odd sizes, data types and placements.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <tuple>

#include "tests/runtime/comm/collective_cases.h"
#include "tests/runtime/comm/thread_ranks.h"

namespace shardscope::testing {
namespace {

using Case = std::tuple<std::uint32_t, kernels::DType>;

class Collectives : public ::testing::TestWithParam<Case> {
 protected:
  void run(void (*check)(comm::World&, device::Device&, kernels::DType)) {
    const auto [world, type] = GetParam();
    const auto outcomes =
        run_ranks(world, {}, [&, type = type](comm::World& w, device::Device& d) { check(w, d, type); });
    for (const auto& outcome : outcomes) EXPECT_EQ(outcome.error, "");
  }
};

TEST_P(Collectives, AllGather) { run(check_all_gather); }
TEST_P(Collectives, ReduceScatter) { run(check_reduce_scatter); }
TEST_P(Collectives, Reduce) { run(check_reduce); }
TEST_P(Collectives, AllReduce) { run(check_all_reduce); }
TEST_P(Collectives, SameBitsWhicheverWayItIsReduced) { run(check_same_bits); }
TEST_P(Collectives, AllToAll) { run(check_all_to_all); }
TEST_P(Collectives, Groups) { run(check_groups); }
TEST_P(Collectives, HostValues) { run(check_host_values); }
TEST_P(Collectives, TwoCommunicatorsAtOnce) { run(check_two_communicators); }

INSTANTIATE_TEST_SUITE_P(Worlds, Collectives,
                         ::testing::Combine(::testing::Values(1U, 2U, 3U, 4U, 5U),
                                            ::testing::Values(kernels::DType::f32, kernels::DType::bf16,
                                                              kernels::DType::f16)));

}  // namespace
}  // namespace shardscope::testing
