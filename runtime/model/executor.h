// Runs a model tree forward and backward on a device, calling the hooks at each module boundary. Independent
// of ZeRO: the hooks return the addresses of parameters and gradients.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "kernels/types.h"
#include "runtime/device/device.h"
#include "runtime/plan/fault.h"
#include "runtime/plan/model_plan.h"

namespace shardscope::model {

/// Destination of a gradient and whether to add to it.
struct GradTarget {
  kernels::Ptr data;
  bool accumulate = false;
};

/// The engine's actions at module boundaries. Called on the host thread, in the program order that is the
/// same on every rank. Work queued on the compute stream after pre_* runs after the waits queued by the hook.
class Hooks {
 public:
  virtual ~Hooks() = default;
  virtual void pre_forward(plan::ModuleId module) = 0;
  virtual void post_forward(plan::ModuleId module) = 0;
  /// `recompute`: the forward of a checkpointed block runs again inside backward. pre/post_forward are
  /// then called as well, between begin_recompute and end_recompute of that block.
  virtual void begin_recompute(plan::ModuleId block) = 0;
  virtual void end_recompute(plan::ModuleId block) = 0;
  virtual void pre_backward(plan::ModuleId module) = 0;
  /// Not called for a module whose input needs no gradient (P12), as in PyTorch.
  virtual void post_backward(plan::ModuleId module) = 0;
  /// The weight of another module is read inside `module` (functional use, P10).
  virtual void use_external(plan::ParamId param, plan::ModuleId module) = 0;

  /// Address of the whole parameter; valid from the pre_* hook of its module to its post_* hook.
  [[nodiscard]] virtual kernels::ConstPtr param(plan::ParamId param) = 0;
  /// Called once per use in backward, before the kernel that writes it is queued.
  [[nodiscard]] virtual GradTarget grad(plan::ParamId param) = 0;
  /// The last kernel that contributes to this gradient in this backward is queued. Order of calls for one
  /// module: autograd's (GradOrder in Linear, weight before bias in LayerNorm). A tied parameter is ready
  /// once, after its last contribution.
  virtual void grad_ready(plan::ParamId param) = 0;
};

/// Which gradient of a linear layer is ready first: the bias in PyTorch's own linear, the weight in
/// DeepSpeed's memory-efficient replacement in stage 3 (deepspeed/runtime/zero/linear.py).
enum class GradOrder : std::uint8_t { bias_first, weight_first };

/// One micro-batch of one rank, already on the device.
struct Batch {
  std::int64_t B = 0;
  std::int64_t T = 0;                     ///< 1 for vectors
  const std::int32_t* tokens = nullptr;   ///< [B,T]
  const std::int32_t* targets = nullptr;  ///< [B,T]; below 0: a position without a loss
  const float* inputs = nullptr;          ///< [B,input_width]
  const float* labels = nullptr;          ///< [B,output_width]
  /// [B,T]: the column of each; for models that look positions up.
  const std::int32_t* positions = nullptr;
  std::int64_t ignored = 0;  ///< positions without a loss
};

class Executor {
 public:
  /// `type`: storage type of activations and of the hooks' parameters.
  Executor(const plan::ModelPlan& model, device::Device& device, kernels::DType type, Hooks& hooks,
           GradOrder linear_grads = GradOrder::bias_first);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Queues forward, loss and the gradient of the logits. `loss_scale` multiplies the gradient (loss scale /
  /// accumulation steps). The loss (mean over the positions that have one, unscaled, fp32) is written to
  /// `loss` (device memory).
  void forward(const Batch& batch, std::int64_t iteration, float loss_scale, float* loss);
  /// Queues the backward of the last forward. Throws std::logic_error if that was not in training mode:
  /// evaluate() and logits() keep nothing for a backward.
  void backward();
  /// Queues forward and loss as forward() does, without anything for a backward: activations are freed as
  /// soon as the next module has read them. `iteration` decides what conditional modules skip; modules emit
  /// no micro-step.
  void evaluate(const Batch& batch, std::int64_t iteration, float* loss);
  /// Forward only, logits kept, for tests: copies logits [B*T,V] fp32 to `logits`.
  void logits(const Batch& batch, std::span<float> logits);
  /// Fault injection: forwards of these micro-steps skip a module or swap two, and so do their backwards.
  void inject_fault(const plan::ExecutorFault& fault);
  /// Sets the source of name ids for kernel spans (Publisher::name_id); without it there are no kernel spans.
  void name_kernels(const std::function<std::uint32_t(const std::string&)>& id_of);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardscope::model
