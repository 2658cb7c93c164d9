// Frozen parameters in the model file, the layouts, the visits and the scheduler; what a skipped step leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plan/checkpoint_layout.h"
#include "runtime/plan/memory_model.h"
#include "runtime/plan/ownership.h"
#include "runtime/plan/quantization.h"
#include "runtime/plan/scheduler.h"
#include "runtime/plan/secondary_shards.h"
#include "runtime/plan/visit_order.h"
#include "runtime/plan/zero_traffic.h"

namespace shardscope::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Layers a, b and c; `keys` are added to them, and to the sequential around.
std::string text_of(const std::string& a, const std::string& b, const std::string& c,
                    const std::string& root = "") {
  return R"({"name": "m", "input": {"kind": "vectors", "width": 4}, "loss": {"kind": "mse", "width": 2},
    "root": {"kind": "sequential")" +
         root + R"(, "children": [{"kind": "linear", "name": "a", "in": 4, "out": 6)" + a +
         R"(}, {"kind": "linear", "name": "b", "in": 6, "out": 6)" + b +
         R"(}, {"kind": "linear", "name": "c", "in": 6, "out": 2)" + c + "}]}}";
}

ModelPlan model_of(const std::string& a, const std::string& b, const std::string& c,
                   const std::string& root = "") {
  return build_model_plan(parse_model_spec(text_of(a, b, c, root)));
}

