// Gradients on their way into buckets: the buffers they are in, and gradients that come twice.
#include <gtest/gtest.h>

#include "instrumentation/emitter.h"
#include "instrumentation/ring.h"
#include "runtime/engine/gradients.h"
#include "runtime/execution/events.h"
#include "tests/runtime/comm/thread_ranks.h"
#include "tests/runtime/engine/support.h"

namespace shardscope::engine::testing::gradient_buckets_test {
namespace {

using execution::EventPool;

/// Emission at `detail` as long as it lives.
class Emission {
 public:
  explicit Emission(ev::Detail detail) : before_(ev::g_detail.exchange(static_cast<int>(detail))) {
    (void)events();
  }
  ~Emission() {
    (void)events();
    ev::g_detail = before_;
  }
  Emission(const Emission&) = delete;
  Emission& operator=(const Emission&) = delete;
  /// Since the last call.
  static std::vector<ev::Event> events() {
    std::vector<ev::Event> out;
    ev::RingRegistry::instance().drain(out);
    return out;
  }

 private:
  int before_;
};

/// Buffers of the buckets of one rank, in the order in which they were opened, by micro-step.
std::vector<std::vector<std::uint32_t>> buffers(int stage, bool overlap, bool contiguous) {
  RunSpec spec;
  spec.model = model_named("mlp");
  spec.config = make_config(stage, 2);
  // Some parameters of 16384 elements are buckets of their own, others share one.
  spec.config["zero_optimization"].update(
      {{"reduce_bucket_size", 10000}, {"overlap_comm", overlap}, {"contiguous_gradients", contiguous}});
  spec.steps = 2;
  const Emission emission(ev::Detail::params);
  const TrainingRun run = train(spec);
  EXPECT_EQ(run.ranks[0].error, "");
  std::vector<std::vector<std::uint32_t>> by_backward(1);
  std::vector<std::uint32_t> opened;
  for (const ev::Event& event : Emission::events()) {
    if (event.kind == ev::EventKind::bucket_open) {
      by_backward.back().push_back(event.c);
    } else if (event.kind == ev::EventKind::bucket_flush &&
               event.code >= static_cast<std::uint8_t>(plan::FlushReason::epilogue)) {
      by_backward.emplace_back();
    }
  }
  by_backward.pop_back();
  return by_backward;
}

TEST(BucketOpen, SaysWhichOfTheTwoBuffersWithOverlap) {
  for (const int stage : {1, 2, 3}) {
    const auto backwards = buffers(stage, true, true);
    ASSERT_EQ(backwards.size(), stage == 1 ? 2U : 4U) << "stage " << stage;
    for (const auto& opened : backwards) {
      ASSERT_GT(opened.size(), 4U);
      for (std::size_t i = 0; i < opened.size(); ++i) EXPECT_EQ(opened[i], i % 2) << "stage " << stage;
    }
  }
}

TEST(BucketOpen, SaysTheOnlyBufferWithoutOverlapOrContiguousGradients) {
  for (const int stage : {1, 2, 3}) {
    for (const auto& [overlap, contiguous] : {std::pair{false, true}, {true, false}}) {
      for (const auto& opened : buffers(stage, overlap, contiguous)) {
        ASSERT_GT(opened.size(), 4U);
        for (const std::uint32_t buffer : opened) EXPECT_EQ(buffer, 0U) << "stage " << stage;
      }
    }
  }
}

// DeepSpeed's "Gradient computed twice for this partition" (S14): a second sum would be lost or counted
// twice.
TEST(Gradients, ReadyTwiceInOneBackwardIsRefusedByName) {
  const plan::ModelPlan model = plan::build_model_plan(model_named("mlp"));
  for (const int stage : {0, 1, 2, 3}) {
    config::ParseOptions parse;
    parse.world = 1;
    const config::TrainingConfig config = config::parse_config(make_config(stage, 2).dump(), parse);
    const auto body = [&](comm::World& world, device::Device& device) {
      const auto gather = world.make_communicator("gather");
      const auto reduce = world.make_communicator("reduce");
      const auto control = world.make_communicator("control");
      instrumentation::GateKeeper gates;
      const Context context{model, config, device, *gather, *reduce, *control, gates};
      const plan::Ownership ownership(model, config.zero, 1);
      EventPool events(device);
      const auto gradients = stage < 2 ? make_resident_gradients(context, events, ownership)
                                       : make_sharded_gradients(context, events, ownership);
      const plan::ParamPlan& param = model.params[2];
      for (const std::int64_t micro : {0, 1}) {  // once in each backward is as it should be
        gradients->begin_backward({micro, 2});
        (void)gradients->target(param.id);
        gradients->ready(param.id);
        if (micro == 0) gradients->end_backward();
      }
      try {
        gradients->ready(param.id);
        ADD_FAILURE() << "stage " << stage;
      } catch (const std::logic_error& error) {
        EXPECT_EQ(std::string(error.what()), "gradient of " + param.name + " is ready twice in one backward");
      }
      gradients->end_backward();
      gradients->drain();
      device.synchronize();
    };
    for (const auto& outcome : shardscope::testing::run_ranks(1, {}, body)) EXPECT_EQ(outcome.error, "");
  }
}

}  // namespace
}  // namespace shardscope::engine::testing::gradient_buckets_test
