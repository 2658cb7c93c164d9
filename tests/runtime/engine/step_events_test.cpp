// The events of a step other than its loss: the micro-batch on its way to the device and the wait for it,
// by how much gradients were clipped, ZenFlow's votes, LoCo's resets. Against what the steps returned and the
// plan, on real ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "runtime/execution/events.h"
#include "runtime/plan/quantization.h"
#include "runtime/plan/zenflow.h"
#include "runtime/plan/zero_groups.h"
#include "tests/runtime/engine/rank_events.h"
#include "tests/runtime/engine/support.h"

namespace shardscope::engine::testing::step_events_test {
namespace {

using instrumentation::Event;
using instrumentation::EventKind;
using instrumentation::kNoId;
using instrumentation::StreamId;
using instrumentation::TransferKind;

std::vector<Event> of_kind(const ObservedRun& observed, std::uint32_t rank, EventKind kind) {
  std::vector<Event> found;
  for (const Event& event : observed.events.at(rank)) {
    if (event.kind == kind) found.push_back(event);
  }
  return found;
}

double number(const Event& event) { return std::bit_cast<double>(event.v0); }

config::TrainingConfig parsed(const RunSpec& spec) {
  config::ParseOptions parse;
  parse.world = spec.world;
  return config::parse_config(spec.config.dump(), parse);
}

/// Four samples of ten inputs and one label, both at boundaries of 64 bytes.
constexpr std::int64_t kBatchBytes = 192 + 64;

// Every micro-step waits for its batch, and the batch is on the device before computation begins. Nothing
// else is on the copy lane where nothing is offloaded.
TEST(InputEvents, EveryMicroBatchIsCopiedAndWaitedFor) {
  for (const int stage : {0, 1, 2, 3}) {
    SCOPED_TRACE(stage);
    RunSpec spec;
    spec.model = model_named("mlp");
    spec.world = 2;
    spec.steps = 3;
    spec.config = make_config(stage, 2);
    const ObservedRun observed = train_observed(spec);
    for (std::uint32_t rank = 0; rank < spec.world; ++rank) {
      const std::vector<Event> copies = observed.lane(rank, StreamId::copy);
      ASSERT_EQ(copies.size(), 2U * 6);
      for (std::size_t i = 0; i < copies.size(); ++i) {
        EXPECT_EQ(copies[i].kind, i % 2 == 0 ? EventKind::transfer_begin : EventKind::transfer_end);
        EXPECT_EQ(copies[i].code, static_cast<std::uint8_t>(TransferKind::input_to_device));
        EXPECT_EQ(copies[i].a, kNoId);
        EXPECT_EQ(copies[i].b, kNoId);
        EXPECT_EQ(copies[i].v0, kBatchBytes);
      }
      std::vector<Event> order;
      for (const Event& event : observed.lane(rank, StreamId::compute)) {
        const bool forward = event.kind == EventKind::phase_begin &&
                             event.code == static_cast<std::uint8_t>(instrumentation::Phase::forward);
        if (forward || event.kind == EventKind::data_wait_begin || event.kind == EventKind::data_wait_end)
          order.push_back(event);
      }
      ASSERT_EQ(order.size(), 3U * 6);
      for (std::uint32_t micro = 0; micro < 6; ++micro) {
        const Event& begin = order[3 * micro];
        const Event& end = order[3 * micro + 1];
        const Event& forward = order[3 * micro + 2];
        EXPECT_EQ(begin.kind, EventKind::data_wait_begin);
        EXPECT_EQ(end.kind, EventKind::data_wait_end);
        EXPECT_EQ(begin.a, micro);
        EXPECT_EQ(begin.b, micro / 2);
        EXPECT_EQ(end.a, micro);
        EXPECT_EQ(end.b, micro / 2);
        EXPECT_EQ(forward.kind, EventKind::phase_begin);
        EXPECT_EQ(forward.b, micro);
        EXPECT_GE(end.ticks, copies[2 * micro + 1].ticks) << "the wait ends with the copy";
      }
    }
  }
}

TEST(InputEvents, AreNotOffloading) {
  RunSpec spec;
  spec.model = model_named("mlp");
  spec.steps = 2;
  spec.config = make_config(2);
  spec.config["zero_optimization"]["offload_optimizer"] = {{"device", "cpu"}};
  const plan::ModelPlan model = plan::build_model_plan(spec.model);
  std::map<std::uint8_t, std::int64_t> bytes;
  for (const Event& event : train_observed(spec).lane(0, StreamId::copy)) {
    if (event.kind == EventKind::transfer_begin) bytes[event.code] += event.v0;
  }
  EXPECT_EQ(bytes[static_cast<std::uint8_t>(TransferKind::input_to_device)], 2 * kBatchBytes);
  // Gradients leave; parameters come once more when the weights are set.
  EXPECT_EQ(bytes[static_cast<std::uint8_t>(TransferKind::device_to_host)], 2 * 4 * model.elems);
  EXPECT_GE(bytes[static_cast<std::uint8_t>(TransferKind::host_to_device)], 2 * 4 * model.elems);
  EXPECT_LT(bytes[static_cast<std::uint8_t>(TransferKind::host_to_device)], 4 * 4 * model.elems);
}

TEST(ClipFactor, IsWhatTheUpdateMultipliesBy) {
  for (const double limit : {0.0, 10.0, 1000.0}) {
    for (const int stage : {0, 3}) {
      SCOPED_TRACE(std::to_string(limit) + ", stage " + std::to_string(stage));
      RunSpec spec;
      spec.model = model_named("mlp");
      spec.world = 2;
      spec.config = make_config(stage, 1, "fp16");
      spec.config["fp16"] = {{"enabled", true}, {"initial_scale_power", 24}, {"hysteresis", 1}};
      spec.config["gradient_clipping"] = limit;
      spec.steps = 14;
      const ObservedRun observed = train_observed(spec, instrumentation::Detail::steps);
      bool clipped = false, whole = false, skipped = false;
      for (std::uint32_t rank = 0; rank < spec.world; ++rank) {
        const std::vector<Event> said = of_kind(observed, rank, EventKind::clip_factor);
        std::size_t next = 0;
        for (const StepResult& step : observed.run.ranks[rank].steps) {
          skipped |= step.skipped;
          if (step.skipped || limit == 0) continue;  // nothing was multiplied, nothing is said
          ASSERT_LT(next, said.size());
          EXPECT_EQ(said[next].a, step.step);
          EXPECT_EQ(said[next].stream, StreamId::host);
          EXPECT_DOUBLE_EQ(number(said[next]), std::min(1.0, limit / (step.grad_norm + 1e-6)));
          (number(said[next++]) < 1 ? clipped : whole) = true;
        }
        EXPECT_EQ(next, said.size());
      }
      EXPECT_TRUE(skipped) << "the scale was to be too large at first";
      EXPECT_EQ(clipped, limit == 10.0);
      EXPECT_EQ(whole, limit == 1000.0);
    }
  }
}

// update_interval auto: what the votes of a step decide, the next one does, and says that it was them.
TEST(ZenFlowVotes, DecideTheNextUpdate) {
  RunSpec spec;
  spec.model = model_named("mlp");
  spec.world = 2;
  spec.steps = 24;
  spec.config = make_config(2);
  spec.config["zero_optimization"]["offload_optimizer"] = {{"device", "cpu"}};
  spec.config["zero_optimization"]["zenflow"] = {
      {"topk_ratio", 0.3}, {"auto_ratio", 0.5}, {"full_warm_up_rounds", 2}};
  const ObservedRun observed = train_observed(spec);
  const plan::ModelPlan model = plan::build_model_plan(spec.model);
  const auto matrices = std::count_if(model.params.begin(), model.params.end(),
                                      [](const plan::ParamPlan& param) { return param.shape.size() == 2; });
  std::vector<Event> first;
  for (std::uint32_t rank = 0; rank < spec.world; ++rank) {
    const std::vector<Event> votes = of_kind(observed, rank, EventKind::update_votes);
    ASSERT_EQ(votes.size(), spec.steps - 2U) << "every step after the warm-up";
    if (rank == 0) first = votes;
    std::vector<std::uint32_t> decided{0, 1};  // the warm-up updates every time
    for (std::size_t i = 0; i < votes.size(); ++i) {
      EXPECT_EQ(votes[i].a, i + 2);
      EXPECT_EQ(votes[i].b, first[i].b) << "ranks decide alike";
      EXPECT_EQ(votes[i].c, static_cast<std::uint32_t>(0.5 * static_cast<double>(matrices)));
      EXPECT_EQ(votes[i].v1, matrices);
      EXPECT_EQ(votes[i].v0, first[i].v0);
      EXPECT_GT(number(votes[i]), 0.3) << "the largest columns hold more than their share";
      EXPECT_LT(number(votes[i]), 1);
      if (votes[i].b >= votes[i].c && i + 1 < votes.size()) decided.push_back(votes[i].a + 1);
    }
    EXPECT_GT(decided.size(), 3U);
    EXPECT_LT(decided.size(), spec.steps);
    std::vector<std::uint32_t> updated;
    for (const Event& event : of_kind(observed, rank, EventKind::deferred_update)) {
      if (event.code == static_cast<std::uint8_t>(instrumentation::DeferredState::published)) {
        EXPECT_EQ(event.a, kNoId);
        continue;
      }
      updated.push_back(event.b);
      EXPECT_EQ(event.a, static_cast<std::uint8_t>(event.b < 2 ? plan::UpdateCause::warm_up
                                                               : plan::UpdateCause::votes));
    }
    EXPECT_EQ(updated, decided);
  }
}

// At stage 2 a bucket is held while it fills and while it is reduced. Without overlap_comm the next one
// begins when that is over; with it two may be on their way. No buffer is allocated: a bucket is as large as
// the gradients in it.
TEST(BucketMemory, IsOfOneBucketOrWithOverlapOfThree) {
  constexpr std::int64_t kMatrix = 64 * 256, kBucket = kMatrix + 400;  // a matrix and vectors beside it
  const auto most_held = [](bool overlap, std::int64_t bucket) {
    RunSpec spec;
    spec.model = model_named("mlp");
    spec.world = 2;
    spec.config = make_config(2);
    spec.config["zero_optimization"]["reduce_bucket_size"] = bucket;
    spec.config["zero_optimization"]["overlap_comm"] = overlap;
    const ObservedRun observed = train_observed(spec);
    std::int64_t held = 0, most = 0;
    for (const Event& event : observed.events.at(0)) {
      if (event.code != static_cast<std::uint8_t>(instrumentation::MemoryCategory::reduce_bucket)) continue;
      if (event.kind == EventKind::memory_alloc) held += event.v0;
      if (event.kind == EventKind::memory_free) held -= event.v0;
      most = std::max(most, held);
    }
    EXPECT_EQ(held, 0);
    return most / static_cast<std::int64_t>(sizeof(float));
  };
  // A matrix does not fit, and is there while the bucket before it is reduced.
  constexpr std::int64_t kRounding = 16 * device::Arena::kAlignment / sizeof(float);
  const std::int64_t without = most_held(false, kBucket), with = most_held(true, kBucket);
  EXPECT_GE(without, 2 * kMatrix);
  EXPECT_LE(without, kBucket + kMatrix + kRounding);
  EXPECT_GE(with - without, 2 * kMatrix);
  EXPECT_LE(with, 3 * kBucket + kMatrix + kRounding);
  EXPECT_LT(most_held(true, 100 * kBucket), 110000) << "the whole model, 100417 elements and rounding";
}

// reset_T: what every rank has lost at both hops is forgotten, of every parameter that goes as int4.
TEST(FeedbackReset, IsEmittedWhenErrorsAreReset) {
  for (const int interval : {0, 2, 3, 1024}) {
    SCOPED_TRACE(interval);
    RunSpec spec;
    spec.model = model_named("mlp");
    spec.world = 4;
    spec.steps = 6;
    spec.config = make_config(3);
    spec.config["shardscope"] = {{"ranks_per_node", 2}};
    Json& zero = spec.config["zero_optimization"];
    zero["zero_quantized_gradients"] = true;
    if (interval > 0) zero["zeropp_loco_param"] = {{"err_beta", 0.8}, {"reset_T", interval}};
    const plan::ModelPlan model = plan::build_model_plan(spec.model);
    const config::TrainingConfig config = parsed(spec);
    constexpr plan::Topology kTopology{4, 2};
    std::uint32_t params = 0;
    std::int64_t elems = 0;
    for (const plan::ParamPlan& param : model.params) {
      if (plan::gradient_path(config.zero, kTopology, param.shape) != plan::GradientPath::quantized) continue;
      ++params;
      elems += (4 + 2) * plan::gradient_groups(param.shape, 4).elems;  // of four ranks, then of two nodes
    }
    ASSERT_GT(params, 0U);
    const ObservedRun observed = train_observed(spec);
    for (std::uint32_t rank = 0; rank < spec.world; ++rank) {
      std::vector<std::uint32_t> steps;
      for (const Event& event : of_kind(observed, rank, EventKind::feedback_reset)) {
        steps.push_back(event.a);
        EXPECT_EQ(event.b, params);
        EXPECT_EQ(event.v0, elems);
      }
      std::vector<std::uint32_t> expected;
      for (int step = interval - 1; interval > 0 && step < spec.steps; step += interval) {
        expected.push_back(static_cast<std::uint32_t>(step));
      }
      EXPECT_EQ(steps, expected);
    }
  }
}

}  // namespace
}  // namespace shardscope::engine::testing::step_events_test