std::string error_of(const std::string& text) {
  try {
    (void)build_model_plan(parse_model_spec(text));
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

const std::string kFrozen = R"(, "trainable": false)";
const std::string kTrained = R"(, "trainable": true)";

TEST(FrozenModel, TheNearestModuleSays) {
  EXPECT_THAT(trainable_params(model_of("", "", "")), testing::Each(true));
  EXPECT_THAT(trainable_params(model_of(kFrozen, "", "")), ElementsAre(false, false, true, true, true, true));
  EXPECT_THAT(trainable_params(model_of("", kTrained, "", kFrozen)),
              ElementsAre(false, false, true, true, false, false));
  EXPECT_THAT(trainable_params(model_of(R"(, "trainable": {"weight": false})", kFrozen,
                                        R"(, "trainable": {"bias": true})", kTrained)),
              ElementsAre(false, true, false, false, true, true));
  EXPECT_THAT(trainable_params(model_of(R"(, "trainable": {"bias": true})", "", "", kFrozen)),
              ElementsAre(false, true, false, false, false, false));
  EXPECT_EQ(trainable_elems(model_of(kFrozen, "", "")), 42 + 14);
}

TEST(FrozenModel, ErrorsSayWhatIsWrong) {
  EXPECT_THAT(error_of(text_of(kFrozen, kFrozen, kFrozen)), HasSubstr("nothing to train"));
  EXPECT_THAT(error_of(text_of(R"(, "trainable": 0)", "", "")),
              AllOf(HasSubstr("root.children[0]"), HasSubstr("\"trainable\" must be true, false")));
  EXPECT_THAT(error_of(text_of("", "", "", R"(, "trainable": {"weight": false})")),
              HasSubstr("\"trainable\" must be true or false"));
  EXPECT_THAT(error_of(text_of(R"(, "trainable": {"weight": "no"})", "", "")),
              HasSubstr("\"weight\" must be true or false"));
  EXPECT_THAT(error_of(text_of(R"(, "bias": false, "trainable": {"bias": true})", "", "")),
              HasSubstr("key \"bias\" is not known here"));
  const std::string tied = R"(, "weight_of": "a.weight")";
  for (const std::string keys :
       {R"(, "trainable": {"weight": false})", R"(, "bias": false, "trainable": false)"}) {
    EXPECT_THAT(error_of(R"({"name": "m", "input": {"kind": "vectors", "width": 6},
      "loss": {"kind": "mse", "width": 6}, "root": {"kind": "sequential", "children": [
      {"kind": "linear", "name": "a", "in": 6, "out": 6},
      {"kind": "linear", "name": "b", "in": 6, "out": 6)" +
                         tied + keys + "}]}}"),
                HasSubstr("the weight is that of \"a.weight\""));
  }
}

TEST(FrozenModel, IsInNoGroupOfStages1And2) {
  const ModelPlan model = model_of("", kFrozen, "");
  for (const GradientOrder order : {GradientOrder::parameter_order, GradientOrder::round_robin}) {
    const FlatLayout layout = make_flat_layout(model, 2, order);
    const FlatLayout alone = make_flat_layout({24, 6, 12, 2}, 2, order);
    EXPECT_EQ(layout.flat_elems, alone.flat_elems);
    std::vector<ParamId> expected;
    for (const ParamId id : alone.order) expected.push_back(raw(id) < 2 ? id : ParamId{raw(id) + 2});
    EXPECT_EQ(layout.order, expected);
    EXPECT_THAT(layout.slices_of(ParamId{2}), IsEmpty());
  }
  ZeroConfig zero;
  for (const std::uint32_t stage : {0U, 1U, 2U}) {
    zero.stage = stage;
    const Ownership ownership(model, zero, 2);
    EXPECT_EQ(ownership.frozen_elems(), 42);
    EXPECT_EQ(ownership.owned_elems(), stage == 0 ? 44 : 22);
    for (const std::uint32_t rank : {0U, 1U}) {
      const std::vector<OwnedSlice> slices = ownership.slices(ParamId{3}, rank);
      ASSERT_EQ(slices.size(), 1U);
      EXPECT_EQ(slices[0].elems, 6);
      EXPECT_EQ(slices[0].owned_offset, ownership.owned_elems() + 36);
      EXPECT_TRUE(ownership.frozen_at(slices[0].owned_offset));
    }
    EXPECT_TRUE(ownership.whole_everywhere(ParamId{2}));
    EXPECT_EQ(ownership.whole_everywhere(ParamId{0}), stage == 0);
  }
}

TEST(FrozenModel, IsShardedButInNoSubGroup) {
  const ModelPlan model = model_of(kFrozen, "", "");
  ZeroConfig zero;
  zero.stage = 3;
  zero.sub_group_size = 20;
  const Ownership ownership(model, zero, 2, 4);
  const ShardLayout& shards = ownership.shards();
  EXPECT_THAT(shards.order,
              ElementsAre(ParamId{2}, ParamId{3}, ParamId{4}, ParamId{5}, ParamId{0}, ParamId{1}));
  EXPECT_EQ(shards.trainable_elems, 20 + 4 + 8 + 4);
  EXPECT_EQ(shards.elems, shards.trainable_elems + 12 + 4);
  EXPECT_EQ(ownership.owned_elems(), shards.trainable_elems);
  EXPECT_EQ(ownership.frozen_elems(), 16);
  std::int64_t end = 0;
  for (const Range& group : ownership.sub_groups()) {
    EXPECT_EQ(group.begin, end);
    end = group.end;
  }
  EXPECT_EQ(end, shards.trainable_elems);
}

TEST(FrozenModel, IsSavedOnceAndLast) {
  const ModelPlan model = model_of(kFrozen, "", "");
  for (const std::uint32_t stage : {0U, 1U, 2U, 3U}) {
    ZeroConfig zero;
    zero.stage = stage;
    const Ownership ownership(model, zero, 3);
    std::vector<std::int64_t> saved(model.params.size(), 0);
    for (const std::vector<SavedSlice>& slices : checkpoint_layout(ownership, model.params.size())) {
      bool frozen = false;
      for (const SavedSlice& slice : slices) {
        saved[raw(slice.param)] += slice.elems;
        const bool now = !model.params[raw(slice.param)].trainable;
        EXPECT_TRUE(now || !frozen) << "stage " << stage;
        frozen = now;
      }
    }
    for (const ParamPlan& param : model.params) EXPECT_EQ(saved[raw(param.id)], param.elems);
  }
}

std::vector<std::string> backward_of(const ModelPlan& model) {
  std::vector<std::string> visits;
  for (const Visit& visit : visit_order(model)) {
    const std::string& path = model.modules[raw(visit.module)].path;
    if (visit.kind == VisitKind::pre_backward) visits.push_back("pre " + path);
    if (visit.kind == VisitKind::post_backward) visits.push_back("post " + path);
  }
  return visits;
}

// PyTorch's autograd: a module has a backward when its output needs a gradient, and reports its end when its
// input does.
TEST(FrozenModel, BackwardGoesDownToTheLowestTrainedParameter) {
  EXPECT_THAT(backward_of(model_of("", "", "")),
              ElementsAre("pre ", "pre c", "post c", "pre b", "post b", "pre a"));
  EXPECT_THAT(backward_of(model_of(kFrozen, "", "")), ElementsAre("pre ", "pre c", "post c", "pre b"));
  EXPECT_THAT(backward_of(model_of("", kFrozen, kFrozen)),
              ElementsAre("pre ", "pre c", "post c", "pre b", "post b", "pre a"));
  EXPECT_THAT(backward_of(model_of(kFrozen, kFrozen, R"(, "trainable": {"weight": false})")),
              ElementsAre("pre ", "pre c"));
}

// Parameters of a (frozen) and c are persistent; b's weight is not.
class SkippedStep : public ::testing::TestWithParam<Compat> {
 protected:
  static void iterate(FetchScheduler& scheduler, const ModelPlan& model) {
    (void)scheduler.begin_iteration();
    for (const Visit& visit : visit_order(model)) {
      const bool forward = visit.kind == VisitKind::pre_forward || visit.kind == VisitKind::post_forward;
      const Direction direction = forward ? Direction::forward : Direction::backward;
      if (visit.kind == VisitKind::pre_forward || visit.kind == VisitKind::pre_backward) {
        (void)scheduler.fetch(visit.module, direction);
      } else {
        (void)scheduler.release(visit.module, direction);
      }
    }
    (void)scheduler.release_leftovers();
  }
};

TEST_P(SkippedStep, GathersNothingAgainAndFrozenOnesAreNeverGatheredAgain) {
  const bool exact = GetParam() != Compat::shardscope;
  const ModelPlan model = model_of(kFrozen, "", "");
  SchedulerConfig config;
  config.param_persistence_elems = 24;
  config.compat = GetParam();
  FetchScheduler scheduler(model, 2, config);
  const ParamId frozen{0};
  const ParamId trained{4};
  ASSERT_TRUE(scheduler.persistent(frozen) && scheduler.persistent(trained));
  (void)scheduler.gather_persistent();
  for (int iteration = 0; iteration < 3; ++iteration) {
    iterate(scheduler, model);
    // A skipped step.
    (void)scheduler.begin_update();
    EXPECT_THAT(scheduler.end_update(WeightChange::none), IsEmpty());
    EXPECT_EQ(scheduler.status(trained) == ParamStatus::available, !exact);
    if (!exact) {
      EXPECT_EQ(scheduler.gather_persistent().id, kNone<GatherId>);
    }
    // One that is not.
    iterate(scheduler, model);
    (void)scheduler.begin_update();
    const std::vector<ParamId> outdated = scheduler.end_update(WeightChange::trainable);
    EXPECT_EQ(testing::Value(outdated, testing::Contains(trained)), !exact);
    EXPECT_EQ(scheduler.status(frozen) == ParamStatus::available, !exact);
    const Gather gather = scheduler.gather_persistent();
    EXPECT_THAT(gather.params, testing::Contains(trained));
    EXPECT_EQ(testing::Value(gather.params, testing::Contains(frozen)), exact);
  }
  EXPECT_EQ(testing::Value(scheduler.end_update(WeightChange::all), testing::Contains(frozen)), true);
}

INSTANTIATE_TEST_SUITE_P(Compat, SkippedStep, ::testing::Values(Compat::shardscope, Compat::deepspeed),
                         [](const auto& at) {
                           return at.param == Compat::deepspeed ? "DeepSpeed" : "Shardscope";
                         });

TEST(SecondaryCopies, EndWithTheWeightsTheyCopy) {
  ZeroConfig zero;
  zero.stage = 3;
  zero.hpz_partition_size = 2;
  SecondaryShards shards({true, false}, zero);
  const ParamId trained{0};
  const ParamId frozen{1};
  shards.begin_iteration();
  EXPECT_TRUE(shards.released(trained));
  EXPECT_TRUE(shards.released(frozen));
  EXPECT_THAT(shards.weights_change(WeightChange::none), IsEmpty());  // skipped
  EXPECT_TRUE(shards.held(trained));
  EXPECT_THAT(shards.weights_change(WeightChange::trainable), ElementsAre(trained));
  shards.begin_iteration();
  EXPECT_EQ(shards.source(frozen), GatherSource::secondary) << "it holds for good, in forward too";
  EXPECT_EQ(shards.source(trained), GatherSource::primary);
  EXPECT_THAT(shards.weights_change(WeightChange::all), ElementsAre(frozen));
}

TEST(FrozenExpressions, CountWeightsAlone) {
  EXPECT_EQ(frozen_expression(0, kMixedPrecision).text("F"), "2F");
  EXPECT_EQ(frozen_expression(2, kFp32).text("F"), "4F");
  EXPECT_EQ(frozen_expression(3, kMixedPrecision).text("F"), "2F/n");
  VolumeInput input;
  input.stage = 3;
  input.world = 2;
  input.trainable = {true, false};
  const StepVolume volume = step_volume({100, 60}, input);
  EXPECT_EQ(volume.text, "3S + 2F");
  EXPECT_EQ(volume.elems, 3 * 100 + 2 * 60);
  input.stage = 2;
  EXPECT_EQ(step_volume({100, 60}, input).elems, 200);
  TrafficInput traffic;
  traffic.topology = {2, 2};
  ZeroConfig zero;
  zero.stage = 3;
  EXPECT_EQ(step_traffic({{{10, 10}}, {{60}, false, true}}, zero, traffic).total().elems, 3 * 100 + 2 * 60);
  // Persistent: gathered again after each step that changed it, so never.
  EXPECT_EQ(step_traffic({{{10, 10}, true}, {{60}, true, true}}, zero, traffic).total().elems, 2 * 100);
}

// Frozen, not persistent, not on NVMe.
TEST(QuantizedFrozen, WhichShardsRestAsInt8) {
  const std::vector<std::int64_t> elems{4'000'000, 4'000'000, 1000, 100};
  const std::vector<bool> trainable{true, false, false, false};
  ZeroConfig zero;
  zero.stage = 3;
  zero.param_persistence_threshold = 100;
  const auto which = [&] { return quantized_shards(elems, trainable, zero, 2, 2); };
  EXPECT_THAT(which(), testing::Each(false)) << "the key is off";
  zero.quantized_nontrainable_weights = true;
  EXPECT_THAT(which(), ElementsAre(false, true, true, false));
  zero.offload_param.device = OffloadDevice::nvme;
  EXPECT_THAT(which(), ElementsAre(false, false, true, false));
  zero.aio.block_size = 8'000'000;
  EXPECT_THAT(which(), ElementsAre(false, true, true, false));
  zero.stage = 2;
  EXPECT_THAT(which(), testing::Each(false));
}

// 1000 elements over two ranks: 500 each in groups of 500 (8 does not divide them), 512 bytes with room for
// the scale at a multiple of 16, and 4 of the scale.
TEST(QuantizedFrozen, CostsAByteAnElementAndItsScales) {
  EXPECT_EQ(packed_shard(500).scales_at(), 512);
  EXPECT_EQ(packed_shard(500).bytes(), 516);
  EXPECT_EQ(packed_shard(16'000).bytes(), 16'000 + 2 * 4);
  // Two of four shards: 250 elements each, 16 bytes of room, a scale each.
  EXPECT_EQ(packed_secondary(1000, 4, 2).scales_at(), 512);
  EXPECT_EQ(packed_secondary(1000, 4, 2).bytes(), 512 + 2 * 4);
  ZeroConfig zero;
  zero.stage = 3;
  zero.param_persistence_threshold = 0;
  zero.quantized_nontrainable_weights = true;
  EXPECT_EQ(frozen_rest_bytes({1000, 1000, 7}, {true, false, false}, zero, 2, 2), 528 + 32);
  EXPECT_EQ(frozen_expression(3, frozen_bytes(kMixedPrecision, zero)).text("F"), "F/n");
  zero.quantized_nontrainable_weights = false;
  EXPECT_EQ(frozen_rest_bytes({1000, 1000, 7}, {true, false, false}, zero, 2, 2), 1008 + 16);
  EXPECT_EQ(frozen_expression(3, frozen_bytes(kMixedPrecision, zero)).text("F"), "2F/n");
}

TEST(QuantizedFrozen, TravelsAsItRests) {
  ZeroConfig zero;
  zero.stage = 3;
  zero.quantized_nontrainable_weights = true;
  TrafficInput input;
  input.topology = {2, 2};
  const std::vector<TrafficParam> params{{{1000}}, {{1000}, false, true}};
  const StepTraffic traffic = step_traffic(params, zero, input);
  const auto world = static_cast<std::size_t>(TrafficScope::world);
  EXPECT_EQ(traffic.forward[world].elems, 1000 + 1000 + 2);
  EXPECT_EQ(traffic.forward[world].bytes, 2000 + 1000 + 2 * 4);
  EXPECT_EQ(traffic.backward[world].bytes, traffic.forward[world].bytes);
  EXPECT_EQ(traffic.reduce[world].bytes, 2000);
  EXPECT_TRUE(has_special_traffic(zero));
  zero.hpz_partition_size =
      2;  // all of a frozen parameter's gathers are from copies, of one shard a rank here
  const StepTraffic copied = step_traffic(params, zero, input);
  const auto secondary = static_cast<std::size_t>(TrafficScope::secondary);
  EXPECT_EQ(copied.forward[secondary].elems, 1000 + 2);
  EXPECT_EQ(copied.forward[secondary].bytes, 1000 + 2 * 4);
  EXPECT_EQ(copied.backward[secondary].bytes, 2000 + 1000 + 2 * 4);
  zero.hpz_partition_size = 1;
  EXPECT_EQ(traffic_text(zero, input.topology, 1), "S + S + S, frozen int8");
}

}  // namespace
}  // namespace shardscope::plan
