// ZeRO++ and MiCS on real ranks: what is exact stays bitwise, what is rounded stays within its bound, and
// what travels and is held is what the plan says, by the element and the byte. Four ranks stand for two
// nodes.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/plan/memory_model.h"
#include "runtime/plan/secondary_shards.h"
#include "runtime/plan/shard_layout.h"
#include "tests/runtime/engine/support.h"

namespace shardscope::engine::testing::zeropp_test {
namespace {

constexpr std::uint32_t kWorld = 4;

struct Case {
  std::string model, data, type = "fp32";
  int accumulation = 1;
};

/// Stage 3 on two nodes of two ranks, with `zero` on top. Nothing is prefetched, so that every parameter is
/// gathered once in each direction.
RunSpec spec_of(const Case& c, const Json& zero, const Json& shardscope = Json::object()) {
  RunSpec spec;
  spec.model = model_named(c.model);
  spec.config = make_config(3, c.accumulation, c.type);
  spec.config["zero_optimization"]["stage3_prefetch_bucket_size"] = 0;
  spec.config["zero_optimization"].update(zero);
  spec.config["shardscope"] = {{"ranks_per_node", 2}};
  spec.config["shardscope"].update(shardscope);
  spec.world = kWorld;
  spec.data = c.data;
  spec.steps = 3;
  return spec;
}

plan::ScopeTraffic times(plan::ScopeTraffic traffic, std::int64_t factor) {
  for (plan::Traffic& t : traffic) t = {t.elems * factor, t.bytes * factor};
  return traffic;
}

/// What was counted on every rank is what the plan expects; returns that.
plan::StepTraffic expect_planned_traffic(const RunSpec& spec, const TrainingRun& run) {
  config::ParseOptions parse;
  parse.world = spec.world;
  const config::TrainingConfig config = config::parse_config(spec.config.dump(), parse);
  const plan::ModelPlan model = plan::build_model_plan(spec.model);
  std::vector<plan::TrafficParam> params;
  for (const plan::ParamPlan& param : model.params) params.push_back({param.shape, false});
  plan::TrafficInput input;
  input.topology = {spec.world, 2};
  input.micro_steps = config.batch.accumulation_steps;
  input.param_bytes = input.gradient_bytes = input.sum_bytes =
      static_cast<std::int64_t>(kernels::size_of(config.storage_type()));
  input.shard_alignment = plan::kShardAlignmentBytes / input.param_bytes;
  const plan::StepTraffic expected = plan::step_traffic(params, config.zero, input);
  const plan::ScopeTraffic gathers = times(expected.gathers(), spec.steps);
  const plan::ScopeTraffic reductions = times(expected.reduce, spec.steps);
  for (const RankRun& rank : run.ranks) {
    EXPECT_EQ(rank.error, "");
    for (std::size_t scope = 0; scope < plan::kTrafficScopes; ++scope) {
      EXPECT_EQ(rank.volume.gathers[scope].elems, gathers[scope].elems) << "gathers, scope " << scope;
      EXPECT_EQ(rank.volume.gathers[scope].bytes, gathers[scope].bytes) << "gathers, scope " << scope;
      EXPECT_EQ(rank.volume.reductions[scope].elems, reductions[scope].elems)
          << "reductions, scope " << scope;
      EXPECT_EQ(rank.volume.reductions[scope].bytes, reductions[scope].bytes)
          << "reductions, scope " << scope;
    }
    EXPECT_EQ(rank.used_after, 0U) << "memory outlives the engine";
  }
  return expected;
}

/// Largest relative differences over the steps of all ranks.
struct Difference {
  double loss = 0;
  double norm = 0;
};
Difference largest_difference(const TrainingRun& a, const TrainingRun& b) {
  Difference largest;
  for (std::size_t rank = 0; rank < a.ranks.size(); ++rank) {
    EXPECT_EQ(a.ranks[rank].error, "");
    EXPECT_EQ(b.ranks[rank].error, "");
    for (std::size_t step = 0; step < a.ranks[rank].steps.size(); ++step) {
      const StepResult& x = a.ranks[rank].steps[step];
      const StepResult& y = b.ranks[rank].steps.at(step);
      for (std::size_t i = 0; i < x.losses.size(); ++i) {
        largest.loss = std::max(largest.loss, std::fabs(static_cast<double>(y.losses[i]) / x.losses[i] - 1));
      }
      largest.norm = std::max(largest.norm, std::fabs(y.grad_norm / x.grad_norm - 1));
    }
  }
  return largest;
}

const Case kCases[] = {{"mlp", "golden:mlp"},
                       {"mlp", "golden:mlp", "bf16", 2},
                       {"gpt", "golden:gpt", "fp32", 2},
                       {"gpt_tied", "golden:gpt", "fp16"},
                       {"mlp_reuse", "golden:mlp"}};

class ExactPaths : public ::testing::TestWithParam<Case> {};

TEST_P(ExactPaths, ChangeNoBit) {
  const TrainingRun plain = train(spec_of(GetParam(), Json::object()));
  for (const Json& zero :
       {Json{{"zero_hpz_partition_size", 2}}, Json{{"zero_hpz_partition_size", 4}},
        Json{{"mics_shard_size", 4}}, Json{{"mics_shard_size", 4}, {"mics_hierarchical_params_gather", true}},
        Json{{"stage3_use_all_reduce_for_fetch_params", true}}}) {
    EXPECT_EQ(first_difference(plain, train(spec_of(GetParam(), zero))), "") << zero;
  }
}

// With prefetch, and gathers in flight while copies are made and freed.
TEST_P(ExactPaths, ChangeNoBitWhilePrefetching) {
  const Json prefetch{{"stage3_prefetch_bucket_size", 20000}};
  const TrainingRun plain = train(spec_of(GetParam(), prefetch));
  for (Json zero : {Json{{"zero_hpz_partition_size", 2}},
                    Json{{"mics_shard_size", 4}, {"mics_hierarchical_params_gather", true}}}) {
    zero.update(prefetch);
    EXPECT_EQ(first_difference(plain, train(spec_of(GetParam(), zero))), "") << zero;
    const Json compat{{"compat", {{"hpz_secondary_in_forward", true}}}};
    EXPECT_EQ(first_difference(plain, train(spec_of(GetParam(), zero, compat))), "") << zero;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ExactPaths, ::testing::ValuesIn(kCases), [](const auto& c) {
  return c.param.model + "_" + c.param.type + "_" + std::to_string(c.param.accumulation);
});

// P17: gathers of the backward stay in the small group; one copy of the model is spread over it until the
// step.
TEST(Hpz, BackwardGathersStayInTheGroupAndTheCopyCostsTheModelOverTheGroup) {
  for (const Case& c : {Case{"mlp", "golden:mlp", "fp32", 2}, Case{"gpt", "golden:gpt", "bf16", 1}}) {
    for (const bool compat : {false, true}) {
      const RunSpec spec =
          spec_of(c, {{"zero_hpz_partition_size", 2}}, {{"compat", {{"hpz_secondary_in_forward", compat}}}});
      const TrainingRun run = train(spec);
      const plan::StepTraffic expected = expect_planned_traffic(spec, run);
      EXPECT_EQ(expected.backward[0].bytes, 0);
      const plan::ModelPlan model = plan::build_model_plan(spec.model);
      const std::size_t element = c.type == "fp32" ? 4 : 2;
      std::size_t copies = 0;
      for (const plan::ParamPlan& param : model.params) {
        const auto bytes = static_cast<std::size_t>(plan::secondary_elems(param.elems, kWorld, 2)) * element;
        copies +=
            (bytes + device::Arena::kAlignment - 1) / device::Arena::kAlignment * device::Arena::kAlignment;
      }
      EXPECT_GE(copies, static_cast<std::size_t>(model.elems) * element / 2);  // M / group
      for (const RankRun& rank : run.ranks) {
        EXPECT_EQ(rank.secondary_peak, copies);
        EXPECT_EQ(rank.secondary_after, 0U);
      }
    }
  }
}

// P16: parameters and gradients inside the group, the replicas at the boundary; states cost 16S / group.
TEST(Mics, ReplicasAgreeWithPlainStage3ToTheOrderOfTheSum) {
  for (const Case& c : {Case{"mlp", "golden:mlp"}, Case{"gpt", "golden:gpt", "fp32", 2}}) {
    const TrainingRun plain = train(spec_of(c, Json::object()));
    const RunSpec spec = spec_of(c, {{"mics_shard_size", 2}});
    const TrainingRun mics = train(spec);
    expect_planned_traffic(spec, mics);
    // ((g0 + g1) + (g2 + g3)) instead of (((g0 + g1) + g2) + g3): a few roundings of 2^-24 in sums of eight
    // terms, which three steps of Adam carry on.
    EXPECT_LT(largest_difference(plain, mics).loss, 2e-5);
    EXPECT_LT(largest_difference(plain, mics).norm, 2e-5);
    const plan::ModelPlan model = plan::build_model_plan(spec.model);
    std::vector<std::int64_t> elems;
    for (const plan::ParamPlan& param : model.params) elems.push_back(param.elems);
    const auto states = static_cast<std::size_t>(
        plan::model_states(elems, 3, 2, plan::kFp32, plan::kShardAlignmentBytes / 4).total());
    for (const RankRun& rank : mics.ranks) {
      EXPECT_GE(rank.state_bytes_after, states);
      EXPECT_LE(rank.state_bytes_after, states + 6 * device::Arena::kAlignment);
    }
    // Every replica keeps the same weights: it sees the same losses as its twin only if they do.
    for (std::size_t step = 0; step < mics.ranks[0].steps.size(); ++step) {
      for (const RankRun& rank : mics.ranks) {
        EXPECT_EQ(rank.steps[step].grad_norm, mics.ranks[0].steps[step].grad_norm);
      }
    }
  }
}

TEST(Mics, HierarchicalGatherGoesBetweenNodesFirst) {
  const RunSpec spec =
      spec_of({"mlp", "golden:mlp"}, {{"mics_shard_size", 4}, {"mics_hierarchical_params_gather", true}});
  const plan::StepTraffic traffic = expect_planned_traffic(spec, train(spec));
  const auto scope = [&](plan::TrafficScope s) { return traffic.forward[static_cast<std::size_t>(s)].elems; };
  EXPECT_EQ(scope(plan::TrafficScope::inter_node) * 2, scope(plan::TrafficScope::intra_node));
  EXPECT_EQ(scope(plan::TrafficScope::world), 0);
}

TEST(AllReduceFetch, CostsTwice) {
  const RunSpec spec = spec_of({"mlp", "golden:mlp"}, {{"stage3_use_all_reduce_for_fetch_params", true}});
  expect_planned_traffic(spec, train(spec));
}

// Rounded to one of 255 values per group, a weight moves by at most 1/254 of the group's largest. The loss of
// the MLP, the mean of a few squared errors, moves by some percent with it, that of the GPT by far less.
TEST(QuantizedWeights, StayCloseAndHalveTheBytes) {
  for (const Case& c : {Case{"mlp", "golden:mlp", "bf16"}, Case{"gpt", "golden:gpt", "fp16", 2}}) {
    const TrainingRun plain = train(spec_of(c, Json::object()));
    const RunSpec spec = spec_of(c, {{"zero_quantized_weights", true}});
    const TrainingRun run = train(spec);
    const plan::StepTraffic traffic = expect_planned_traffic(spec, run);
    const Difference difference = largest_difference(plain, run);
    EXPECT_LT(difference.loss, 0.05);
    EXPECT_LT(difference.norm, 0.05);
    EXPECT_GT(difference.loss, 0) << "nothing was rounded";
    const double full = 2.0 * c.accumulation * static_cast<double>(plan::build_model_plan(spec.model).elems);
    EXPECT_GT(static_cast<double>(traffic.forward[0].bytes) / full, 0.5);
    EXPECT_LT(static_cast<double>(traffic.forward[0].bytes) / full, 0.52);  // small shards: scales show
  }
}

// Of int4 a gradient keeps seven steps each side, twice rounded. Adam's first steps are the gradient's sign,
// so what rounds to zero stays behind: the mean of a few squared errors (mlp) moves by up to a tenth.
TEST(QuantizedGradients, StayCloseWithAndWithoutErrorFeedback) {
  for (const Case& c : {Case{"mlp", "golden:mlp", "fp32", 2}, Case{"gpt", "golden:gpt", "bf16"}}) {
    const TrainingRun plain = train(spec_of(c, Json::object()));
    for (const Json& loco : {Json(), Json{{"err_beta", 0.8}, {"reset_T", 2}}}) {
      Json zero{{"zero_quantized_gradients", true}};
      if (!loco.is_null()) zero["zeropp_loco_param"] = loco;
      const RunSpec spec = spec_of(c, zero);
      const TrainingRun run = train(spec);
      expect_planned_traffic(spec, run);
      const Difference difference = largest_difference(plain, run);
      EXPECT_LT(difference.loss, 0.15) << zero;
      EXPECT_LT(difference.norm, 0.1) << zero;
      EXPECT_GT(difference.norm, 0) << "nothing was rounded";
    }
  }
}

// A gradient that is not finite still shows after two roundings, so the same steps are skipped.
TEST(QuantizedGradients, OverflowIsSeen) {
  RunSpec spec = spec_of({"mlp", "golden:mlp", "fp16"}, Json::object());
  spec.config["fp16"] = {{"enabled", true}, {"initial_scale_power", 24}, {"hysteresis", 1}};
  const TrainingRun plain = train(spec);
  spec.config["zero_optimization"]["zero_quantized_gradients"] = true;
  spec.config["zero_optimization"]["zeropp_loco_param"] = {{"err_beta", 0.8}, {"reset_T", 1024}};
  const TrainingRun run = train(spec);
  for (std::size_t step = 0; step < plain.ranks[0].steps.size(); ++step) {
    EXPECT_EQ(run.ranks[0].steps.at(step).skipped, plain.ranks[0].steps[step].skipped) << step;
  }
  EXPECT_TRUE(plain.ranks[0].steps[0].skipped) << "the scale was to be too large";
}

TEST(QuantizedGradients, OneNodeReducesAsEver) {
  const Case c{"mlp", "golden:mlp"};
  const Json one_node{{"ranks_per_node", 4}};
  EXPECT_EQ(first_difference(train(spec_of(c, Json::object(), one_node)),
                             train(spec_of(c, {{"zero_quantized_gradients", true}}, one_node))),
            "");
}

TEST(ZeroPlusPlus, AllThreeTogether) {
  const Case c{"gpt", "golden:gpt", "bf16", 2};
  const TrainingRun plain = train(spec_of(c, Json::object()));
  const RunSpec spec = spec_of(
      c,
      {{"zero_hpz_partition_size", 2}, {"zero_quantized_weights", true}, {"zero_quantized_gradients", true}});
  const TrainingRun run = train(spec);
  expect_planned_traffic(spec, run);
  EXPECT_LT(largest_difference(plain, run).loss, 0.02);
  EXPECT_LT(largest_difference(plain, run).norm, 0.1);
}

TEST(Hpz, WorksWithOffloading) {
  const Case c{"mlp", "golden:mlp", "fp32", 2};
  for (const char* key : {"offload_optimizer", "offload_param"}) {
    const Json offload{{key, {{"device", "cpu"}}}};
    Json both = offload;
    both["zero_hpz_partition_size"] = 2;
    EXPECT_EQ(first_difference(train(spec_of(c, offload)), train(spec_of(c, both))), "") << key;
  }
  EXPECT_THROW(
      static_cast<void>(train(spec_of(c, {{"zero_hpz_partition_size", 2},
                                          {"offload_param", {{"device", "nvme"}, {"nvme_path", "/tmp"}}}}))),
      config::ConfigError);
}

TEST(Refused, GroupsThatDoNotDivideTheWorld) {
  for (const char* key : {"zero_hpz_partition_size", "mics_shard_size"}) {
    try {
      static_cast<void>(train(spec_of({"mlp", "golden:mlp"}, {{key, 3}})));
      ADD_FAILURE() << key << " is not refused";
    } catch (const config::ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find(std::string(key) + " is 3"), std::string::npos)
          << error.what();
    }
  }
}

TEST(Refused, MicsWithZeroPlusPlus) {
  for (const Json& zero : {Json{{"mics_shard_size", 2}, {"zero_hpz_partition_size", 2}},
                           Json{{"mics_shard_size", 2}, {"zero_quantized_weights", true}},
                           Json{{"mics_shard_size", 2}, {"zero_quantized_nontrainable_weights", true}},
                           Json{{"mics_shard_size", 2}, {"zero_quantized_gradients", true}}}) {
    EXPECT_THROW(static_cast<void>(train(spec_of({"mlp", "golden:mlp"}, zero))), config::ConfigError);
  }
}

}  // namespace
}  // namespace shardscope::engine::testing::zeropp_test
