// The order check on real processes: shared memory and MPI carry it. NCCL's communicators hand host values to
// the same transports (nccl_transport.h), so this is what runs there too.
#include "runtime/engine/trace_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plan/model_plan.h"
#include "tests/runtime/comm/mpi_world.h"

namespace shardscope::engine {
namespace {

using plan::Direction;
using plan::ModuleId;
using ::testing::HasSubstr;

/// What check_same_trace() throws on this rank when it recorded these modules; "" for nothing.
std::string checked(comm::Communicator& control, const std::vector<std::uint32_t>& modules) {
  const plan::ModelPlan model = plan::build_model_plan(plan::named_model("mlp"));
  plan::FetchScheduler scheduler(model, control.world(), {});
  (void)scheduler.begin_iteration();
  for (const std::uint32_t module : modules) {
    (void)scheduler.fetch(ModuleId{module}, Direction::forward);
    (void)scheduler.release(ModuleId{module}, Direction::forward);
  }
  (void)scheduler.begin_iteration();
  try {
    check_same_trace(scheduler, model, control);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return {};
}

TEST(TraceCheck, NamesTheStepTheRankAndTheModules) {
  comm::World& world = shardscope::testing::mpi_world();
  const auto control = world.make_communicator("control");
  const std::uint32_t last = world.size() - 1;
  const bool odd = world.rank() == last;
  const std::string who = "rank " + std::to_string(last);
  EXPECT_EQ(checked(*control, {0, 1, 3, 7, 11}), "");
  EXPECT_THAT(checked(*control, {0, 1, 3, odd ? 11U : 7U, odd ? 7U : 11U}),
              HasSubstr("at step 3 rank 0 ran blk.1 (module 7), " + who + " ran blk.2 (module 11)"));
  EXPECT_THAT(checked(*control, odd ? std::vector<std::uint32_t>{0, 1} : std::vector<std::uint32_t>{0, 1, 3}),
              HasSubstr("at step 2 rank 0 ran blk.0 (module 3), " + who + " ran no further module"));
  EXPECT_THAT(checked(*control, odd ? std::vector<std::uint32_t>{0, 1, 3} : std::vector<std::uint32_t>{0, 1}),
              HasSubstr("at step 2 rank 0 ran no further module, " + who + " ran blk.0 (module 3)"));
  EXPECT_EQ(checked(*control, {0, 1}), "") << "the ranks are still together";
}

}  // namespace
}  // namespace shardscope::engine
