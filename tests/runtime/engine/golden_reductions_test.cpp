// The collectives of gradients that the engine submits, rank by rank, against recorded DeepSpeed runs
// (tests/golden/stage12*.json), and that how a bucket is cut changes no bit of the result.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <ostream>

#include "tests/runtime/engine/support.h"

namespace shardscope::engine::testing::golden_reductions_test {

void PrintTo(const Reduction& reduction, std::ostream* out) {
  *out << reduction.op << ' ' << reduction.elems;
  for (const std::uint32_t root : reduction.roots) *out << " to " << root;
}

namespace {

RunSpec recorded_run(const Json& run) {
  const auto name = run.at("model").get<std::string>();
  RunSpec spec;
  spec.model = model_named(name);
  spec.data = name.rfind("gpt", 0) == 0 ? "golden:gpt" : "golden:mlp";
  spec.world = run.at("world").get<std::uint32_t>();
  spec.steps = 1;
  spec.config = make_config(run.at("stage").get<int>(), run.value("gradient_accumulation_steps", 1));
  spec.config["train_micro_batch_size_per_gpu"] = 1;
  spec.config["zero_optimization"].update(run.at("config"));
  return spec;
}

/// What each rank of a recorded run submitted, in order.
std::vector<Reduction> one_by_one(const Json& flushes) {
  std::vector<Reduction> submitted;
  for (const Json& flush : flushes) {
    for (const Json& collective : flush.at("collectives")) {
      Reduction reduction{collective.at("op"), collective.at("numel"), {}};
      if (collective.contains("dst")) reduction.roots.push_back(collective["dst"]);
      submitted.push_back(std::move(reduction));
    }
  }
  return submitted;
}

class RecordedReductions : public ::testing::TestWithParam<const char*> {};

TEST_P(RecordedReductions, AreSubmittedInOrderWithTheirCutsAndOwners) {
  std::ifstream text(std::string(SHARDSCOPE_GOLDEN "/") + GetParam());
  const Json file = Json::parse(text);
  std::map<std::int64_t, const Json*> sequences;
  for (const Json& sequence : file.at("sequences")) sequences[sequence.at("seq")] = &sequence.at("flushes");
  std::size_t cut = 0;
  for (const Json& run : file.at("runs")) {
    SCOPED_TRACE(run.dump());
    const Json& flushes = *sequences.at(run.at("flush_seq"));
    const std::vector<Reduction> recorded = one_by_one(flushes);
    RunSpec spec = recorded_run(run);
    spec.config["shardscope"] = {{"compat", "deepspeed"}};
    for (const RankRun& rank : train(spec).ranks) {
      EXPECT_EQ(rank.error, "");
      EXPECT_EQ(rank.reductions, recorded);
    }
    for (const Json& flush : flushes) cut += flush.at("collectives").size() > 1 ? 1 : 0;
  }
  EXPECT_GT(cut, 0U) << "the file has cuts";
}

INSTANTIATE_TEST_SUITE_P(Files, RecordedReductions,
                         ::testing::Values("stage12.json", "stage12_more.json", "stage12_settings.json"),
                         [](const auto& file) {
                           const std::string name = file.param;
                           return name.substr(0, name.find('.'));
                         });

RunSpec small_buckets(int stage, const Json& zero, const Json& others) {
  RunSpec spec;
  spec.model = model_named("mlp");
  spec.config = make_config(stage, 2, others.value("type", "fp32"));
  spec.config.update(others);
  spec.config.erase("type");
  spec.config["zero_optimization"]["reduce_bucket_size"] = 9001;
  spec.config["zero_optimization"]["overlap_comm"] = true;
  spec.config["zero_optimization"].update(zero);
  spec.world = 3;
  spec.steps = 2;
  return spec;
}

// By default a bucket is one grouped collective; collective by collective it is the same sums.
TEST(CollectivesOfABucket, ChangeNoBitOneByOne) {
  const std::vector<Json> kinds{
      Json::object(),
      {{"type", "bf16"}, {"data_types", {{"grad_accum_dtype", "fp32"}}}},
      {{"type", "bf16"}, {"communication_data_type", "fp32"}, {"prescale_gradients", true}},
  };
  const std::vector<Json> ways{
      Json::object(),
      {{"use_multi_rank_bucket_allreduce", false}},
      {{"reduce_scatter", false}},
      {{"use_multi_rank_bucket_allreduce", false}, {"offload_optimizer", {{"device", "cpu"}}}},
      {{"offload_optimizer", {{"device", "cpu"}}}},
      {{"round_robin_gradients", true}, {"overlap_comm", false}},
  };
  for (const int stage : {0, 1, 2}) {
    for (const Json& others : kinds) {
      for (const Json& zero : ways) {
        if (stage == 0 && (zero.contains("offload_optimizer") || zero.contains("round_robin_gradients")))
          continue;
        SCOPED_TRACE("stage " + std::to_string(stage) + ' ' + others.dump() + ' ' + zero.dump());
        RunSpec spec = small_buckets(stage, zero, others);
        const TrainingRun grouped = train(spec);
        spec.config["shardscope"] = {{"compat", {{"multi_rank_bucket_allreduce", true}}}};
        const TrainingRun apart = train(spec);
        EXPECT_EQ(first_difference(grouped, apart), "");
        if (stage == 0 || zero.contains("reduce_scatter")) continue;
        EXPECT_GT(apart.ranks[0].reductions.size(), grouped.ranks[0].reductions.size());
        // The volume is that of the operation: an all-reduce moves twice what the reduces do.
        const std::int64_t times = zero.contains("use_multi_rank_bucket_allreduce") ? 1 : 2;
        EXPECT_EQ(apart.ranks[0].volume.reduced, times * grouped.ranks[0].volume.reduced);
      }
    }
  }
}

}  // namespace
}  // namespace shardscope::engine::testing::golden_reductions_test
