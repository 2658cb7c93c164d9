// Optimizer, precision and data types.
#include <array>

#include "runtime/config/sections.h"

namespace shardscope::config {
namespace {

kernels::DType type_of(std::size_t index) noexcept {
  // Order of the names in dtype_names().
  constexpr std::array types{kernels::DType::f32,  kernels::DType::f32, kernels::DType::bf16,
                             kernels::DType::bf16, kernels::DType::f16, kernels::DType::f16};
  return types.at(index);
}

const std::vector<std::string>& dtype_names() {
  static const std::vector<std::string> names{"fp32", "float32", "bf16", "bfloat16", "fp16", "float16"};
  return names;
}

}  // namespace

void read_group_settings(Section& section, OptimizerConfig& optimizer) {
  section.read("lr", optimizer.lr, 0, kLargestRate);
  section.read("eps", optimizer.eps, 0, 1);
  section.read("weight_decay", optimizer.weight_decay, 0, kLargestRate);
  const nlohmann::json* betas = section.find("betas");
  if (betas == nullptr || section.is_auto("betas")) return;
  const bool pair =
      betas->is_array() && betas->size() == 2 && (*betas)[0].is_number() && (*betas)[1].is_number();
  if (!pair) return section.fail("betas", "must be a list of two numbers, such as [0.9, 0.999]");
  optimizer.beta1 = (*betas)[0].get<double>();
  optimizer.beta2 = (*betas)[1].get<double>();
  for (const double beta : {optimizer.beta1, optimizer.beta2}) {
    if (!(beta >= 0 && beta < 1)) section.fail("betas", "each must be at least 0 and less than 1");
  }
}

void read_optimizer(Section section, OptimizerConfig& optimizer) {
  optimizer.weight_decay = 0;  // FusedAdam and DeepSpeedCPUAdam
  if (section.find("type") == nullptr) section.fail("type", "missing: give \"Adam\" or \"AdamW\"");
  bool adam_w = true;
  section.read_enum("type", {"AdamW", "Adam", "adamw", "adam"},
                    [&](std::size_t i) { optimizer.type = i % 2 == 0 ? "AdamW" : "Adam"; });
  if (auto params = section.child("params")) {
    bool torch_adam = false;
    bool bias_correction = true;
    params->read("torch_adam", torch_adam);
    params->read("adam_w_mode", adam_w);
    if (torch_adam && (adam_w || optimizer.type == "AdamW")) optimizer.weight_decay = 0.01;
    read_group_settings(*params, optimizer);
    params->read("bias_correction", bias_correction);
    if (!bias_correction)
      params->fail("bias_correction", "is false, but only Adam with bias correction is supported");
    params->without_setting("amsgrad", KeyPolicy::refused, "AMSGrad is not supported; remove the key");
    params->without_setting("max_grad_norm", KeyPolicy::refused,
                            "set gradient_clipping at the top level instead");
    params->without_setting("set_grad_none", KeyPolicy::ignored, "gradients are freed by the ZeRO stage");
    bool fp32_states = true;
    params->read("fp32_optimizer_states", fp32_states);
    if (!fp32_states) params->fail("fp32_optimizer_states", "is false, but optimizer states are fp32");
    params->without_setting("fused", KeyPolicy::ignored, "the step is one kernel already");
    params->without_setting("foreach", KeyPolicy::ignored, "the step is one kernel already");
    params->finish();
  }
  section.without_setting("legacy_fusion", KeyPolicy::ignored, "there is one implementation");
  section.finish();
  optimizer.decoupled = optimizer.type == "AdamW" || adam_w;
}

void read_precision(Section& root, TrainingConfig& config) {
  if (auto fp16 = root.child("fp16")) {
    Fp16Config& f = config.fp16;
    fp16->read("enabled", f.enabled);
    fp16->read("loss_scale", f.loss_scale, 0, 1e30);
    fp16->read("initial_scale_power", f.initial_scale_power, 0, 60);
    fp16->read("loss_scale_window", f.loss_scale_window, 1, kMostSteps);
    fp16->read("hysteresis", f.hysteresis, 1, kMostSteps);
    fp16->read("consecutive_hysteresis", f.consecutive_hysteresis);
    fp16->read("min_loss_scale", f.min_loss_scale, 0, 1e30);
    fp16->without_setting("auto_cast", KeyPolicy::ignored, "inputs are converted to the storage type anyway");
    fp16->without_setting("fp16_master_weights_and_grads", KeyPolicy::refused, "master weights are fp32");
    fp16->without_setting("fp16_master_weights_and_gradients", KeyPolicy::refused, "master weights are fp32");
    fp16->finish();
  }
  const char* const bf16_key =
      root.find("bfloat16") != nullptr && root.find("bf16") == nullptr ? "bfloat16" : "bf16";
  if (auto bf16 = root.child(bf16_key)) {
    bf16->read("enabled", config.bf16.enabled);
    bf16->read("check_grad_overflow", config.bf16.check_grad_overflow);
    bf16->without_setting("immediate_grad_update", KeyPolicy::ignored,
                          "it changes when gradients are copied only");
    bf16->without_setting("bf16_master_weights_and_grads", KeyPolicy::refused, "master weights are fp32");
    bf16->without_setting("bf16_optimizer_states", KeyPolicy::refused, "optimizer states are fp32");
    bf16->finish();
  }
  if (config.fp16.enabled && config.bf16.enabled) {
    root.fail(bf16_key, "fp16 and bf16 are both enabled; enable one of them");
  }
}

void read_data_types(Section& root, TrainingConfig& config) {
  config.communication_type = config.storage_type();
  config.grad_accum_type = config.storage_type();
  if (auto types = root.child("data_types")) {
    types->read_enum("grad_accum_dtype", dtype_names(),
                     [&](std::size_t i) { config.grad_accum_type = type_of(i); });
    if (config.grad_accum_type != config.storage_type() && config.grad_accum_type != kernels::DType::f32) {
      types->fail("grad_accum_dtype", std::string("is ") + name_of(config.grad_accum_type) +
                                          ", but parameters are " + name_of(config.storage_type()) +
                                          "; micro-steps are summed in that type or in fp32");
    }
    kernels::DType params = config.storage_type();
    types->read_enum("param_dtype", dtype_names(), [&](std::size_t i) { params = type_of(i); });
    if (params != config.storage_type()) {
      types->fail("param_dtype", std::string("is ") + name_of(params) + ", but parameters are " +
                                     name_of(config.storage_type()) + "; fp16 and bf16 say what they are");
    }
    types->without_setting("buffer_dtype", KeyPolicy::ignored, "models have no buffers beside parameters");
    types->finish();
  }
  root.read_enum("communication_data_type", dtype_names(),
                 [&](std::size_t i) { config.communication_type = type_of(i); });
}

}  // namespace shardscope::config
