// The order in which hooks report module boundaries and gradients, against recorded DeepSpeed runs
// (tests/golden/coordinator.json, stage12.json).
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/runtime/model/support.h"

namespace shardscope::model {
namespace {

std::vector<std::string> calls_of_iteration(Trainer& trainer, std::int64_t iteration) {
  const bool tokens = trainer.plan.spec.input == plan::InputKind::tokens;
  const auto stream =
      data::open_stream(trainer.plan.spec, {tokens ? "golden:gpt" : "golden:mlp", 2, 0, 0, 1, 1});
  data::HostBatch batch;
  stream->next(batch);
  trainer.hooks.calls.clear();
  trainer.hooks.ready.clear();
  trainer.micro_step(batch, iteration);
  return trainer.hooks.calls;
}

/// Module boundaries only, in the golden file's words.
std::vector<std::string> boundaries(const std::vector<std::string>& calls) {
  std::vector<std::string> out;
  for (const std::string& call : calls) {
    if (call.rfind("pre_", 0) == 0 || call.rfind("post_", 0) == 0) out.push_back(call);
  }
  return out;
}

std::vector<std::string> recorded(const nlohmann::json& events) {
  std::vector<std::string> out;
  for (const nlohmann::json& event : events) {
    const auto kind = event.at("ev").get<std::string>();
    if (kind != "fetch" && kind != "release") continue;
    const std::string direction = event.at("dir") == "fwd" ? "forward " : "backward ";
    out.push_back((kind == "fetch" ? "pre_" : "post_") + direction +
                  std::to_string(event.at("module").get<int>()));
  }
  return out;
}

const nlohmann::json& coordinator() {
  static const nlohmann::json file = nlohmann::json::parse(read_text("tests/golden/coordinator.json"));
  return file;
}

TEST(HookOrder, BoundariesAsDeepSpeedSawThem) {
  for (const char* name : {"mlp", "gpt", "gpt_tied", "gpt_functional"}) {
    SCOPED_TRACE(name);
    Trainer trainer(sample_model(name), kernels::DType::f32);
    trainer.hooks.initialise(InitScheme::hash, 0);
    const auto got = boundaries(calls_of_iteration(trainer, 0));
    int compared = 0;
    for (const nlohmann::json& trace : coordinator().at("traces")) {
      if (trace.at("model") != name) continue;
      EXPECT_EQ(got, recorded(trace.at("record").at("events"))) << trace.at("id");
      ++compared;
    }
    EXPECT_GT(compared, 0);
  }
}

TEST(HookOrder, ASkippedBlockIsNotVisited) {
  for (const nlohmann::json& trace : coordinator().at("invalidation")) {
    if (trace.at("id") != "I0") continue;
    Trainer trainer(sample_model("mlp_visit"), kernels::DType::f32);
    trainer.hooks.initialise(InitScheme::hash, 0);
    std::int64_t iteration = 0;
    for (const nlohmann::json& golden : trace.at("iterations")) {
      EXPECT_EQ(boundaries(calls_of_iteration(trainer, iteration)), recorded(golden.at("events")))
          << iteration;
      ++iteration;
    }
    EXPECT_GE(iteration, 4);
  }
}

TEST(HookOrder, GradientsArriveInAutogradsOrder) {
  const nlohmann::json file = nlohmann::json::parse(read_text("tests/golden/stage12.json"));
  for (const auto& [name, model] : file.at("models").items()) {
    SCOPED_TRACE(name);
    Trainer trainer(sample_model(name), kernels::DType::f32);
    trainer.hooks.initialise(InitScheme::hash, 0);
    calls_of_iteration(trainer, 0);
    EXPECT_EQ(trainer.hooks.ready, model.at("grad_arrival_order").get<std::vector<std::uint32_t>>());
  }
}

/// A gradient arrives between the two backward hooks of the module that produced it.
TEST(HookOrder, GradientsArriveInsideTheirModule) {
  Trainer trainer(sample_model("gpt_tied"), kernels::DType::f32);
  trainer.hooks.initialise(InitScheme::hash, 0);
  const std::vector<std::string> calls = calls_of_iteration(trainer, 0);
  auto at = [&](const std::string& call) {
    return std::find(calls.begin(), calls.end(), call) - calls.begin();
  };
  // Module 10 is h.0.fc2 with parameters 12 and 13.
  EXPECT_LT(at("pre_backward 10"), at("grad_ready 13"));
  EXPECT_LT(at("grad_ready 13"), at("grad_ready 12"));
  EXPECT_LT(at("grad_ready 12"), at("post_backward 10"));
  // The tied weight is ready once, after its last use, which is the embedding's.
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "grad_ready 0"), 1);
  EXPECT_LT(at("pre_backward 1"), at("grad_ready 0"));
}

