// A whole GPT against PyTorch: logits, loss, every gradient and ten AdamW steps
// (tests/reference/make_reference.py says what the file holds; it was computed in double precision).
#include <gtest/gtest.h>

#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/weights.h"
#include "tests/runtime/model/support.h"

namespace shardscope::model {
namespace {

constexpr const char* kFile = "tests/reference/gpt_reference.safetensors";
constexpr std::int64_t kB = 3, kT = 16, kV = 61, kC = 24, kHeads = 4, kSteps = 10;

plan::ModelSpec reference_model(bool checkpoint, bool early_stop = false) {
  plan::ModelSpec spec = plan::named_model("gpt-mini");
  spec.vocabulary = kV;
  spec.checkpoint_early_stop = early_stop;
  spec.context = kT;
  // The built-in model with this width: the tree is the same, only the sizes differ.
  const std::int64_t old_width = 128;
  auto resize = [&](auto& self, plan::NodeSpec& node) -> void {
    auto scaled = [&](std::int64_t value) { return value % old_width == 0 ? value / old_width * kC : value; };
    switch (node.kind) {
      case plan::NodeKind::embedding:
        node.in = node.lookup == plan::Lookup::tokens ? kV : kT;
        node.out = kC;
        break;
      case plan::NodeKind::linear:
        node.in = scaled(node.in);
        node.out = node.weight_of.empty() ? scaled(node.out) : kV;
        break;
      case plan::NodeKind::layer_norm:
        node.out = kC;
        break;
      case plan::NodeKind::attention:
        node.heads = kHeads;
        break;
      case plan::NodeKind::list:
        node.children.resize(2);
        for (plan::NodeSpec& block : node.children) block.checkpoint = checkpoint;
        break;
      default:
        break;
    }
    for (plan::NodeSpec& child : node.children) self(self, child);
  };
  resize(resize, spec.root);
  return spec;
}

class Reference : public ::testing::Test {
 protected:
  std::vector<float> tensor(const std::string& name) const {
    const checkpoint::TensorInfo* info = file_.find(name);
    if (info == nullptr) throw std::runtime_error("no tensor " + name);
    std::vector<float> out(static_cast<std::size_t>(info->elems));
    file_.read(*info, 0, out);
    return out;
  }

  data::HostBatch batch(std::int64_t step) const {
    const std::vector<float> all = tensor("tokens");
    data::HostBatch out;
    out.B = kB;
    out.T = kT;
    for (std::int64_t b = 0; b < kB; ++b) {
      const float* row = all.data() + (step * kB + b) * (kT + 1);
      for (std::int64_t t = 0; t < kT; ++t) {
        out.tokens.push_back(static_cast<std::int32_t>(row[t]));
        out.targets.push_back(static_cast<std::int32_t>(row[t + 1]));
      }
    }
    return out;
  }

  void load(Trainer& trainer) const {
    const checkpoint::WeightReader weights(kFile, trainer.plan);
    for (const plan::ParamPlan& param : trainer.plan.params) {
      weights.read(param.id, {0, param.elems}, trainer.hooks.master(param.id).data());
    }
    trainer.hooks.publish();
  }

  checkpoint::SafetensorsReader file_{kFile};
};

/// Largest difference over the largest reference value: an error in a small element counts as much as the
/// rounding of a large one, which is what matrix products produce.
double distance(const std::vector<float>& got, const std::vector<float>& expected) {
  EXPECT_EQ(got.size(), expected.size());
  double worst = 0;
  double scale = 1e-30;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(got[i]) - static_cast<double>(expected[i])));
    scale = std::max(scale, std::abs(static_cast<double>(expected[i])));
    if (std::isnan(got[i])) return std::numeric_limits<double>::infinity();
  }
  return worst / scale;
}

struct Bounds {
  double logits, loss, gradient, weights_after, losses_after;
};
// fp32: eps is 6e-8, sums have up to 96 terms and pass through some ten layers.
constexpr Bounds kFp32{2e-6, 1e-6, 5e-6, 2e-4, 2e-6};
// bf16: eps is 4e-3 per stored value, which ten layers of rounded activations add up; Adam's first steps
// have the sign of the gradient, so elements near zero may move lr either way (10 steps of 1e-3).
constexpr Bounds kBf16{3e-2, 1e-2, 6e-2, 3e-2, 1e-2};

