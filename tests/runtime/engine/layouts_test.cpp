// Layouts and habits of other versions of ZeRO, on our engine: the first stage 1 with its communications, and
// gradients that stay whole where they span ranks.
#include <gtest/gtest.h>

#include "runtime/plan/memory_model.h"
#include "tests/runtime/engine/support.h"

namespace shardscope::engine::testing::layouts_test {
namespace {

RunSpec legacy_spec(const std::string& model, std::uint32_t world, const Json& base, std::int64_t limit) {
  RunSpec spec;
  spec.model = model_named(model);
  spec.data = model.rfind("gpt", 0) == 0 ? "golden:gpt" : "golden:mlp";
  spec.config = base;
  spec.config["zero_optimization"]["legacy_stage1"] = true;
  spec.config["zero_optimization"]["max_elements_per_comm"] = limit;
  spec.world = world;
  spec.steps = 2;
  return spec;
}

RunSpec plain(RunSpec spec, int stage) {
  spec.config["zero_optimization"] = {{"stage", stage}};
  return spec;
}

plan::FlatLayout layout_of(const RunSpec& spec) {
  std::vector<std::int64_t> elems;
  for (const plan::ParamPlan& param : plan::build_model_plan(spec.model).params) elems.push_back(param.elems);
  return plan::make_legacy_layout(
      elems, spec.world, spec.config["zero_optimization"]["max_elements_per_comm"].get<std::int64_t>());
}

class LegacyStage1 : public ::testing::TestWithParam<std::uint32_t> {};

// Who owns what changes no bit, in any type, with any number of communications.
TEST_P(LegacyStage1, AgreesWithStage0Bitwise) {
  for (const std::string model : {"mlp", "gpt_tied"}) {
    for (const auto& [type, accumulation, limit] :
         {std::tuple{"fp32", 1, 7001}, {"fp32", 3, 20011}, {"bf16", 1, 7001}, {"fp16", 1, 1'000'000}}) {
      const RunSpec spec = legacy_spec(model, GetParam(), make_config(1, accumulation, type), limit);
      EXPECT_EQ(first_difference(train(plain(spec, 0)), train(spec)), "")
          << model << ' ' << type << ' ' << accumulation << ' ' << limit;
    }
  }
}

// 2S with the padding of the communications; states as stage 1, and the pieces that lie apart.
TEST_P(LegacyStage1, MovesAndHoldsWhatTheLayoutSays) {
  for (const std::string type : {"fp32", "bf16"}) {
    for (const std::int64_t limit : {7001, 1'000'000}) {
      const RunSpec spec = legacy_spec("mlp", GetParam(), make_config(1, 2, type), limit);
      const plan::FlatLayout layout = layout_of(spec);
      ASSERT_EQ(layout.groups_in_pieces(), limit == 7001);
      const plan::StateBytes bytes = type == "fp32" ? plan::kFp32 : plan::kMixedPrecision;
      const std::int64_t apart = layout.groups_in_pieces() ? layout.shard_elems * bytes.param : 0;
      const auto expected = static_cast<std::size_t>(layout.flat_elems * (bytes.param + bytes.gradient) +
                                                     layout.shard_elems * bytes.optimizer() + apart);
      for (const RankRun& rank : train(spec).ranks) {
        ASSERT_EQ(rank.error, "");
        EXPECT_EQ(rank.volume.reduced, layout.flat_elems * spec.steps);
        EXPECT_EQ(rank.volume.gathered, layout.flat_elems * spec.steps);
        EXPECT_EQ(rank.volume.calls, 2 * static_cast<std::int64_t>(layout.intervals.size()) * spec.steps);
        EXPECT_GE(rank.state_bytes_after, expected);
        EXPECT_LE(rank.state_bytes_after, expected + 8 * device::Arena::kAlignment);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, LegacyStage1, ::testing::Values(1U, 2U, 3U, 4U, 5U));

TEST(LegacyStage1Config, ThePresetOfTheNotesUsesIt) {
  RunSpec spec = legacy_spec("mlp", 2, make_config(1), 9000);
  const Volume asked = train(spec).ranks[0].volume;
  spec.config["zero_optimization"].erase("legacy_stage1");
  EXPECT_NE(train(spec).ranks[0].volume.calls, asked.calls);
  spec.config["shardscope"] = {{"compat", "notes"}};
  const Volume notes = train(spec).ranks[0].volume;
  EXPECT_EQ(notes.calls, asked.calls);
  EXPECT_EQ(notes.reduced, asked.reduced);
}

/// One parameter, read as embedding and as head: it spans every rank.
plan::ModelSpec one_parameter() {
  return plan::parse_model_spec(R"({
    "name": "one", "input": {"kind": "tokens", "vocabulary": 4000, "context": 16},
    "loss": {"kind": "cross_entropy"},
    "root": {"kind": "sequential", "children": [
      {"kind": "embedding", "name": "wte", "rows": 4000, "width": 100, "lookup": "tokens"},
      {"kind": "functional_linear", "weight_of": "wte.weight"}]}})");
}

/// Most bytes of gradients that are whole or owned, between two gathers or reductions, and bytes of model
/// states once backward is over, at the optimizer's door.
std::size_t states_at_step(bool keep, std::uint32_t world, std::size_t& bytes_of_one_s) {
  RunSpec spec;
  spec.model = one_parameter();
  spec.config = make_config(2, 2, "bf16");
  spec.config["shardscope"] = {{"compat", {{"keep_spanning_gradients", keep}}}};
  spec.world = world;
  spec.data = "golden:gpt";
  spec.steps = 2;
  std::vector<std::size_t> at_step(world, 0);
  spec.before_update = [&](const Context& context) {
    std::size_t& bytes = at_step[context.rank()];
    bytes = std::max(bytes, model_states(context.device.memory(), 2));
  };
  const TrainingRun run = train(spec);
  for (const RankRun& rank : run.ranks) EXPECT_EQ(rank.error, "");
  bytes_of_one_s = static_cast<std::size_t>(plan::build_model_plan(spec.model).elems);
  return *std::max_element(at_step.begin(), at_step.end());
}

// 2S + 14S/n to 1 % of S, although the only parameter spans all ranks; DeepSpeed holds 2S more (V6).
TEST(SpanningGradients, AreFreedBySliceUnlessKept) {
  for (const std::uint32_t world : {2U, 4U, 5U}) {
    std::size_t S = 0;
    const auto freed = static_cast<double>(states_at_step(false, world, S));
    const auto kept = static_cast<double>(states_at_step(true, world, S));
    const auto s = static_cast<double>(S);
    EXPECT_NEAR(freed, 2 * s + 14 * s / world, 0.01 * s) << world;
    EXPECT_NEAR(kept, 2 * s + 14 * s / world + 2 * s, 0.01 * s) << world;
  }
}

TEST(SpanningGradients, KeepingThemChangesNoResult) {
  for (const int accumulation : {1, 3}) {
    RunSpec spec;
    spec.model = model_named("mlp_span");
    spec.config = make_config(2, accumulation);
    spec.world = 4;
    const TrainingRun freed = train(spec);
    spec.config["shardscope"] = {{"compat", {{"keep_spanning_gradients", true}}}};
    EXPECT_EQ(first_difference(freed, train(spec)), "");
  }
}

}  // namespace
}  // namespace shardscope::engine::testing::layouts_test
