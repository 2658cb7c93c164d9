// The oracle: what a simulation says the ranks do is what the ranks do. The same configuration runs on real
// ranks (real_events.h); the simulated tapes must hold the same events in the same order, queue by queue,
// field by field. Only times, and what is computed from times or values (outcomes, losses, norms), are left
// out.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/runtime/engine/support.h"
#include "tests/runtime/simulate/real_events.h"

namespace shardscope::simulate::testing {
namespace {

using engine::testing::make_config;
using instrumentation::EventKind;

using Case = RealCase;

void forget_values(Event& event) {
  event.ticks = 0;
  if (event.kind == EventKind::loss || event.kind == EventKind::grad_norm ||
      event.kind == EventKind::clip_factor)
    event.v0 = 0;
  // Times decide what became of a prefetch that was used; that it was is alike.
  if (event.kind == EventKind::prefetch_outcome && event.b != instrumentation::kNoId) {
    event.code = 0;
    event.v0 = event.v1 = 0;
  }
}

std::vector<Queues> simulated_run(const Case& c, std::int64_t steps, SimulationOptions::Engines engines) {
  SimulationOptions options;
  options.hardware = round_hardware();
  options.hardware.ranks_per_node = c.ranks_per_node;
  options.engines = engines;
  Play play(model_of(c), c.config, c.world, options);
  std::vector<Queues> queues(c.world);
  play.simulation().begin();
  for (std::int64_t step = 0; step < steps; ++step) {
    static_cast<void>(play.simulation().step());
    for (std::uint32_t rank = 0; rank < c.world; ++rank) {
      const Tape& tape = play.simulation().tape(rank);
      for (const Op& op : tape.ops) {
        if (op.kind != Op::Kind::emit && op.kind != Op::Kind::emit_timed) continue;
        Event event = op.kind == Op::Kind::emit ? tape.events[op.index] : tape.timed[op.index].event;
        forget_values(event);
        queues[rank][static_cast<std::size_t>(op.queue)].push_back(event);
      }
    }
  }
  return queues;
}

std::string text_of(const Event& e) {
  return std::string(instrumentation::name_of(e.kind)) + " lane " +
         std::to_string(static_cast<int>(e.stream)) + " code " + std::to_string(e.code) + " a " +
         std::to_string(e.a) + " b " + std::to_string(e.b) + " c " + std::to_string(e.c) + " v0 " +
         std::to_string(e.v0) + " v1 " + std::to_string(e.v1);
}

bool same(const Event& a, const Event& b) {
  return a.kind == b.kind && a.stream == b.stream && a.code == b.code && a.a == b.a && a.b == b.b &&
         a.c == b.c && a.v0 == b.v0 && a.v1 == b.v1;
}

/// "" when alike, else the first difference.
std::string first_difference(const std::vector<Queues>& a, const std::vector<Queues>& b) {
  for (std::size_t rank = 0; rank < a.size(); ++rank) {
    for (std::size_t queue = 0; queue < a[rank].size(); ++queue) {
      const auto& x = a[rank][queue];
      const auto& y = b[rank][queue];
      const std::string where = "rank " + std::to_string(rank) + " queue " + std::to_string(queue);
      for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
        if (!same(x[i], y[i])) {
          return where + " event " + std::to_string(i) + ": " + text_of(x[i]) + " | " + text_of(y[i]);
        }
      }
      if (x.size() != y.size()) {
        return where + ": " + std::to_string(x.size()) + " and " + std::to_string(y.size()) + " events";
      }
    }
  }
  return "";
}

Json with(Json config, const Json& zero, const Json& shardscope = Json::object()) {
  config["zero_optimization"].update(zero);
  if (!shardscope.empty()) config["shardscope"] = shardscope;
  return config;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (int stage = 0; stage <= 3; ++stage) {
    for (const std::uint32_t world : {1U, 2U, 3U, 4U}) {
      all.push_back({"stage" + std::to_string(stage) + "_world" + std::to_string(world), "mlp", world,
                     make_config(stage, world == 3 ? 2 : 1, world == 2 ? "bf16" : "fp32")});
    }
    all.push_back({"gpt_stage" + std::to_string(stage), "gpt_tied", 2, make_config(stage, 2, "fp16")});
    all.push_back({"no_overlap_stage" + std::to_string(stage), "mlp", 2,
                   with(make_config(stage, 2), {{"overlap_comm", false}})});
  }
  for (const char* model : {"gpt", "gpt_functional", "mlp_reuse", "mlp_span", "mlp_visit"}) {
    all.push_back({model, model, 2, make_config(3)});
  }
  all.push_back({"small_buckets", "mlp", 3, with(make_config(2, 2), {{"reduce_bucket_size", 9000}})});
  all.push_back({"round_robin", "mlp", 3, with(make_config(2), {{"round_robin_gradients", true}})});
  // Other sizes on every rank in every micro-step.
  for (int stage = 0; stage <= 3; ++stage) {
    all.push_back({"shapes_stage" + std::to_string(stage), "gpt", 3,
                   with(make_config(stage, 2), Json::object(),
                        {{"micro_batches", {{"shapes", {{4, 12}, {1, 5}, {3, 9}, {2, 1}}}}}})});
  }
  all.push_back({"shapes_of_vectors", "mlp", 2,
                 with(make_config(3), Json::object(), {{"micro_batches", {{"shapes", {{4, 1}, {7, 1}}}}}})});
  for (const bool early_stop : {false, true}) {
    Json checkpointed = make_config(3);
    checkpointed["shardscope"] = {{"activation_checkpointing", true}, {"checkpoint_early_stop", early_stop}};
    all.push_back({early_stop ? "checkpointed_early_stop" : "checkpointed", "gpt", 2, checkpointed});
  }
  // DeepSpeed's limits of what is in flight, in many small pieces.
  all.push_back(
      {"limits_of_deepspeed", "mlp", 2,
       with(make_config(3, 2), {{"reduce_bucket_size", 9000}, {"stage3_prefetch_bucket_size", 20000}},
            {{"compat", "deepspeed"}})});
  const Json cpu{{"device", "cpu"}};
  for (const int stage : {1, 2, 3}) {
    all.push_back({"offload_optimizer_stage" + std::to_string(stage), "mlp", 2,
                   with(make_config(stage, 2, "bf16"), {{"offload_optimizer", cpu}})});
  }
  all.push_back({"offload_everything", "mlp", 2,
                 with(make_config(3, 2, "bf16"),
                      {{"offload_optimizer", cpu}, {"offload_param", cpu}, {"sub_group_size", 9000}})});
  // Whole rows on every rank: then as many elements are chosen, whichever columns the values choose.
  for (const int stage : {1, 2, 3}) {
    for (const bool overlap : {false, true}) {
      Json zenflow = make_config(stage, 1, "bf16");
      zenflow["zero_optimization"].update({{"offload_optimizer", cpu},
                                           {"zenflow",
                                            {{"topk_ratio", 0.25},
                                             {"update_interval", 2},
                                             {"select_strategy", "step"},
                                             {"select_interval", 4},
                                             {"overlap_step", overlap},
                                             {"full_warm_up_rounds", 1}}}});
      all.push_back({"zenflow_stage" + std::to_string(stage) + (overlap ? "_overlap" : ""), "mlp",
                     stage == 3 ? 2U : 1U, zenflow});
    }
  }
  const Json nvme{{"device", "nvme"}, {"nvme_path", ::testing::TempDir()}};
  all.push_back({"swap_optimizer", "mlp", 2,
                 with(make_config(3, 2, "bf16"), {{"offload_optimizer", nvme}, {"sub_group_size", 9000}})});
  all.push_back({"swap_everything", "mlp", 2,
                 with(make_config(3, 2, "bf16"),
                      {{"offload_optimizer", nvme}, {"offload_param", nvme}, {"sub_group_size", 9000}})});
  const Json nodes{{"ranks_per_node", 2}};
  all.push_back({"qwz", "mlp", 4, with(make_config(3), {{"zero_quantized_weights", true}}, nodes), 2});
  all.push_back({"hpz", "mlp", 4, with(make_config(3, 2), {{"zero_hpz_partition_size", 2}}, nodes), 2});
  all.push_back({"qgz", "mlp", 4, with(make_config(3), {{"zero_quantized_gradients", true}}, nodes), 2});
  all.push_back({"mics", "mlp", 4, with(make_config(3), {{"mics_shard_size", 2}}, nodes), 2});
  all.push_back(
      {"mics_hierarchical", "mlp", 4,
       with(make_config(3), {{"mics_shard_size", 4}, {"mics_hierarchical_params_gather", true}}, nodes), 2});
  return all;
}

class Equality : public ::testing::TestWithParam<Case> {};

TEST_P(Equality, SimulatedRanksDoWhatRealRanksDo) {
  const DetailGuard detail(instrumentation::Detail::kernels);
  const std::int64_t kSteps = GetParam().config["zero_optimization"].contains("zenflow") ? 7 : 3;
  std::vector<Queues> real = real_run(GetParam(), kSteps);
  for (Queues& rank : real) {
    for (auto& queue : rank) std::for_each(queue.begin(), queue.end(), forget_values);
  }
  std::size_t events = 0;
  for (const Queues& rank : real) {
    for (const auto& queue : rank) events += queue.size();
  }
  ASSERT_GT(events, 100U * GetParam().world);
  EXPECT_EQ(first_difference(real, simulated_run(GetParam(), kSteps, SimulationOptions::Engines::one_each)),
            "");
  EXPECT_EQ(first_difference(real, simulated_run(GetParam(), kSteps, SimulationOptions::Engines::shared)),
            "");
}

INSTANTIATE_TEST_SUITE_P(All, Equality, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

// Ranks whose pieces begin in other columns have other numbers of chosen elements: no engine stands for both.
TEST(EqualityOfRanks, ZenFlowOverBrokenRowsIsPlayedForEachThatDiffers) {
  const DetailGuard detail(instrumentation::Detail::kernels);
  Json config = make_config(3);
  config["zero_optimization"].update({{"offload_optimizer", {{"device", "cpu"}}},
                                      {"zenflow", {{"topk_ratio", 0.3}, {"update_interval", 2}}}});
  const Case broken{"zenflow_broken_rows", "mlp", 7, config};
  EXPECT_EQ(first_difference(simulated_run(broken, 3, SimulationOptions::Engines::one_each),
                             simulated_run(broken, 3, SimulationOptions::Engines::shared)),
            "");
}

TEST(EqualityHelper, SeesADifference) {
  std::vector<Queues> a(1), b(1);
  a[0][1].push_back({0, EventKind::module_begin, StreamId::compute, 0, 3, 0, 0, 0, 0});
  b = a;
  EXPECT_EQ(first_difference(a, b), "");
  b[0][1][0].v1 = 1;
  EXPECT_NE(first_difference(a, b), "");
  b = a;
  b[0][2] = a[0][1];
  EXPECT_NE(first_difference(a, b), "");
}

}  // namespace
}  // namespace shardscope::simulate::testing