TEST(HookOrder, FunctionalUseOfAWeightIsAnnounced) {
  Trainer trainer(sample_model("gpt_functional"), kernels::DType::f32);
  trainer.hooks.initialise(InitScheme::hash, 0);
  const std::vector<std::string> calls = calls_of_iteration(trainer, 0);
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "use_external 0 in 0"), 1);
}

TEST(HookOrder, ARecomputedBlockRunsItsForwardHooksAgain) {
  plan::ModelSpec spec = sample_model("gpt");
  for (plan::NodeSpec& node : spec.root.children) {
    if (node.kind == plan::NodeKind::list) node.checkpoint = true;
  }
  Trainer trainer(std::move(spec), kernels::DType::f32);
  trainer.hooks.initialise(InitScheme::hash, 0);
  const std::vector<std::string> calls = calls_of_iteration(trainer, 0);
  // Block h.1 is module 11; its children are 12 to 17.
  const auto begin = std::find(calls.begin(), calls.end(), "begin_recompute 11");
  const auto end = std::find(calls.begin(), calls.end(), "end_recompute 11");
  ASSERT_NE(end, calls.end());
  std::vector<std::string> expected{"pre_forward 11"};
  for (int module = 12; module <= 17; ++module) {
    expected.push_back("pre_forward " + std::to_string(module));
    expected.push_back("post_forward " + std::to_string(module));
  }
  expected.emplace_back("post_forward 11");
  EXPECT_EQ(std::vector<std::string>(begin + 1, end), expected);
  EXPECT_EQ(*(end + 1), "pre_backward 11");
  // Each gradient still arrives exactly once.
  std::vector<std::uint32_t> ready = trainer.hooks.ready;
  std::sort(ready.begin(), ready.end());
  EXPECT_EQ(std::adjacent_find(ready.begin(), ready.end()), ready.end());
  EXPECT_EQ(ready.size(), trainer.plan.params.size());
}

TEST(HookOrder, ALeafModuleIsOneBoundary) {
  plan::ModelSpec spec = sample_model("mlp");
  for (plan::NodeSpec& node : spec.root.children) {
    if (node.kind == plan::NodeKind::list) node.children[0].leaf = true;
  }
  Trainer trainer(std::move(spec), kernels::DType::f32);
  trainer.hooks.initialise(InitScheme::hash, 0);
  const std::vector<std::string> calls = calls_of_iteration(trainer, 0);
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "pre_forward 3"), 1);
  for (const char* inside : {"pre_forward 4", "pre_backward 5", "post_backward 6"}) {
    EXPECT_EQ(std::count(calls.begin(), calls.end(), inside), 0) << inside;
  }
}

/// A module visited twice (0, 1, 0): its gradients are sums, and ready after the earlier visit's backward.
TEST(HookOrder, AReusedModuleIsReadyOnce) {
  Trainer trainer(sample_model("mlp_reuse"), kernels::DType::f32);
  trainer.hooks.initialise(InitScheme::hash, 0);
  calls_of_iteration(trainer, 0);
  std::vector<std::uint32_t> ready = trainer.hooks.ready;
  std::sort(ready.begin(), ready.end());
  EXPECT_EQ(std::adjacent_find(ready.begin(), ready.end()), ready.end());
  EXPECT_EQ(ready.size(), trainer.plan.params.size());
}

/// After a step every activation has gone back; two steps take the same peak.
TEST(HookOrder, MemoryIsDeterministic) {
  Trainer trainer(sample_model("gpt"), kernels::DType::f32);
  trainer.hooks.initialise(InitScheme::hash, 0);
  using instrumentation::MemoryCategory;
  calls_of_iteration(trainer, 0);
  const std::size_t peak = trainer.device->memory().peak_bytes();
  EXPECT_GT(peak, 0U);
  EXPECT_EQ(trainer.device->memory().used_bytes(MemoryCategory::activation), 0U);
  EXPECT_EQ(trainer.device->memory().used_bytes(MemoryCategory::temporary), 0U);
  calls_of_iteration(trainer, 1);
  EXPECT_EQ(trainer.device->memory().peak_bytes(), peak);
}

}  // namespace
}  // namespace shardscope::model