void compare_with(const Bounds& bounds, kernels::DType type, bool checkpoint, auto& reference) {
  Trainer trainer(reference_model(checkpoint), type);
  reference.load(trainer);
  const data::HostBatch first = reference.batch(0);

  std::vector<float> logits(static_cast<std::size_t>(kB * kT * kV));
  trainer.executor.logits(trainer.batch_of(first), logits);
  EXPECT_LT(distance(logits, reference.tensor("logits")), bounds.logits);

  const checkpoint::TensorInfo* losses_info = reference.file_.find("losses");
  ASSERT_NE(losses_info, nullptr);
  const std::vector<float> losses = reference.tensor("losses");
  for (std::int64_t step = 0; step < kSteps; ++step) {
    const float loss = trainer.micro_step(reference.batch(step), step);
    const double expected = losses[static_cast<std::size_t>(step)];
    EXPECT_LT(std::abs(loss - expected) / expected, step == 0 ? bounds.loss : bounds.losses_after)
        << "step " << step;
    if (step == 0) {
      for (const plan::ParamPlan& param : trainer.plan.params) {
        EXPECT_LT(distance(trainer.hooks.gradient(param.id), reference.tensor("grad." + param.name)),
                  bounds.gradient)
            << param.name;
      }
    }
    kernels::AdamW settings;
    settings.weight_decay = 0.1F;
    settings.step = step + 1;
    trainer.hooks.step(settings);
  }
  for (const plan::ParamPlan& param : trainer.plan.params) {
    std::vector<float> got = trainer.hooks.master(param.id);
    std::vector<float> expected = reference.tensor("after." + param.name);
    if (param.name.find("c_attn.bias") != std::string::npos) {
      // The key third has an exactly zero gradient (softmax ignores a constant), so Adam normalises noise
      // there.
      for (auto* values : {&got, &expected}) std::fill_n(values->begin() + kC, kC, 0.0F);
    }
    EXPECT_LT(distance(got, expected), bounds.weights_after) << param.name;
  }
}

class ReferenceGpt : public Reference {
 public:
  using Reference::batch;
  using Reference::file_;
  using Reference::load;
  using Reference::tensor;
};

TEST_F(ReferenceGpt, Fp32) { compare_with(kFp32, kernels::DType::f32, false, *this); }
TEST_F(ReferenceGpt, Fp32WithCheckpoints) { compare_with(kFp32, kernels::DType::f32, true, *this); }
TEST_F(ReferenceGpt, Bf16) { compare_with(kBf16, kernels::DType::bf16, false, *this); }

TEST_F(ReferenceGpt, TheComparisonSeesOneWrongElement) {
  std::vector<float> wrong = tensor("logits");
  wrong[17] *= 1.001F;
  wrong[17] += 1e-3F;
  EXPECT_GT(distance(wrong, tensor("logits")), kFp32.logits);
  wrong[17] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_GT(distance(wrong, tensor("logits")), kBf16.logits);
}

/// Checkpointing changes when activations are computed, never what they are.
TEST_F(ReferenceGpt, CheckpointsChangeNoBit) {
  for (const kernels::DType type : {kernels::DType::f32, kernels::DType::bf16, kernels::DType::f16}) {
    Trainer plain(reference_model(false), type);
    load(plain);
    const float loss = plain.micro_step(batch(0), 0);
    for (const bool early_stop : {false, true}) {
      Trainer checkpointed(reference_model(true, early_stop), type);
      load(checkpointed);
      EXPECT_EQ(loss, checkpointed.micro_step(batch(0), 0));
      for (const plan::ParamPlan& param : plain.plan.params) {
        EXPECT_EQ(plain.hooks.gradient(param.id), checkpointed.hooks.gradient(param.id)) << param.name;
      }
    }
  }
}

/// Two micro-steps that accumulate give the sum of their gradients.
TEST_F(ReferenceGpt, GradientsAccumulate) {
  Trainer trainer(reference_model(false), kernels::DType::f32);
  load(trainer);
  std::vector<std::vector<float>> sums;
  for (std::int64_t micro = 0; micro < 2; ++micro) {
    trainer.micro_step(batch(micro), micro);
    for (const plan::ParamPlan& param : trainer.plan.params) {
      const std::vector<float> grad = trainer.hooks.gradient(param.id);
      if (micro == 0) {
        sums.push_back(grad);
      } else {
        for (std::size_t i = 0; i < grad.size(); ++i) sums[plan::raw(param.id)][i] += grad[i];
      }
    }
  }
  trainer.micro_step(batch(0), 0);
  trainer.hooks.accumulate_all = true;
  trainer.micro_step(batch(1), 1);
  for (const plan::ParamPlan& param : trainer.plan.params) {
    EXPECT_LT(distance(trainer.hooks.gradient(param.id), sums[plan::raw(param.id)]), 1e-6) << param.name;
  }
}

}  // namespace
}  // namespace shardscope::model
