// A forward in evaluation mode: the loss of training's forward, nothing kept, and no backward after it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "tests/runtime/model/support.h"

namespace shardscope::model {
namespace {

using instrumentation::MemoryCategory;
using ::testing::HasSubstr;

struct Evaluated {
  explicit Evaluated(const std::string& model) : Evaluated(sample_model(model)) {}
  explicit Evaluated(plan::ModelSpec model) : trainer(std::move(model), kernels::DType::f32) {
    trainer.hooks.initialise(InitScheme::hash, 0);
    const bool tokens = trainer.plan.spec.input == plan::InputKind::tokens;
    data::open_stream(trainer.plan.spec, {tokens ? "golden:gpt" : "golden:mlp", 2, 0, 0, 1, 1})->next(host);
  }
  [[nodiscard]] Batch batch() { return trainer.batch_of(host); }
  float evaluate() {
    float loss = 0;
    trainer.executor.evaluate(batch(), 0, &loss);
    trainer.device->compute().synchronize();
    return loss;
  }
  Trainer trainer;
  data::HostBatch host;
};

TEST(EvaluationForward, HasTheLossOfTrainingsForward) {
  for (const char* model : {"mlp", "mlp_reuse", "gpt", "gpt_tied", "gpt_functional"}) {
    SCOPED_TRACE(model);
    Evaluated run(model);
    const float evaluated = run.evaluate();
    EXPECT_GT(evaluated, 0.0F);
    EXPECT_EQ(run.trainer.micro_step(run.host, 0), evaluated);
    EXPECT_EQ(run.evaluate(), evaluated) << "a backward before it leaves nothing behind";
  }
}

TEST(EvaluationForward, CallsTheHooksOfTheForwardOnly) {
  Evaluated run("gpt_tied");
  run.trainer.micro_step(run.host, 0);
  std::vector<std::string> forward = run.trainer.hooks.calls;
  forward.erase(std::find_if(forward.begin(), forward.end(),
                             [](const std::string& call) { return call.rfind("pre_backward", 0) == 0; }),
                forward.end());
  run.trainer.hooks.calls.clear();
  run.evaluate();
  EXPECT_EQ(run.trainer.hooks.calls, forward);
}

/// The sample GPT with one block more.
plan::ModelSpec deeper() {
  plan::ModelSpec spec = sample_model("gpt");
  for (plan::NodeSpec& node : spec.root.children) {
    if (node.kind != plan::NodeKind::list) continue;
    node.children.push_back(node.children.back());
    node.children.back().name = "2";
  }
  return spec;
}

// Another block takes memory in training and none in evaluation, where its activations are freed as it goes.
TEST(EvaluationForward, TakesTheSameMemoryHoweverDeepTheModel) {
  const auto peak = [](plan::ModelSpec model, bool trains) {
    Evaluated run(std::move(model));
    if (trains) {
      run.trainer.micro_step(run.host, 0);
    } else {
      run.evaluate();
    }
    const device::Arena& memory = run.trainer.device->memory();
    EXPECT_EQ(memory.used_bytes(MemoryCategory::activation), 0U);
    EXPECT_EQ(memory.used_bytes(MemoryCategory::temporary), 0U);
    return memory.peak_bytes();
  };
  EXPECT_GT(peak(deeper(), true), peak(sample_model("gpt"), true));
  EXPECT_EQ(peak(deeper(), false), peak(sample_model("gpt"), false));
  EXPECT_LT(peak(sample_model("gpt"), false), peak(sample_model("gpt"), true));
}

TEST(EvaluationForward, IsFollowedByNoBackward) {
  Evaluated run("mlp");
  const auto refused = [&] {
    try {
      run.trainer.executor.backward();
      ADD_FAILURE() << "went back through a forward that kept nothing";
    } catch (const std::logic_error& error) {
      EXPECT_THAT(error.what(), HasSubstr("evaluation mode"));
    }
  };
  run.trainer.micro_step(run.host, 0);
  run.evaluate();
  refused();
  std::vector<float> logits(static_cast<std::size_t>(run.host.B));
  run.trainer.executor.logits(run.batch(), logits);
  refused();
  run.trainer.micro_step(run.host, 1);  // and training goes on
}

}  // namespace
}  // namespace shardscope::model
